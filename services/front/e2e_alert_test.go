package front_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/query"
)

// An agent whose provider refuses its log-in is stopped after three rounds, is
// not started again over a restart of everything, and goes on once a person
// has said that it may.
func TestRefusedLogInsStopTheAgentUntilAPersonStartsItAgain(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	text, err := os.ReadFile("../supervisor/testdata/claude-401.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	answer := filepath.Join(t.TempDir(), "answer.jsonl")
	if err := os.WriteFile(answer, text, 0o644); err != nil {
		t.Fatal(err)
	}
	mended := filepath.Join(t.TempDir(), "mended")
	project(t, s, "claude", "[ -e "+mended+" ] && exit 0\ncat "+answer+"\nexit 1\n", "")
	up := s.Up()
	lab.Eventually(t, "the monitor to stop the agent", func() bool { return loopState(t, s, "claude").State == query.LoopStopped })
	v := loopState(t, s, "claude")
	if v.Rounds < 3 || v.Rounds > 4 || v.Stop.By != "monitor" || v.Stop.Alert != "auth_failures-claude" {
		t.Errorf("%d rounds, stop %+v", v.Rounds, v.Stop)
	}
	openAlerts := func() query.AlertList {
		var list query.AlertList
		s.Must(0, "alert", "ls", "--json").JSON(t, &list)
		return list
	}
	if list := openAlerts(); len(list.Alerts) != 1 || list.Alerts[0].Severity != "critical" || list.Alerts[0].Project != "claude" {
		t.Errorf("alerts %+v", list)
	}
	if r := s.Must(0, "watch"); !strings.Contains(r.Stdout, "auth_failures-claude") || !strings.Contains(r.Stdout, "stopped by monitor") {
		t.Errorf("watch shows %s", r)
	}
	up.Stop()
	s.Up()
	if again := loopState(t, s, "claude"); again.State != query.LoopStopped || again.Rounds != v.Rounds {
		t.Errorf("after a restart: %+v", again)
	}
	if list := openAlerts(); len(list.Alerts) != 1 || list.Alerts[0].Episodes != 1 {
		t.Errorf("alerts after a restart %+v", list)
	}
	if err := os.WriteFile(mended, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.Must(0, "loop", "start", "claude", "--reason", "logged in again")
	lab.Eventually(t, "the alert to be cleared", func() bool { return len(openAlerts().Alerts) == 0 })
	lab.Eventually(t, "a round that works", func() bool {
		v := loopState(t, s, "claude")
		return v.Round != nil && v.Round.Outcome == "succeeded"
	})
	s.Must(0, "audit", "verify")
}
