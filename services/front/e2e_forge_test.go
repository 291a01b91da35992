package front_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/query"
)

// Whoever owns the bus but holds no approver's key makes nothing run. Each
// forgery is stored with the bus's own key, taints its job, is named by the
// auditor, and never starts anything.
func TestForgedApprovalsStartNothing(t *testing.T) {
	t.Parallel()
	forge, err := lab.Build(t.TempDir(), "services/internal/lab/forge")
	if err != nil {
		t.Fatal(err)
	}
	s := lab.NewSite(t, binary)
	s.Up()
	dir := t.TempDir()
	propose := func(mark string) string {
		r := s.Must(0, "propose", "--cwd", dir, "--", "touch", mark)
		return settled(t, s, r)
	}
	proposeAs := func(token, mark string) string {
		other := *s
		other.Env = append(other.Env, "BANKSMAN_TOKEN="+token)
		r := other.Must(0, "propose", "--cwd", dir, "--", "touch", mark)
		return settled(t, s, r)
	}
	store := func(job, how string) (string, error) {
		cmd := exec.Command(forge, "-dir", s.Dir, "-job", job, "-how", how)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	honest := propose("honest")
	s.Must(0, "approve", honest)
	lab.Eventually(t, "the honest job to end", func() bool { return show(t, s, honest).Status == lifecycle.Succeeded })

	s.Must(0, "actor", "add", "gone", "--role", "person")
	s.Must(0, "actor", "revoke", "gone")
	for how, code := range map[string]string{
		"unknown":          "unknown_actor",
		"key:gone":         "unknown_actor",
		"key:worker":       "no_right",
		"other-proposal":   "other_proposal",
		"stranger":         "wrong_key",
		"proposer":         "no_right",
		"nobody":           "malformed",
		"expired":          "payload",
		"other-resolution": "other_resolution",
		"replay:" + honest: "bad_signature",
	} {
		t.Run(how, func(t *testing.T) {
			job := propose("forged")
			if out, err := store(job, how); err != nil {
				t.Fatalf("the forgery was not stored: %v\n%s", err, out)
			}
			var tainted string
			lab.Eventually(t, "the job to be tainted", func() bool {
				tainted = show(t, s, job).Tainted
				return tainted != ""
			})
			if tainted != code {
				t.Errorf("tainted as %q, want %q", tainted, code)
			}
			lab.Eventually(t, "the auditor to report it", func() bool {
				return strings.Contains(s.Must(0, "events", "--json").Stdout, `"code":"`+code+`","job":"`+job+`"`)
			})
			r := s.Must(1, "approve", "--json", job)
			if !strings.Contains(r.Stderr, `"tainted"`) {
				t.Errorf("a tainted job could be approved: %s", r)
			}
			if j := show(t, s, job); j.Status != lifecycle.Pending || len(j.Attempts) != 0 {
				t.Errorf("the forgery moved the job to %s", j.Status)
			}
		})
	}
	t.Run("one's own proposal", func(t *testing.T) {
		person := me(t, s)
		token := "bmt_" + strings.Repeat("p", 43)
		if err := os.WriteFile(filepath.Join(s.Dir, "tokens", "person."+person), []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		job := proposeAs(token, "forged")
		if r := s.Must(1, "approve", "--json", job); !strings.Contains(r.Stderr, `"self_approval"`) {
			t.Errorf("want a coded refusal: %s", r)
		}
		if out, err := store(job, "self"); err != nil {
			t.Fatalf("the forgery was not stored: %v\n%s", err, out)
		}
		lab.Eventually(t, "the job to be tainted", func() bool { return show(t, s, job).Tainted == "self_approval" })
	})
	t.Run("the same approval again", func(t *testing.T) {
		if out, err := store(honest, "replay:"+honest); err != nil {
			t.Fatalf("the forgery was not stored: %v\n%s", err, out)
		}
		lab.Eventually(t, "the job to be tainted", func() bool { return show(t, s, honest).Tainted == "bad_signature" })
		if j := show(t, s, honest); len(j.Attempts) != 1 {
			t.Errorf("it ran %d times", len(j.Attempts))
		}
	})
	t.Run("the proposer's own rights", func(t *testing.T) {
		job := propose("forged")
		out, err := store(job, "denied")
		if err == nil || !strings.Contains(out, "may not use") {
			t.Errorf("want the bus to refuse it by name: %v %s", err, out)
		}
		if show(t, s, job).Tainted != "" {
			t.Error("a refused message tainted the job")
		}
	})
	if _, err := os.Stat(filepath.Join(dir, "forged")); err == nil {
		t.Error("a forged approval made something run")
	}
	var audit query.AuditStatus
	s.Must(0, "audit", "status", "--json").JSON(t, &audit)
	if audit.Violations < 6 || audit.Dispatch != "open" {
		t.Errorf("audit status %+v: forgeries are counted, and do not close dispatch", audit)
	}
	var v verdicts
	s.Must(1, "audit", "verify", "--json").JSON(t, &v)
	if !v.Integrity.OK || v.Authenticity.OK || !v.Completeness.OK || !v.Freshness.OK {
		t.Errorf("want authenticity alone to fail: %+v", v)
	}
}

// settled waits until a proposal waits for a person, and returns its job.
func settled(t *testing.T, s *lab.Site, r lab.Result) string {
	t.Helper()
	id := strings.TrimSpace(r.Stdout)
	lab.Eventually(t, "the job to wait for a person", func() bool {
		j := show(t, s, id)
		return j.Status == lifecycle.Pending && !j.Unresolved
	})
	return id
}

// me is the person who decides from the site's folder.
func me(t *testing.T, s *lab.Site) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.Dir, "banksman.toml"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "[person]")
	_, after, _ = strings.Cut(after, "actor = \"")
	actor, _, ok := strings.Cut(after, "\"")
	if !ok {
		t.Fatal("the configuration names no person")
	}
	return actor
}
