package front_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/view"
)

// trustNow is the trust file in force.
func trustNow(t *testing.T, s *lab.Site) events.TrustPublished {
	t.Helper()
	var file events.TrustPublished
	s.Must(0, "actor", "ls", "--json").JSON(t, &file)
	return file
}

// TestCheckpointKeyIsRotatedWithoutAFlagDay: while both keys sign, who knows only the
// old one and who knows only the new one can both verify a head; afterwards the old
// heads stay good, and the old private key is nowhere.
func TestCheckpointKeyIsRotatedWithoutAFlagDay(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	up := s.Up()
	layout, out := site.Layout{Dir: s.Dir}, t.TempDir()
	path := filepath.Join(layout.AuditLog(), "checkpoint")
	secret := func() string {
		text, err := os.ReadFile(layout.CheckpointKey())
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	signedBy := func(head, vkey string) bool {
		text, err := os.ReadFile(head)
		if err != nil {
			t.Fatal(err)
		}
		v, err := note.NewVerifier(vkey)
		if err != nil {
			t.Fatal(err)
		}
		_, err = note.Open(text, note.VerifierList(v))
		return err == nil
	}
	run := func() string {
		s.Must(0, "run", "--", "git", "--version")
		s.Must(0, "audit", "verify") // waits for the seal
		var list view.List
		s.Must(0, "ls", "--json").JSON(t, &list)
		return list.Jobs[0].Job
	}
	export := func(name, job string) {
		s.Must(0, "audit", "export", job, "--to", filepath.Join(out, name))
		s.Must(0, "audit", "anchor", "--file", filepath.Join(out, name+".anchor"))
	}
	export("before", run())
	old, oldSecret := trustNow(t, s).CheckpointKeys[0], secret()

	if r := s.Must(1, "actor", "retire", "auditor", "--checkpoint", "--json"); !strings.Contains(r.Stderr, `"error"`) {
		t.Errorf("there is nothing to retire: %s", r)
	}
	s.Must(2, "actor", "rotate", "gate", "--key", "checkpoint")
	s.Must(0, "actor", "rotate", "auditor", "--key", "checkpoint")
	s.Must(0, "actor", "rotate", "auditor", "--key", "checkpoint") // goes on with the same one
	file := trustNow(t, s)
	if len(file.CheckpointKeys) != 2 || file.CheckpointKeys[1] != old {
		t.Fatalf("the trust file lists %q", file.CheckpointKeys)
	}
	during := run()
	if !signedBy(path, old) || !signedBy(path, file.CheckpointKeys[0]) {
		t.Error("a head of the overlap is not signed by both keys")
	}
	export("during", during)
	if code := up.Stop(); code != 0 {
		t.Errorf("up exited %d", code)
	}
	up = s.Up()
	run()
	if !signedBy(path, old) || !signedBy(path, file.CheckpointKeys[0]) {
		t.Error("after a restart, a head is not signed by both keys")
	}

	s.Must(0, "actor", "retire", "auditor", "--checkpoint")
	if after := trustNow(t, s); len(after.CheckpointKeys) != 1 || after.CheckpointKeys[0] != file.CheckpointKeys[0] {
		t.Errorf("the trust file lists %q", after.CheckpointKeys)
	}
	export("after", run())
	if signedBy(path, old) || !signedBy(path, file.CheckpointKeys[0]) {
		t.Error("after the rotation, a head is not signed by the new key alone")
	}
	if found := filesWith(t, s.Dir, oldSecret); len(found) > 0 {
		t.Errorf("the old private key is in %q", found)
	}
	origin, root := strings.Trim(s.Setting("site", "origin"), `"`), strings.Trim(s.Setting("site", "root_key"), `"`)
	for _, name := range []string{"before", "during", "after"} {
		s.Must(0, "audit", "verify", "--checkpoint", filepath.Join(out, name+".anchor"))
		bundle := filepath.Join(out, name)
		s.Must(0, "audit", "verify", "--bundle", bundle)
		if _, err := exec.LookPath("xxd"); err == nil {
			if text, err := exec.Command("../../scripts/verify.sh", bundle, origin, root).CombinedOutput(); err != nil {
				t.Errorf("the shell: %s: %v: %s", name, err, text)
			}
		} else if os.Getenv("BANKSMAN_REQUIRE") == "1" {
			t.Error("xxd is missing")
		}
	}
	up.Stop()
}

// TestActorKeyIsRotated: both keys count until the old one is retired; what that one
// signed before stays believed, and what it signs afterwards is refused by name.
func TestActorKeyIsRotated(t *testing.T) {
	t.Parallel()
	forge, err := lab.Build(t.TempDir(), "services/internal/lab/forge")
	if err != nil {
		t.Fatal(err)
	}
	s := lab.NewSite(t, binary)
	up := s.Up()
	layout, person, dir := site.Layout{Dir: s.Dir}, me(t, s), t.TempDir()
	stolen := filepath.Join(dir, "stolen.sign")
	text, err := keys.ReadSecret(layout.SignKey(person))
	if err == nil {
		err = os.WriteFile(stolen, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	propose := func() string { return settled(t, s, s.Must(0, "propose", "--cwd", dir, "--", "touch", "x")) }
	forged := func(job string) {
		t.Helper()
		if out, err := exec.Command(forge, "-dir", s.Dir, "-job", job, "-how", "stolen:"+stolen).CombinedOutput(); err != nil {
			t.Fatalf("not stored: %v\n%s", err, out)
		}
	}
	ends := func(job string) {
		t.Helper()
		lab.Eventually(t, "the job to end", func() bool { return show(t, s, job).Status == lifecycle.Succeeded })
	}
	first := propose()
	s.Must(0, "approve", first)
	next, err := keys.GenerateSigner() // of a rotation that was interrupted
	if err == nil {
		err = keys.WriteSigner(keys.Next(layout.SignKey(person)), next, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Must(0, "actor", "rotate", person, "--key", "sign,login")
	file := trustNow(t, s)
	if line, _ := file.Find(person); line.Sign != string(next.Public()) || line.OldSign == "" || line.OldLogin == "" {
		t.Errorf("the rotation did not go on: %+v", line)
	}
	if r := s.Must(1, "actor", "retire", person, "--json"); !strings.Contains(r.Stderr, "new_key_unused") {
		t.Errorf("retired before the new key was used: %s", r)
	}
	if after, err := keys.ReadSecret(layout.SignKey(person)); err != nil || string(after) == string(text) {
		t.Errorf("the old key is in its place: %v", err)
	}
	second, third := propose(), propose()
	forged(second) // the old key still counts
	ends(second)
	s.Must(0, "approve", third) // the new key counts, over a connection of the new log-in key
	ends(third)
	s.Must(1, "actor", "rotate", person) // one rotation at a time
	if err := keys.DestroySecret(keys.Next(layout.SignKey(person))); err != nil {
		t.Fatal(err)
	}
	s.Must(0, "actor", "retire", person)
	file = trustNow(t, s)
	if line, _ := file.Find(person); line.OldSign != "" || line.OldLogin != "" {
		t.Errorf("%+v", line)
	}
	late := propose()
	forged(late)
	lab.Eventually(t, "the job to be tainted", func() bool { return show(t, s, late).Tainted == "retired_key" })
	ends(first)

	// A service goes on with its old key until it is started again.
	s.Must(0, "actor", "rotate", "gate")
	s.Must(0, "approve", propose())
	if code := up.Stop(); code != 0 {
		t.Errorf("up exited %d", code)
	}
	s.Up()
	before := propose()
	s.Must(0, "actor", "retire", "gate")
	for _, job := range []string{before, propose()} {
		s.Must(0, "approve", job)
		ends(job)
	}

	var v verdicts
	r := s.Must(1, "audit", "verify", "--json")
	r.JSON(t, &v)
	if !v.Integrity.OK || v.Authenticity.OK || !v.Completeness.OK || strings.Count(r.Stdout, "retired_key") == 0 {
		t.Errorf("want authenticity alone to fail, for one event: %+v", v)
	}
}

// filesWith lists the files below a folder that hold a text.
func filesWith(t *testing.T, dir, text string) []string {
	t.Helper()
	var found []string
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return nil // files come and go in a live folder
		}
		if body, err := os.ReadFile(path); err == nil && strings.Contains(string(body), text) {
			found = append(found, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
