package front_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/lab/need"
	"github.com/banksman/banksman/services/internal/view"
)

// authority is a time-stamping authority made by openssl, in a folder of its own.
type authority struct {
	t    *testing.T
	dir  string
	away atomic.Bool // answers requests wrongly
}

const authorityConf = `[ca]
[req]
distinguished_name = dn
prompt = no
[dn]
CN = stamps of a test
[root]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[stamps]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = critical, timeStamping
[tsa]
default_tsa = tsa_config
[tsa_config]
serial = ./serial
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
accuracy = secs:1
ess_cert_id_alg = sha256
`

// newAuthority makes the authority, or skips where openssl is missing.
func newAuthority(t *testing.T) *authority {
	t.Helper()
	need.Program(t, "openssl")
	a := &authority{t: t, dir: t.TempDir()}
	if err := os.WriteFile(a.path("tsa.conf"), []byte(authorityConf), 0o600); err != nil {
		t.Fatal(err)
	}
	a.openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=root of a test", "-config", "tsa.conf", "-extensions", "root")
	a.openssl("req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", "tsa.key", "-out", "tsa.csr", "-config", "tsa.conf")
	a.openssl("x509", "-req", "-in", "tsa.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "tsa.pem", "-days", "2", "-extfile", "tsa.conf", "-extensions", "stamps")
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

func (a *authority) openssl(args ...string) {
	a.t.Helper()
	cmd := exec.Command("openssl", args...)
	cmd.Dir = a.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		a.t.Fatalf("openssl %q: %v: %s", args, err, out)
	}
}

// answer stamps a request.
func (a *authority) answer(query, answer string) {
	a.t.Helper()
	a.openssl("ts", "-reply", "-config", "tsa.conf", "-queryfile", query, "-signer", "tsa.pem", "-inkey", "tsa.key", "-chain", "ca.pem", "-out", answer)
}

// ServeHTTP answers over HTTP as authorities do.
func (a *authority) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || r.Header.Get("Content-Type") != "application/timestamp-query" {
		http.Error(w, "no query", http.StatusBadRequest)
		return
	}
	if !a.away.Load() { // else the answer to the request before comes again
		if err := os.WriteFile(a.path("q"), body, 0o600); err != nil {
			a.t.Error(err)
		}
		a.answer(a.path("q"), a.path("r"))
	}
	b, err := os.ReadFile(a.path("r"))
	if err != nil {
		a.t.Error(err)
	}
	w.Header().Set("Content-Type", "application/timestamp-reply")
	w.Write(b)
}

// TestHeadsAreStamped: a head is stamped over HTTP and by files that are carried, openssl
// accepts what is kept, verify checks it, and it leaves the site with a bundle.
func TestHeadsAreStamped(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	server := httptest.NewServer(a)
	defer server.Close()
	s := lab.NewSite(t, binary)
	s.Up()
	ca, out, shelf := a.path("ca.pem"), t.TempDir(), filepath.Join(s.Dir, "state", "audit", "log.stamps")
	s.Must(2, "audit", "anchor")
	s.Must(2, "audit", "anchor", "--tsa", server.URL, "--file", filepath.Join(out, "x"))
	run := func() string {
		s.Must(0, "run", "--", "git", "--version")
		s.Must(0, "audit", "verify")
		var list view.List
		s.Must(0, "ls", "--json").JSON(t, &list)
		return list.Jobs[0].Job
	}
	first := run()
	s.Must(0, "audit", "anchor", "--tsa", server.URL, "--tsa-ca", ca)
	s.Must(0, "audit", "anchor", "--tsa", server.URL) // has one already, or stamps a newer head

	run()
	query, answer := filepath.Join(out, "q"), filepath.Join(out, "r")
	s.Must(0, "audit", "anchor", "--tsq", query)
	a.answer(query, answer)
	s.Must(0, "audit", "anchor", "--tsr", answer, "--tsa-ca", ca)
	stamps, err := filepath.Glob(filepath.Join(shelf, "*.tsr"))
	if err != nil || len(stamps) < 2 {
		t.Fatalf("%q, %v", stamps, err)
	}
	for _, tsr := range stamps {
		a.openssl("ts", "-verify", "-data", strings.TrimSuffix(tsr, "tsr")+"checkpoint", "-in", tsr, "-CAfile", ca)
		a.openssl("ts", "-verify", "-queryfile", strings.TrimSuffix(tsr, "tsr")+"tsq", "-in", tsr, "-CAfile", ca)
	}
	var v struct {
		verdicts
		Stamps []struct {
			TSA     string `json:"tsa"`
			Vouched bool   `json:"vouched"`
		} `json:"stamps"`
	}
	s.Must(0, "audit", "verify", "--json", "--tsa-ca", ca).JSON(t, &v)
	if len(v.Stamps) != len(stamps) || v.Stamps[0].TSA != "CN=stamps of a test" || !v.Stamps[0].Vouched {
		t.Errorf("%+v", v)
	}

	// An authority that nobody vouches for, an old answer, and one that was changed.
	stranger := newAuthority(t)
	s.Must(1, "audit", "verify", "--tsa-ca", stranger.path("ca.pem"))
	run()
	a.away.Store(true)
	s.Must(1, "audit", "anchor", "--tsa", server.URL)
	good, err := os.ReadFile(stamps[0])
	if err != nil {
		t.Fatal(err)
	}
	for i := range good {
		if i%997 != 0 {
			continue
		}
		bad := append([]byte(nil), good...)
		bad[i] ^= 1
		if err := os.WriteFile(answer, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		s.Must(1, "audit", "anchor", "--tsr", answer, "--tsa-ca", ca)
	}

	bundle := filepath.Join(out, "bundle")
	s.Must(0, "audit", "export", first, "--to", bundle, "--stamped")
	a.openssl("ts", "-verify", "-data", filepath.Join(bundle, "checkpoint"), "-in", filepath.Join(bundle, "checkpoint.tsr"), "-CAfile", ca)
	s.Must(0, "audit", "verify", "--bundle", bundle, "--tsa-ca", ca)
	s.Must(1, "audit", "verify", "--bundle", bundle, "--tsa-ca", stranger.path("ca.pem"))
	if _, err := exec.LookPath("xxd"); err != nil && os.Getenv("BANKSMAN_REQUIRE") != "1" {
		return
	}
	if ok, said := alone(t, s, bundle); !ok || !strings.Contains(said, "stamped") {
		t.Errorf("the shell says %s", said)
	}
	if err := os.WriteFile(filepath.Join(bundle, "checkpoint.tsr"), good[:len(good)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	s.Must(1, "audit", "verify", "--bundle", bundle)
	if ok, said := alone(t, s, bundle); ok {
		t.Errorf("the shell says %s", said)
	}
}

// TestHeadsAreCommitted: each anchored head is a commit of its own in a git work tree,
// which touches nothing else, and the log has to have grown out of every one.
func TestHeadsAreCommitted(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	s.Up()
	repo := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", append([]string{"-C", repo, "-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	git("config", "user.name", "a test")
	git("config", "user.email", "test@example.org")
	if err := os.WriteFile(filepath.Join(repo, "mine"), []byte("not committed"), 0o600); err != nil {
		t.Fatal(err)
	}
	git("add", "mine")
	s.Must(1, "audit", "anchor", "--git", t.TempDir()) // no work tree
	for range 2 {
		s.Must(0, "run", "--", "git", "--version")
		s.Must(0, "audit", "verify")
		r := s.Must(0, "audit", "anchor", "--git", repo, "--json")
		var done struct {
			Where string `json:"where"`
		}
		r.JSON(t, &done)
		if commit := git("log", "-1", "--format=%H"); !strings.Contains(done.Where, commit) {
			t.Errorf("the newest commit is %s: %s", commit, r)
		}
	}
	files := strings.Fields(git("log", "--name-only", "--format="))
	if len(files) != 2 || git("status", "--porcelain", "mine") != "A  mine" {
		t.Errorf("committed %q, and %s", files, git("status", "--porcelain"))
	}
	for _, f := range files {
		s.Must(0, "audit", "verify", "--checkpoint", filepath.Join(repo, f))
	}
}
