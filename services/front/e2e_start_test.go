package front_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/services/internal/lab"
)

func TestInitMakesAPrivateSiteAndNeverOverwrites(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	err := filepath.WalkDir(s.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		public := strings.HasSuffix(path, ".pem") // certificates
		if mode := info.Mode().Perm(); d.IsDir() && mode != 0o700 || !d.IsDir() && !public && mode != 0o600 {
			t.Errorf("%s has mode %v", path, mode)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(filepath.Join(s.Dir, "banksman.toml"))
	r := s.Must(1, "init", "--json", "--no-passphrase")
	if !strings.Contains(r.Stderr, `"exists"`) {
		t.Errorf("want a coded refusal: %s", r)
	}
	if after, _ := os.ReadFile(filepath.Join(s.Dir, "banksman.toml")); string(after) != string(before) {
		t.Error("init changed a site")
	}
	s.Must(0, "config", "check")
}

func TestInitWithoutTerminalNamesBothFlags(t *testing.T) {
	t.Parallel()
	s := &lab.Site{}
	*s = *lab.NewSite(t, binary)
	s.Dir = filepath.Join(t.TempDir(), "other")
	for _, verb := range []string{"init", "up"} {
		r := s.Must(2, verb)
		if !strings.Contains(r.Stderr, "--passphrase-file") || !strings.Contains(r.Stderr, "--no-passphrase") {
			t.Errorf("want both flags named: %s", r)
		}
		if _, err := os.Stat(s.Dir); err == nil {
			t.Errorf("%s left something behind", verb)
		}
	}
}

func TestUpMakesASiteOnAnEmptyFolderOnly(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	r := s.Must(2, "up", "--no-passphrase")
	if !strings.Contains(r.Stderr, "--no-passphrase") {
		t.Errorf("want the flag named: %s", r)
	}
	s.Dir = filepath.Join(t.TempDir(), "fresh")
	up := s.Up("--no-passphrase")
	s.Must(0, "run", "--", "true")

	again := s.Must(1, "up")
	if !strings.Contains(again.Stderr, "process ") || !strings.Contains(again.Stderr, "up") {
		t.Errorf("a second up does not say who holds the folder: %s", again)
	}
	s.Must(0, "health")
	if code := up.Stop(); code != 0 {
		t.Errorf("up exited %d", code)
	}
	s.Must(1, "health")
	s.Up() // a site that ran before starts again
	s.Must(0, "run", "--", "true")
}

func TestStatusBeforeAnythingRuns(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	var status struct {
		Ready bool  `json:"ready"`
		Roles []any `json:"roles"`
	}
	s.Must(75, "status", "--json").JSON(t, &status)
	if status.Ready || status.Roles == nil || len(status.Roles) != 0 {
		t.Errorf("status %+v", status)
	}
	r := s.Must(75, "ls", "--json")
	if !strings.Contains(r.Stderr, `"bus_away"`) || !strings.Contains(r.Stderr, "banksman up") {
		t.Errorf("want a coded refusal that says what to do: %s", r)
	}
}

// The passphrase guards the person's key, and nothing that runs unattended.
func TestPassphraseGuardsDecisionsOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret, wrong := filepath.Join(dir, "secret"), filepath.Join(dir, "wrong")
	for path, text := range map[string]string{secret: "correct horse\n", wrong: "incorrect horse\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := lab.NewSite(t, unraced)
	s.Dir = filepath.Join(dir, "site")
	s.Must(0, "init", "--passphrase-file", secret)
	s.Up()
	s.Must(0, "run", "--", "true")
	s.Must(0, "propose", "--", "sh", "-c", "true")
	j := pending(t, s)
	s.Must(2, "approve", j.Job) // no terminal to ask on
	r := s.Must(1, "approve", "--json", j.Job, "--passphrase-file", wrong)
	if !strings.Contains(r.Stderr, `"wrong_passphrase"`) {
		t.Errorf("want a coded refusal: %s", r)
	}
	s.Must(0, "approve", j.Job, "--passphrase-file", secret)
}

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	for _, args := range [][]string{
		{"run"}, {"propose", "--"}, {"show"}, {"ls", "--no-such-flag"}, {"up", "--without", "nobody"},
		{"ls", "--status", "nothing"}, {"no-such-verb"}, {"propose", "--env", "novalue", "--", "true"},
	} {
		r := s.Must(2, args...)
		if !strings.HasPrefix(r.Stderr, "banksman: ") || r.Stdout != "" {
			t.Errorf("want a message on standard error: %s", r)
		}
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "banksman.toml"), []byte("[worker]\nslotz = 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := s.Must(78, "config", "check")
	if !strings.Contains(r.Stderr, "line 2") || !strings.Contains(r.Stderr, `"slots"`) {
		t.Errorf("want the line and the nearest key: %s", r)
	}
}
