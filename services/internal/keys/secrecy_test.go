package keys

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"regexp"
	"strings"
	"testing"
)

// shapes returns the ways in which fmt, encoders and dumps show some bytes.
func shapes(secret []byte) []string {
	head := secret[:12]
	list := func(format, separator string) string {
		var parts []string
		for _, b := range head {
			parts = append(parts, fmt.Sprintf(format, b))
		}
		return strings.Join(parts, separator)
	}
	return []string{string(head), hex.EncodeToString(head), strings.ToUpper(hex.EncodeToString(head)), list("%d", " "), list("%d", ","),
		list("0x%x", ", "), list("%x", " "), base64.StdEncoding.EncodeToString(head), base64.RawURLEncoding.EncodeToString(head),
		new(big.Int).SetBytes(secret).String()}
}

// A key shows its public half however it is printed, also deep inside a struct.
func TestNothingPrintsASecret(t *testing.T) {
	signer, login, ca := newTestSigner(t), newTestLogin(t), newTestCA(t)
	checkpoint, err := GenerateCheckpointKey("origin")
	if err != nil {
		t.Fatal(err)
	}
	seed, _ := login.pair().Seed()
	scalar, err := ca.key().Bytes()
	if err != nil {
		t.Fatal(err)
	}
	skeyData := checkpoint.skey()[strings.LastIndex(checkpoint.skey(), "+A")+1:]
	for name, c := range map[string]struct {
		values []any
		secret []byte
		public string
	}{
		"signer":     {[]any{signer, *signer, struct{ s Signer }{*signer}, struct{ S any }{*signer}}, signer.private(), string(signer.Public())},
		"login":      {[]any{login, *login, struct{ l Login }{*login}, struct{ L any }{*login}}, seed, login.Public()},
		"checkpoint": {[]any{checkpoint, *checkpoint, struct{ k CheckpointKey }{*checkpoint}, struct{ K any }{*checkpoint}}, []byte(skeyData), checkpoint.Verifier()},
		"CA":         {[]any{ca, *ca, struct{ c CA }{*ca}, struct{ C any }{*ca}}, scalar, "site one"},
	} {
		var out bytes.Buffer
		for _, value := range c.values {
			for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x", "%X", "% x", "%o"} {
				fmt.Fprintf(&out, verb+"\n", value)
			}
			slog.New(slog.NewTextHandler(&out, nil)).Info("x", "value", value)
			slog.New(slog.NewJSONHandler(&out, nil)).Info("x", "value", value)
			text, _ := json.Marshal(value)
			out.Write(text)
		}
		for _, shape := range shapes(c.secret) {
			if strings.Contains(out.String(), shape) {
				t.Errorf("%s: the secret is printed as %q", name, shape)
			}
		}
		if !strings.Contains(out.String(), c.public) {
			t.Errorf("%s: the public half %q is not printed", name, c.public)
		}
	}
}

// The shapes are the right ones: a careless struct is caught by them.
func TestShapesCatchACarelessStruct(t *testing.T) {
	secret := bytes.Repeat([]byte{7, 200, 'a'}, 10)
	careless := struct{ key []byte }{secret}
	for _, verb := range []string{"%v", "%#v", "%x", "%s"} {
		text := fmt.Sprintf(verb, careless)
		caught := false
		for _, shape := range shapes(secret) {
			caught = caught || strings.Contains(text, shape)
		}
		if !caught {
			t.Errorf("%s: nothing is found in %s", verb, text)
		}
	}
}

func TestTokens(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		token := NewToken()
		if !regexp.MustCompile(`^bmt_[A-Za-z0-9_-]{43}$`).MatchString(token) || seen[token] {
			t.Fatalf("odd token of %d bytes", len(token))
		}
		seen[token] = true
		if digest := TokenDigest(token); len(digest) != 64 || strings.Contains(digest, token) {
			t.Errorf("digest %q", digest)
		}
	}
	// The example of FIPS 180-2.
	if got := TokenDigest("abc"); got != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("digest of abc is %s", got)
	}
}
