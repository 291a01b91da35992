package front_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
)

// auditStatus is what the auditor says, as soon as it says anything.
func auditStatus(t *testing.T, s *lab.Site, what string, is func(query.AuditStatus) bool) query.AuditStatus {
	t.Helper()
	var found query.AuditStatus
	lab.Eventually(t, what, func() bool {
		r := s.Run("audit", "status", "--json")
		if r.Code != 0 {
			return false
		}
		found = query.AuditStatus{}
		r.JSON(t, &found)
		return is(found)
	})
	return found
}

// noViolation wants the auditor to have found nothing that breaks a rule.
func noViolation(t *testing.T, s *lab.Site) {
	t.Helper()
	if a := auditStatus(t, s, "the auditor", func(query.AuditStatus) bool { return true }); a.Violations != 0 || a.Dispatch != "open" {
		t.Errorf("the auditor has found %d violations, dispatch is %s", a.Violations, a.Dispatch)
	}
}

// A bit flips on the disk of the bus, in an event that was audited. The server tells
// nothing; the auditor names the event, nothing starts, an alert is raised, and an
// administrator, who alone may, opens dispatch again.
func TestAFlippedBitIsFoundAndAcknowledged(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	up := s.Up()
	for range 4 {
		s.Must(0, "run", "--", "git", "--version")
	}
	s.Must(0, "actor", "add", "p2", "--role", "person")
	s.Must(1, "audit", "ack", "--reason", "nothing is wrong")
	if code := up.Stop(); code != 0 {
		t.Fatalf("up exited %d", code)
	}
	blocks, err := filepath.Glob(filepath.Join(s.Dir, "state", "bus", "jetstream", "*", "streams", "BANKSMAN", "msgs", "*.blk"))
	if err != nil || len(blocks) != 1 {
		t.Fatal(blocks, err)
	}
	block, err := os.ReadFile(blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	block[len(block)/2] ^= 1
	if err := os.WriteFile(blocks[0], block, 0o600); err != nil {
		t.Fatal(err)
	}

	s.Start("up", "--log-level", "info")
	status := auditStatus(t, s, "the fault", func(a query.AuditStatus) bool { return len(a.Faults) > 0 && a.Faults[0].Acknowledgeable })
	if f := status.Faults[0]; status.Dispatch != "closed" || f.Code != "broken_stream" || !strings.Contains(f.Detail, "the stream has lost events") {
		t.Errorf("status %+v", status)
	}
	if r := s.Must(0, "audit", "status"); !strings.Contains(r.Stdout, "fault broken_stream: ") || !strings.Contains(r.Stdout, "banksman audit ack --reason") {
		t.Errorf("status for people: %s", r)
	}
	lab.Eventually(t, "the alert", func() bool { return strings.Contains(s.Run("alert", "ls").Stdout, "integrity-stream") })
	s.Must(0, "propose", "--", "git", "--version")
	lab.Eventually(t, "the job to be approved and to wait", func() bool {
		var list view.List
		s.Must(0, "ls", "--json").JSON(t, &list)
		return len(list.Jobs) > 0 && list.Jobs[0].Status == lifecycle.Approved && list.Jobs[0].Waiting != ""
	})
	if r := s.Must(1, "audit", "verify"); !strings.Contains(r.Stdout, "no admin has acknowledged") {
		t.Errorf("verify before: %s", r)
	}

	if r := as(t, s, "p2").Must(1, "audit", "ack", "--reason", "let me", "--json"); !strings.Contains(r.Stderr, `"no_right"`) {
		t.Errorf("a person who is no administrator: %s", r)
	}
	s.Must(2, "audit", "ack")
	if r := s.Must(0, "audit", "ack", "--reason", "one bit, the log has the event"); !strings.Contains(r.Stdout, "1 fault(s) acknowledged; dispatch is open") {
		t.Errorf("ack: %s", r)
	}
	lab.Eventually(t, "the job to run", func() bool {
		var list view.List
		s.Must(0, "ls", "--json").JSON(t, &list)
		return list.Jobs[0].Status == lifecycle.Succeeded
	})
	lab.Eventually(t, "the alert to be cleared", func() bool { return !strings.Contains(s.Run("alert", "ls").Stdout, "integrity-stream") })
	if screen := dialogue(t, s, []string{"audit", "verify"}); !strings.Contains(screen, "#] ") {
		t.Errorf("no progress on a terminal: %q", screen)
	}
	if r := s.Must(0, "audit", "verify"); !strings.Contains(r.Stdout, "intact with 1 acknowledged fault(s)") || !strings.Contains(r.Stdout, "one bit, the log has the event") {
		t.Errorf("verify after: %s", r)
	}
}
