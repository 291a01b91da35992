package auditor

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/witness"
)

// TestHeadsAreCosigned runs an auditor beside a real witness, and a witness that is
// away: the first one's cosignatures are stored, and the log goes on.
func TestHeadsAreCosigned(t *testing.T) {
	s := newSite(t)
	own, err := keys.LoadCheckpointKeys(s.layout.CheckpointKey())
	if err != nil {
		t.Fatal(err)
	}
	key := signer(t)
	public, err := key.Public().Bytes()
	if err != nil {
		t.Fatal(err)
	}
	w, err := witness.NewSigner("w.example.org", public, key.Sign)
	if err != nil {
		t.Fatal(err)
	}
	server, err := witness.NewServer(t.TempDir(), w, []string{own[0].Verifier()}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	http := httptest.NewServer(server)
	defer http.Close()
	other := signer(t)
	otherPublic, _ := other.Public().Bytes()
	away, err := witness.NewSigner("away.example.org", otherPublic, other.Sign)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "witnesses")
	text := fmt.Sprintf("witness a %s %s\nwitness b %s http://127.0.0.1:1\ngroup g any a b\nquorum g\n", w.Verifier(), http.URL, away.Verifier())
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	policy, err := loadWitnesses(file)
	if err != nil {
		t.Fatal(err)
	}
	r := s.audit(nil, func(c *Config) { c.WitnessPolicy = file })
	s.sealed(s.propose("a").last)
	deadline := time.After(20 * time.Second)
	for tick := time.Tick(10 * time.Millisecond); ; <-tick {
		b, err := os.ReadFile(filepath.Join(s.layout.AuditLog(), "checkpoint"))
		if err == nil {
			_, err = policy.Judge(b, time.Now())
		}
		if err == nil {
			break
		}
		select {
		case <-deadline:
			t.Fatal(err)
		default:
		}
	}
	r.stop(t)
	o := Options{LogDir: s.layout.AuditLog(), HeadFile: s.layout.AuditHead(), Origin: s.plan.Origin, RootKey: s.plan.RootKey(), Witnesses: policy, AskWitnesses: true}
	rep, err := Verify(t.Context(), o)
	if err != nil || !rep.Integrity.OK || !rep.Freshness.OK || !strings.Contains(rep.Freshness.Reason, "cosignatures") {
		t.Errorf("%+v %v", rep, err)
	}
	o.Now = func() time.Time { return time.Now().Add(48 * time.Hour) }
	if rep, err = Verify(t.Context(), o); err != nil || rep.ExitCode() != 3 {
		t.Errorf("two days later: %+v %v", rep, err)
	}
	http.Close()
	if rep, err = Verify(t.Context(), o); err != nil || !rep.Integrity.OK || len(rep.Notes) < 2 {
		t.Errorf("no witness answers: %+v %v", rep, err)
	}
}
