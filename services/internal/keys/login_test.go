package keys

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

func newTestLogin(t testing.TB) *Login {
	t.Helper()
	l, err := GenerateLogin()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestLoginRoundTrip(t *testing.T) {
	l := newTestLogin(t)
	path := filepath.Join(folder(t), "login.nk")
	if err := WriteLogin(path, l); err != nil {
		t.Fatal(err)
	}
	wantMode(t, path, 0o600)
	wantErr(t, WriteLogin(path, newTestLogin(t)), ErrExists)
	loaded, err := LoadLogin(path)
	if err != nil {
		t.Fatal(err)
	}
	if loaded.Public() != l.Public() || !nkeys.IsValidPublicUserKey(l.Public()) {
		t.Errorf("loaded %s, wrote %s", loaded.Public(), l.Public())
	}
	if _, err := nats.NkeyOptionFromSeed(path); err != nil {
		t.Errorf("the common client does not take the file: %v", err)
	}
	os.Chmod(path, 0o604)
	_, err = LoadLogin(path)
	wantErr(t, err, ErrExposed, "chmod 600")
	if _, err := (&Login{}).SignNonce([]byte("AAAAAAAAAAAAAAA")); err == nil {
		t.Error("the zero login signs")
	}
	if err := WriteLogin(filepath.Join(filepath.Dir(path), "zero"), &Login{}); err == nil {
		t.Error("the zero login is written")
	}
}

func TestLoadLoginRefusesOtherSeeds(t *testing.T) {
	account, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	seed, _ := account.Seed()
	path := mustWrite(t, filepath.Join(folder(t), "login.nk"), string(seed), 0o600)
	_, err = LoadLogin(path)
	wantErr(t, err, ErrDamaged, path)
	if strings.Contains(err.Error(), string(seed)) {
		t.Error("the error holds the seed")
	}
}

func TestLoginAtRealServer(t *testing.T) {
	l := newTestLogin(t)
	srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true,
		Nkeys: []*server.NkeyUser{{Nkey: l.Public()}}})
	if err != nil {
		t.Fatal(err)
	}
	srv.Start()
	defer func() { srv.Shutdown(); srv.WaitForShutdown() }()
	if !srv.ReadyForConnections(10 * time.Second) {
		t.Fatal("the server does not start")
	}
	conn, err := nats.Connect(srv.ClientURL(), nats.Nkey(l.Public(), l.SignNonce))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Flush(); err != nil {
		t.Error(err)
	}
	other := newTestLogin(t)
	if _, err := nats.Connect(srv.ClientURL(), nats.Nkey(other.Public(), other.SignNonce)); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("an unknown key gets %v", err)
	}
}

// fish is a server in the hands of an attacker: it hands out a challenge of its
// choice and delivers what the first client answers with, "" if the client
// leaves without an answer.
func fish(t *testing.T, challenge string) (url string, catch <-chan string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	caught := make(chan string, 1)
	go func() {
		defer close(caught)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		info, _ := json.Marshal(map[string]any{"server_id": "ANGLER", "version": server.VERSION, "proto": 1, "headers": true,
			"auth_required": true, "max_payload": 1 << 20, "nonce": challenge})
		fmt.Fprintf(conn, "INFO %s\r\n", info)
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			if answer, ok := strings.CutPrefix(lines.Text(), "CONNECT "); ok {
				var connect struct{ Sig string }
				if json.Unmarshal([]byte(answer), &connect) == nil {
					caught <- connect.Sig
				}
				fmt.Fprint(conn, "-ERR 'Authorization Violation'\r\n")
				return
			}
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		for range caught {
		}
	})
	return "nats://" + listener.Addr().String(), caught
}

// forgedApproval is the text whose signature would make an approval.
func forgedApproval() string {
	ce, payload := sha256.Sum256([]byte("ce")), sha256.Sum256([]byte("payload"))
	return string(events.SigningText("site-1", "bm.job.default.J1.approved.alice", ce, 77, payload, 412))
}

func TestLoginCannotBeFishedForEventSignatures(t *testing.T) {
	challenges := map[string]string{
		"event text":      forgedApproval(),
		"event digest":    base64.RawURLEncoding.EncodeToString(make([]byte, 32)),
		"raw digest":      strings.Repeat("\x01", 32),
		"one short":       "AAAAAAAAAAAAAA",
		"one long":        "AAAAAAAAAAAAAAAA",
		"line end inside": "AAAAAAA\nAAAAAAA",
		"other alphabet":  "AAAAAAAAAAAAA+A",
		"spare bits":      "AAAAAAAAAAAAAAB",
	}
	l := newTestLogin(t)
	for name, challenge := range challenges {
		t.Run(name, func(t *testing.T) {
			url, catch := fish(t, challenge)
			_, err := nats.Connect(url, nats.Nkey(l.Public(), l.SignNonce))
			wantErr(t, err, ErrOddNonce)
			if sig := <-catch; sig != "" {
				t.Errorf("the attacker holds the signature %s", sig)
			}
		})
	}
}

// The same server does catch a signature from a client that signs anything, and
// it verifies as a forged event; otherwise the test above would show nothing.
func TestFishingWorksOnACarelessClient(t *testing.T) {
	l := newTestLogin(t)
	url, catch := fish(t, forgedApproval())
	_, err := nats.Connect(url, nats.Nkey(l.Public(), l.pair().Sign))
	if err == nil {
		t.Error("connected to the attacker")
	}
	sig, err := base64.RawURLEncoding.DecodeString(<-catch)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.pair().Verify([]byte(forgedApproval()), sig); err != nil {
		t.Errorf("nothing was caught: %v", err)
	}
}

func FuzzSignNonce(f *testing.F) {
	f.Add([]byte("AAAAAAAAAAAAAAA"))
	f.Add([]byte("AAAAAAA\r\nAAAAAA"))
	f.Add([]byte(forgedApproval()))
	l := newTestLogin(f)
	f.Fuzz(func(t *testing.T, nonce []byte) {
		sig, err := l.SignNonce(nonce)
		if err != nil {
			if !errors.Is(err, ErrOddNonce) || sig != nil {
				t.Errorf("signature %x, error %v", sig, err)
			}
			return
		}
		outside := bytes.IndexFunc(nonce, func(r rune) bool {
			return !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", r)
		})
		if len(nonce) != 15 || outside >= 0 {
			t.Errorf("signed %q", nonce)
		}
	})
}

func FuzzParseLogin(f *testing.F) {
	seed, _ := newTestLogin(f).pair().Seed()
	f.Add(seed)
	f.Add([]byte(" " + string(seed) + "\n"))
	f.Add([]byte("SU"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := parseLogin(text)
		if err != nil {
			return
		}
		again, err := l.pair().Seed()
		if err != nil || !bytes.Equal(again, bytes.TrimSpace(text)) || !nkeys.IsValidPublicUserKey(l.Public()) {
			t.Errorf("the seed changed on its way: %v", err)
		}
	})
}
