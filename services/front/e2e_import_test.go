package front_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/services/internal/lab"
)

// What another program has kept can be looked at, and never passes for something
// that banksman has decided.
func TestImportTheHistoryOfAnotherProgram(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	up := s.Up()
	const folder = "../internal/imported/testdata/"
	trail, list := folder+"audit.jsonl", folder+"list.json"
	before := len(s.Must(0, "events", "--json").Stdout)
	if r := s.Must(0, "import", "agent-safe", "--audit", trail, "--list", list); !strings.Contains(r.Stdout, "4 jobs") || !strings.Contains(r.Stdout, "holds together: 12 entries") {
		t.Errorf("want what was found: %s", r)
	}
	if r := s.Must(0, "ls", "--imported"); !strings.Contains(r.Stdout, "AGENT-SAFE") || !strings.Contains(r.Stdout, "denied") {
		t.Errorf("want the jobs: %s", r)
	}
	if r := s.Must(0, "show", "cccccccc"); !strings.Contains(r.Stdout, "neither decided nor run") || !strings.Contains(r.Stdout, "not on a friday") {
		t.Errorf("want the job, marked: %s", r)
	}
	if r := s.Must(0, "show", "--json", "aaaaaaaa"); !strings.Contains(r.Stdout, `"imported": "agent-safe"`) || strings.Contains(r.Stdout, "ghp_") {
		t.Errorf("want it marked and without secrets: %s", r)
	}
	if r := s.Must(0, "ls"); strings.Contains(r.Stdout, "cccccccc") {
		t.Errorf("it passes for a job of banksman: %s", r)
	}
	s.Must(1, "approve", "cccccccc")
	s.Must(1, "show", "no-such-job")
	if after := len(s.Must(0, "events", "--json").Stdout); after != before {
		t.Error("an import stored events")
	}

	text, err := os.ReadFile(trail)
	if err != nil {
		t.Fatal(err)
	}
	forged := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(forged, []byte(strings.Replace(string(text), `"decided_by": "bob"`, `"decided_by": "eve"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if r := s.Must(1, "import", "agent-safe", "--json", "--audit", forged); !strings.Contains(r.Stderr, `"broken_chain"`) || !strings.Contains(r.Stderr, "line 10") {
		t.Errorf("want the line: %s", r)
	}
	up.Stop()
	if r := s.Must(0, "import", "agent-safe", "--audit", forged, "--partial"); !strings.Contains(r.Stdout, "line 10 does not follow") {
		t.Errorf("want as far as it holds: %s", r)
	}
	s.Must(2, "import", "agent-safe")
	s.Must(1, "import", "agent-safe", "--list", trail)
	s.Must(0, "ls", "--imported", "--json")
}
