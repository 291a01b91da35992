package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/loop"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/lab/stage"
	"github.com/banksman/banksman/services/internal/policy"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/standing"
	"github.com/banksman/banksman/services/internal/trust"
)

// mortal names the file by which a test tells a supervisor process of its
// own, which it is going to kill, who it is.
const mortal = "BANKSMAN_TEST_MORTAL"

// life is what such a process has to know.
type life struct {
	URL, Dir, Sign, Login, Config string
	Root                          keys.PublicKey
}

// liveAndDie is the supervisor process: the role as its users run it.
func liveAndDie(path string) error {
	var l life
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err != nil {
		return err
	}
	sign, err1 := keys.LoadSigner(l.Sign, nil)
	login, err2 := keys.LoadLogin(l.Login)
	role := New()
	if err := errors.Join(err1, err2, config.Load(l.Config, role.Section())); err != nil {
		return err
	}
	conn, err := bus.Connect(context.Background(), bus.Config{
		URL: l.URL, Actor: role.Actor(), Role: role.Power(), Origin: stage.Origin, Login: login, Name: "mortal",
	})
	if err != nil {
		return err
	}
	return role.Run(context.Background(), &host.Env{
		Layout: site.Layout{Dir: l.Dir}, Actor: role.Actor(), Version: "test", Log: slog.New(slog.DiscardHandler),
		Bus: conn, Append: conn.Appender(stage.Signing(sign)), Report: func(bool, string) {},
		Standing: standing.New(conn, trust.New(stage.Origin, l.Root), policy.Env{DataDir: l.Dir, Homes: []string{"/root"}}),
	})
}

// A supervisor that is killed takes its agent's processes with it; its next
// start says that the round was interrupted and keeps what it has left.
func TestKilledSupervisor(t *testing.T) {
	y := newYard(t)
	dir := y.repo("demo")
	pipe := filepath.Join(y.ground, "pipe")
	must(t, unix.Mkfifo(pipe, 0o600))
	agent := y.agent("agent", fmt.Sprintf("echo half > half.txt; setsid sh -c 'echo here; exec sleep 600' > %s & sleep 600", pipe))
	plan := y.plan(dir, agent)
	home := t.TempDir()
	l := life{
		URL: y.Server.ClientURL(), Dir: y.dir, Root: y.Root.Public(),
		Sign: filepath.Join(home, "sign"), Login: filepath.Join(home, "login"), Config: filepath.Join(home, "banksman.toml"),
	}
	must(t, os.Chmod(home, 0o700))
	must(t, keys.WriteSigner(l.Sign, y.Signer("supervisor"), nil))
	must(t, keys.WriteLogin(l.Login, y.Login("supervisor")))
	must(t, os.WriteFile(l.Config, fmt.Appendf(nil, "[projects.demo]\nwork_dir = %q\nagent = [%q]\nprompt_file = %q\n", dir, agent, plan.PromptFile), 0o600))
	text, err := json.Marshal(l)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(home, "life"), text, 0o600))
	process := exec.Command(os.Args[0])
	process.Env = append(os.Environ(), mortal+"="+filepath.Join(home, "life"))
	process.Stderr = stage.Writer(t)
	must(t, process.Start())

	r, err := os.Open(pipe) // returns when the agent's daemon writes
	must(t, err)
	defer r.Close()
	word := make([]byte, 5)
	_, err = r.Read(word)
	must(t, err)
	must(t, process.Process.Kill())
	_ = process.Wait()
	must(t, r.SetReadDeadline(time.Now().Add(patience)))
	if n, err := r.Read(word); n != 0 || err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a process of the agent outlived the supervisor: %d, %v", n, err)
	}
	if p := y.project("demo"); p.Round.Status != loop.Running {
		t.Errorf("round %q after the kill", p.Round.Status)
	}

	plan.MaxRounds = 1
	h := y.hire("supervisor", machine(t), map[string]Project{"demo": plan}).run()
	y.await("demo", "halted", func(p loop.Project) bool { return p.Loop.Status == loop.Halted })
	round, err := y.read.Round(t.Context(), events.RoundID("demo", 1))
	must(t, err)
	if round.End.Outcome != outcomeInterrupted || round.Salvage == nil || y.git(dir, "show", round.Salvage.Ref+":half.txt") != "half" {
		t.Errorf("%+v, salvage %+v", round.End, round.Salvage)
	}
	h.leave()
	left, err := os.ReadDir(h.shift.tends[0].journal.Dir())
	must(t, err)
	for _, e := range left {
		if strings.HasSuffix(e.Name(), recordSuffix) {
			t.Errorf("%s is left", e.Name())
		}
	}
}

func machine(t *testing.T) string {
	name, err := os.Hostname()
	must(t, err)
	return name
}
