package host_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/host/embed"
	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/site"
)

// patience bounds every wait; reaching it is a failure.
const patience = 30 * time.Second

// asMain makes the test binary one of banksman's.
const asMain = "HOST_TEST_MAIN"

func TestMain(m *testing.M) {
	if how := os.Getenv(asMain); how != "" {
		gate := &actor{name: "approver", token: "gate", power: events.RoleGate, run: func(ctx context.Context, env *host.Env) error {
			env.Report(true, "")
			if how == "fails" {
				return errors.New("it was told to fail")
			}
			<-ctx.Done()
			return nil
		}}
		os.Exit(host.Main("probe", embed.Start, gate))
	}
	os.Exit(m.Run())
}

// actor is a role that does what the test says.
type actor struct {
	name, token string
	power       events.Role
	run         func(ctx context.Context, env *host.Env) error
}

// table is a configuration that only has its place.
type table struct {
	ActorName string `toml:"actor" doc:"Actor."`
}

func (a *actor) Name() string            { return a.name }
func (a *actor) Power() events.Role      { return a.power }
func (a *actor) Section() config.Section { return config.Section{Name: "gate", Into: &table{}} }
func (a *actor) Actor() string           { return a.token }
func (a *actor) Run(ctx context.Context, env *host.Env) error {
	return a.run(ctx, env)
}

// newSite makes a site whose bus listens on nothing that others use.
func newSite(t *testing.T) site.Layout {
	t.Helper()
	plan, err := site.NewPlan("Ada")
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(t.TempDir(), "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	b := host.DefaultBus()
	b.Listen, b.MaxBytes, b.Output = l.Addr().String(), 64<<20, 16<<20
	s := host.SiteConfig{Origin: plan.Origin, RootKey: string(plan.RootKey()), BusURL: "tls://" + b.Listen}
	layout := site.Layout{Dir: filepath.Join(home, "banksman")}
	err = plan.Create(layout, site.Contents{
		Config: config.Render(config.Section{Name: "site", Into: &s}, config.Section{Name: "bus", Into: &b}, config.Section{Name: "gate", Into: &table{}}),
		Policy: []byte("version = 1\n"), BusURL: s.BusURL, Now: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return layout
}

func options(l site.Layout, roles ...host.Role) host.Options {
	return host.Options{Layout: l, Command: "up", Roles: roles, Embed: embed.Start, Version: "test", Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

// diary is what roles did, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) note(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

// keeps is a role that notes when it is told to end and when it has ended. What
// it says in between proves that its bus is still there.
func (d *diary) keeps(name, token string, power events.Role) *actor {
	return &actor{name: name, token: token, power: power, run: func(ctx context.Context, env *host.Env) error {
		env.Report(true, "")
		<-ctx.Done()
		d.note(name + " drains")
		if _, err := env.Bus.LastSeq(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		d.note(name + " ended")
		return nil
	}}
}

func TestRolesDrainInOrder(t *testing.T) {
	var d diary
	ctx, signal := context.WithCancel(t.Context())
	o := options(newSite(t), d.keeps("proposer", "proposer", events.RoleProposer), d.keeps("approver", "gate", events.RoleGate), d.keeps("auditor", "auditor", events.RoleAuditor))
	ready := 0
	o.Ready = func() {
		ready++
		signal()
	}
	if err := host.Run(ctx, o); err != nil {
		t.Fatal(err)
	}
	want := []string{"proposer drains", "proposer ended", "approver drains", "approver ended", "auditor drains", "auditor ended"}
	if !slices.Equal(d.lines, want) || ready != 1 {
		t.Errorf("%q, ready %d times", d.lines, ready)
	}
	s, err := host.ReadStatus(t.Context(), o.Layout)
	if err != nil || s.Ready || len(s.Roles) != 0 {
		t.Errorf("afterwards: %+v, %v", s, err)
	}
}

func TestRoleThatFailsEndsTheProcess(t *testing.T) {
	var d diary
	boom := errors.New("boom")
	ready := make(chan struct{})
	fails := &actor{name: "approver", token: "gate", power: events.RoleGate, run: func(_ context.Context, env *host.Env) error {
		env.Report(true, "")
		<-ready
		return boom
	}}
	o := options(newSite(t), d.keeps("proposer", "proposer", events.RoleProposer), fails, d.keeps("auditor", "auditor", events.RoleAuditor))
	o.Ready = func() { close(ready) }
	err := host.Run(t.Context(), o)
	if !errors.Is(err, boom) || !strings.HasPrefix(err.Error(), "approver: ") {
		t.Errorf("%v", err)
	}
	if want := []string{"proposer drains", "proposer ended", "auditor drains", "auditor ended"}; !slices.Equal(d.lines, want) {
		t.Errorf("%q", d.lines)
	}
}

func TestRoleWithoutKeyIsNamed(t *testing.T) {
	l := newSite(t)
	if err := os.Remove(l.SignKey("gate")); err != nil {
		t.Fatal(err)
	}
	err := host.Run(t.Context(), options(l, &actor{name: "approver", token: "gate", power: events.RoleGate}))
	if err == nil || !strings.HasPrefix(err.Error(), "approver: ") || !strings.Contains(err.Error(), l.SignKey("gate")) {
		t.Errorf("%v", err)
	}
}

func TestSignalWhileTheBusIsAway(t *testing.T) {
	ctx, signal := context.WithCancel(t.Context())
	o := options(newSite(t), &actor{name: "approver", token: "gate", power: events.RoleGate})
	o.Embed = nil // joins a bus that nobody runs
	done := make(chan error, 1)
	go func() { done <- host.Run(ctx, o) }()
	eventually(t, func() bool {
		s, err := host.ReadStatus(t.Context(), o.Layout)
		return err == nil && len(s.Roles) == 1 && !s.Ready && s.Roles[0].Reason == "waiting for the bus"
	})
	signal()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestInstances(t *testing.T) {
	l := newSite(t)
	o := options(l, &actor{name: "approver", token: "gate", power: events.RoleGate})
	o.Instance = "../../x"
	if err := host.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "instance name") {
		t.Errorf("%v", err)
	}
}

// eventually looks again until something is so.
func eventually(t *testing.T, so func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(patience)
	for !so() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("it never was so")
		}
	}
}

// process is the test binary as one of banksman's.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	mu   sync.Mutex
	said strings.Builder
	news chan string // lines of its log
}

func run(t *testing.T, l site.Layout, how string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0], append([]string{"--dir", l.Dir}, args...)...), news: make(chan string, 100)}
	p.cmd.Env = append(os.Environ(), asMain+"="+how)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.news)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			p.mu.Lock()
			p.said.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
			select {
			case p.news <- lines.Text():
			default:
			}
		}
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
	})
	return p
}

// ready waits until it has said so.
func (p *process) ready() *process {
	p.t.Helper()
	limit := time.After(patience)
	for {
		select {
		case line, ok := <-p.news:
			if !ok {
				p.t.Fatalf("it ended instead of getting ready: %s", p.text())
			}
			if strings.Contains(line, "msg=ready") {
				return p
			}
		case <-limit:
			p.t.Fatalf("it was never ready: %s", p.text())
		}
	}
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.said.String()
}

// exit waits for its end and returns its status and what it said.
func (p *process) exit() (int, string) {
	p.t.Helper()
	for range p.news {
	}
	p.cmd.Wait()
	return p.cmd.ProcessState.ExitCode(), p.text()
}

func TestOneProcessARole(t *testing.T) {
	l := newSite(t)
	first := run(t, l, "runs").ready()
	code, text := run(t, l, "runs").exit()
	if code != 1 || !strings.Contains(text, fmt.Sprintf("process %d (banksman probe, since ", first.cmd.Process.Pid)) || !strings.Contains(text, "stop that process first") {
		t.Errorf("the second: %d, %s", code, text)
	}
	s, err := host.ReadStatus(t.Context(), l)
	if err != nil || !s.Ready || len(s.Roles) != 2 || s.Roles[0].Role != "bus" || s.Roles[1].Role != "approver" {
		t.Errorf("%+v, %v", s, err)
	}
	first.cmd.Process.Signal(syscall.SIGTERM)
	if code, text := first.exit(); code != 0 {
		t.Errorf("after SIGTERM: %d, %s", code, text)
	}

	// One that is killed leaves its socket, and no claim.
	killed := run(t, l, "runs").ready()
	killed.cmd.Process.Kill()
	killed.exit()
	s, err = host.ReadStatus(t.Context(), l)
	if err != nil || s.Ready || len(s.Roles) != 1 || !strings.Contains(s.Roles[0].Reason, `"probe" is not running; it ended without taking leave`) {
		t.Errorf("%+v, %v", s, err)
	}
	again := run(t, l, "runs").ready()
	if s, err := host.ReadStatus(t.Context(), l); err != nil || !s.Ready || len(s.Roles) != 2 {
		t.Errorf("%+v, %v", s, err)
	}
	again.cmd.Process.Signal(os.Interrupt)
	if code, text := again.exit(); code != 0 {
		t.Errorf("after an interrupt: %d, %s", code, text)
	}
}

func TestExitCodes(t *testing.T) {
	l := newSite(t)
	text, err := os.ReadFile(l.Config())
	if err != nil {
		t.Fatal(err)
	}
	configure := func(text string) {
		t.Helper()
		if err := os.WriteFile(l.Config(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		what, how string
		config    string
		args      []string
		code      int
		says      string
	}{
		{"a role that fails", "fails", string(text), nil, 1, "approver: it was told to fail"},
		{"help", "runs", string(text), []string{"--help"}, 0, "-log-level"},
		{"an unknown flag", "runs", string(text), []string{"--nonsense"}, 2, "nonsense"},
		{"an argument", "runs", string(text), []string{"start"}, 2, `"start" is no flag`},
		{"an unknown level", "runs", string(text), []string{"--log-level", "loud"}, 2, `--log-level "loud"`},
		{"an unknown key", "runs", string(text) + "\n[auditor]\n[gate2]\n", nil, 78, `no table [gate2]; did you mean "gate"?`},
		{"a key of its own that is wrong", "runs", strings.Replace(string(text), "[gate]", "[gate]\nactr = 1", 1), nil, 78, `has no key "actr"`},
		{"a useless value", "runs", strings.Replace(string(text), "root_key = \"", "root_key = \"x", 1), nil, 78, "root_key"},
		{"no TOML", "runs", "[", nil, 78, "line 1"},
	} {
		configure(c.config)
		code, said := run(t, l, c.how, c.args...).exit()
		if code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%s: %d %s, want %d and %q", c.what, code, said, c.code, c.says)
		}
	}
	if code, said := run(t, site.Layout{Dir: t.TempDir()}, "runs").exit(); code != 78 || !strings.Contains(said, "'banksman init'") {
		t.Errorf("without a site: %d %s", code, said)
	}
}

// A process that hangs is not ready, and keeps nobody waiting for long.
func TestStatusOfWhatDoesNotAnswer(t *testing.T) {
	l := newSite(t)
	if s, err := host.ReadStatus(t.Context(), l); err != nil || s.Ready || s.Roles == nil || len(s.Roles) != 0 {
		t.Errorf("nothing runs: %+v, %v", s, err)
	}
	if err := os.MkdirAll(l.StatusDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	deaf, err := net.Listen("unix", filepath.Join(l.StatusDir(), "deaf.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	if err := os.WriteFile(filepath.Join(l.StatusDir(), "note.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := host.ReadStatus(t.Context(), l)
	if err != nil || s.Ready || len(s.Roles) != 1 || !strings.HasPrefix(s.Roles[0].Reason, `"deaf" does not answer`) {
		t.Errorf("%+v, %v", s, err)
	}
}
