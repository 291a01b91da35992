package logserver_test

import (
	"encoding/json/v2"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/grants"
	"github.com/banksman/banksman/services/internal/lab/need"
)

// standAlone runs a real nats-server on the static configuration.
type standAlone struct {
	t    *testing.T
	dir  string
	addr string
	ca   string
	cmd  *exec.Cmd
}

func newStandAlone(t *testing.T, s *site) *standAlone {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "nats-server")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/nats-io/nats-server/v2").CombinedOutput(); err != nil {
		t.Logf("%s", out)
		need.Missing(t, "a nats-server built by the go command is missing")
	}
	text, err := grants.StandAlone([]string{"default"})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "banksman.conf"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "actors"), 0o700); err != nil {
		t.Fatal(err)
	}
	sa := &standAlone{t: t, dir: dir}
	sa.actors(s)
	ca, cert, key := secure(t)
	sa.ca = ca
	sa.cmd = exec.Command(program, "-c", filepath.Join(dir, "banksman.conf"), "-l", filepath.Join(dir, "log"), "--ports_file_dir", dir)
	sa.cmd.Env = append(os.Environ(), "BANKSMAN_STORE="+filepath.Join(dir, "store"), "BANKSMAN_LISTEN=127.0.0.1:-1",
		"BANKSMAN_TLS_CERT="+cert, "BANKSMAN_TLS_KEY="+key)
	if err := sa.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { defer close(exited); _ = sa.cmd.Wait() }()
	t.Cleanup(func() {
		_ = sa.cmd.Process.Signal(syscall.SIGTERM)
		<-exited
		if log, err := os.ReadFile(filepath.Join(dir, "log")); err == nil && t.Failed() {
			t.Logf("%s", log)
		}
	})
	eventually(t, func() bool {
		select {
		case <-exited:
			t.Fatal("the server ended")
		default:
		}
		sa.addr = sa.listens()
		return sa.addr != ""
	})
	return sa
}

// listens reads the address that the server has taken from the file in which it
// says so, or nothing when it has not yet.
func (sa *standAlone) listens() string {
	files, _ := filepath.Glob(filepath.Join(sa.dir, "*.ports"))
	if len(files) == 0 {
		return ""
	}
	var ports struct {
		Nats []string `json:"nats"`
	}
	data, err := os.ReadFile(files[0])
	if err != nil || json.Unmarshal(data, &ports) != nil || len(ports.Nats) == 0 {
		return ""
	}
	_, addr, _ := strings.Cut(ports.Nats[0], "://")
	return addr
}

// actors writes the users of the trust file.
func (sa *standAlone) actors(s *site) {
	sa.t.Helper()
	users, err := grants.Users(s.trust, []string{"default"})
	if err != nil {
		sa.t.Fatal(err)
	}
	for _, a := range grants.Accounts {
		path := filepath.Join(sa.dir, "actors", grants.FileName(a))
		if err := os.WriteFile(path, []byte(grants.UsersFile(users[a])), 0o600); err != nil {
			sa.t.Fatal(err)
		}
	}
}

func (sa *standAlone) config(s *site, actor string) bus.Config {
	a, _ := s.trust.Find(actor)
	return bus.Config{URL: "tls://" + sa.addr, CAFile: sa.ca, Actor: actor, Role: a.Roles[0], Origin: origin, Login: s.logins[actor]}
}

func TestStandAloneServer(t *testing.T) {
	s := newSite(t, events.RoleBus, events.RoleWorker, events.RoleProposer, events.RoleReader)
	sa := newStandAlone(t, s)
	admin := connect(t, sa.config(s, "bus"))
	layout := bus.Layout{Pools: []string{"default"}, MaxBytes: 64 << 20, OutputMaxBytes: 64 << 20}
	for range 2 { // what was made passes the check
		if err := admin.Provision(t.Context(), layout); err != nil {
			t.Fatal(err)
		}
	}
	stop, err := admin.ServeDesk(t.Context(), layout.Pools)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	worker := connect(t, sa.config(s, "worker")).Appender(nobody{})
	if seq, err := worker.Append(t.Context(), events.For("job.started", "default", "job-1", "worker"), 0, events.JobStarted{}); err != nil || seq != 1 {
		t.Fatalf("append = %d, %v", seq, err)
	}
	var denied *bus.Denied
	_, err = worker.Append(t.Context(), events.For("job.approved", "default", "job-1", "worker"), 1, events.JobApproved{})
	if !errors.As(err, &denied) {
		t.Fatalf("a worker approves: %v", err)
	}
	reader := connect(t, sa.config(s, "reader"))
	if last, err := reader.LastSeq(t.Context()); err != nil || last != 1 {
		t.Fatalf("last sequence %d, %v", last, err)
	}

	s.add(t, "worker-b", events.RoleWorker)
	sa.actors(s)
	if err := sa.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		c, err := bus.Connect(t.Context(), sa.config(s, "worker-b"))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	if !reader.Connected() {
		t.Error("a reload dropped the reader")
	}
	if log, err := os.ReadFile(filepath.Join(sa.dir, "log")); err != nil || !strings.Contains(string(log), "Reloaded") {
		t.Errorf("the server's log does not tell of the reload: %v", err)
	}
}
