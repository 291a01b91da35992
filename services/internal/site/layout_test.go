package site

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// environment plays the environment of a process.
func environment(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

var service = map[string]string{
	"CREDENTIALS_DIRECTORY": "/run/credentials/banksman-worker.service",
	"STATE_DIRECTORY":       "/var/lib/banksman/worker:/var/lib/banksman/more",
	"RUNTIME_DIRECTORY":     "/run/banksman/worker",
}

func TestServiceFindsItsFilesWhereSystemdPutThem(t *testing.T) {
	l, err := At("", environment(service))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{
		"config": l.Config(), "login": l.LoginKey("worker"), "sign": l.SignKey("worker"), "ca": l.CA(), "bus": l.BusCert(),
		"genesis": l.Genesis(), "checkpoint": l.CheckpointKey(), "status": l.StatusDir(), "state": l.WorkerState("worker"),
		"socket": l.ProposerSocket(), "tokens": l.Tokens(),
	}
	secrets := service["CREDENTIALS_DIRECTORY"]
	want := map[string]string{
		"config": secrets + "/banksman.toml", "login": secrets + "/worker.login", "sign": secrets + "/worker.sign", "ca": secrets + "/ca.pem",
		"bus": secrets + "/bus.pem", "genesis": secrets + "/genesis.json", "checkpoint": secrets + "/checkpoint.key",
		"status": "/run/banksman/worker/status", "state": "/var/lib/banksman/worker/state/worker/worker",
		"socket": "/run/banksman/worker/proposer/proposer.sock", "tokens": "/run/banksman/worker/tokens",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("where files lie (-want +got):\n%s", diff)
	}
	private := []string{"/var/lib/banksman/worker", secrets, "/run/banksman/worker"}
	if diff := cmp.Diff(private, l.Private()); diff != "" {
		t.Errorf("private folders (-want +got):\n%s", diff)
	}
}

func TestNamedFolderHoldsEverything(t *testing.T) {
	dir := t.TempDir()
	l, err := At(dir, environment(service))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Layout{Dir: dir}, l); diff != "" {
		t.Errorf("layout (-want +got):\n%s", diff)
	}
	if got, want := l.SignKey("gate"), filepath.Join(dir, "keys", "gate.sign"); got != want {
		t.Errorf("sign key in %s, want %s", got, want)
	}
	if diff := cmp.Diff([]string{dir}, l.Private()); diff != "" {
		t.Errorf("private folders (-want +got):\n%s", diff)
	}
}

// A unit that has credentials but no state, or the other way round, is no
// service of this site: half of either layout would mix two of them.
func TestHalfAServiceIsNone(t *testing.T) {
	for name := range service {
		if name == "RUNTIME_DIRECTORY" {
			continue
		}
		l, err := At("", environment(map[string]string{name: service[name]}))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(Layout{Dir: DefaultDir()}, l); diff != "" {
			t.Errorf("with %s alone (-want +got):\n%s", name, diff)
		}
	}
}
