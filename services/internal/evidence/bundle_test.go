package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/banksman/banksman/events"
)

func TestBundleProvesAJob(t *testing.T) {
	y := story(t)
	dir := y.export("job-a")
	r := y.verify(dir)
	if !r.OK() || r.ExitCode() != 0 || r.Events != 2 || r.Job != "job-a" || r.Size != 9 {
		t.Errorf("%+v", r)
	}
	needShell(t)
	if ok, said := y.shell(dir); !ok || !strings.Contains(said, "2 events") {
		t.Errorf("the shell says %s", said)
	}
}

// TestBundleOfTheLastEvent: where nothing came later there is nothing to show.
func TestBundleOfTheLastEvent(t *testing.T) {
	y := story(t)
	dir := y.export("job-c")
	if _, err := os.Stat(filepath.Join(dir, laterFile)); err == nil {
		t.Error("a file for nothing")
	}
	if r := y.verify(dir); !r.OK() {
		t.Errorf("%+v", r)
	}
	needShell(t)
	if ok, said := y.shell(dir); !ok {
		t.Errorf("the shell says %s", said)
	}
}

func TestExportRefuses(t *testing.T) {
	y := story(t)
	r := y.seal()
	if _, err := Write(t.Context(), Source{Log: r}, "job-", filepath.Join(y.dir, "x")); err == nil || !strings.Contains(err.Error(), "3 jobs") {
		t.Errorf("an ambiguous prefix: %v", err)
	}
	if _, err := Write(t.Context(), Source{Log: r}, "nobody", filepath.Join(y.dir, "x")); !errors.Is(err, ErrNoJob) {
		t.Errorf("an unknown job: %v", err)
	}
	if _, err := Write(t.Context(), Source{Log: r}, "job-a", y.dir); err == nil {
		t.Error("a folder that is there was overwritten")
	}
	if left, _ := filepath.Glob(filepath.Join(y.dir, ".x*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// mutation changes a bundle of job-a; withheld says that the result still proves what
// is left.
type mutation struct {
	name   string
	change func(y *yard, dir string)
	want   string // letters of the verdicts that fail: i, a, c
}

func path(dir string, leaf int64, kind string) string {
	return filepath.Join(dir, fmt.Sprintf("%d.%s", leaf, kind))
}

func edit(t testing.TB, path string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, change(b), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if err := os.Remove(p); err != nil {
			t.Fatal(err)
		}
	}
}

// The story's leaves: 0 genesis, 1 trust, 2 b, 3 a, 4 b, 5 trust, 6 a, 7 c, 8 c.
var mutations = []mutation{
	{"nothing", func(*yard, string) {}, ""},
	{"a payload is withheld", func(y *yard, dir string) { remove(y.t, path(dir, 3, "payload")) }, ""},
	{"headers are withheld", func(y *yard, dir string) { remove(y.t, path(dir, 6, "headers")) }, ""},
	{"a payload is edited", func(y *yard, dir string) {
		edit(y.t, path(dir, 3, "payload"), func(b []byte) []byte { return bytes.Replace(b, []byte("true"), []byte("trux"), 1) })
	}, "ic"},
	{"a trust file is withheld", func(y *yard, dir string) { remove(y.t, path(dir, 5, "payload")) }, "a"},
	{"the last event is left out", func(y *yard, dir string) {
		for _, kind := range []string{"entry", "payload", "headers", "tlog-proof"} {
			remove(y.t, path(dir, 6, kind))
		}
	}, "c"},
	{"the first event is left out", func(y *yard, dir string) {
		for _, kind := range []string{"entry", "payload", "headers", "tlog-proof"} {
			remove(y.t, path(dir, 3, kind))
		}
	}, "c"},
	{"a trust file is left out", func(y *yard, dir string) {
		for _, kind := range []string{"entry", "payload", "headers", "tlog-proof"} {
			remove(y.t, path(dir, 1, kind))
		}
	}, "a"},
	{"a stranger's file", func(y *yard, dir string) {
		if err := os.WriteFile(filepath.Join(dir, "README"), []byte("believe me"), 0o644); err != nil {
			y.t.Fatal(err)
		}
	}, "i"},
	{"what came later is left out", func(y *yard, dir string) { remove(y.t, filepath.Join(dir, laterFile)) }, "ic"},
	{"what came later is cut", func(y *yard, dir string) {
		edit(y.t, filepath.Join(dir, laterFile), func(b []byte) []byte { return b[:bytes.LastIndex(b, entryStart)+1] })
	}, "c"},
	{"another job is named", func(y *yard, dir string) {
		edit(y.t, filepath.Join(dir, jobFile), func([]byte) []byte { return []byte("job-b\n") })
	}, "ic"},
	{"the checkpoint loses its signature", func(y *yard, dir string) {
		edit(y.t, filepath.Join(dir, checkpointFile), func(b []byte) []byte {
			return append(b[:bytes.Index(b, []byte("\n\n"))+2:len(b)], []byte("— stranger AAAAAAAA\n")...)
		})
	}, "ic"},
}

func letters(r Report) (out string) {
	for _, v := range []struct {
		letter string
		ok     bool
	}{{"i", r.Integrity.OK}, {"a", r.Authenticity.OK}, {"c", r.Completeness.OK}} {
		if !v.ok {
			out += v.letter
		}
	}
	return out
}

func TestChangedBundles(t *testing.T) {
	y := story(t)
	whole := y.export("job-a")
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "b")
			if err := os.CopyFS(dir, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			m.change(y, dir)
			r := y.verify(dir)
			if got := letters(r); (got == "") != (m.want == "") || m.want != "" && !strings.Contains(got, m.want[:1]) {
				t.Errorf("fails %q, want %q: %+v", got, m.want, r)
			}
			if strings.Contains(m.name, "withheld") && m.want == "" && len(r.Withheld) != 1 {
				t.Errorf("withheld %v", r.Withheld)
			}
			needShell(t)
			if ok, said := y.shell(dir); ok != (m.want == "") {
				t.Errorf("the shell: %v: %s", ok, said)
			}
		})
	}
}

// TestForgedEventInABundle: what the auditor logged honestly is judged again.
func TestForgedEventInABundle(t *testing.T) {
	for name, forge := range map[string]func(y *yard) events.Message{
		"no right": func(y *yard) events.Message {
			return y.message("worker", "job.denied", "default", "job-a", events.JobDenied{Basis: "policy", Ruling: events.Ruling{Code: "rule", Reason: "a test"}})
		},
		"changed after signing": func(y *yard) events.Message {
			m := y.message("gate", "job.denied", "default", "job-a", events.JobDenied{Basis: "policy", Ruling: events.Ruling{Code: "rule", Reason: "a test"}})
			m.Data = bytes.Replace(m.Data, []byte("a test"), []byte("a text"), 1)
			return m
		},
		"other place": func(y *yard) events.Message {
			y.last[events.Filter("job", "job-a")] = 1
			return y.message("gate", "job.denied", "default", "job-a", events.JobDenied{Basis: "policy", Ruling: events.Ruling{Code: "rule", Reason: "a test"}})
		},
		"other pool": func(y *yard) events.Message {
			return y.message("worker", "job.finished", "gpu", "job-a", events.JobFinished{Started: 1, Outcome: "succeeded"})
		},
		"key replaced since": func(y *yard) events.Message {
			m := y.message("gate", "job.denied", "default", "job-a", events.JobDenied{Basis: "policy", Ruling: events.Ruling{Code: "rule", Reason: "a test"}})
			y.file.Actors = slices.Clone(y.file.Actors)
			y.file.Actors[1].Sign = string(y.signers["proposer"].Public())
			y.trust()
			return m
		},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			y.propose("job-a")
			y.put(forge(y))
			dir := y.export("job-a")
			r := y.verify(dir)
			if letters(r) != "a" || r.FirstBadLeaf == nil {
				t.Errorf("%+v", r)
			}
			needShell(t)
			if ok, said := y.shell(dir); ok {
				t.Errorf("the shell passes it: %s", said)
			}
		})
	}
}

// TestOtherRootAndSite: a bundle is good for one site and one root only.
func TestOtherRootAndSite(t *testing.T) {
	y := story(t)
	dir := y.export("job-a")
	key := y.signers["gate"].Public()
	r, err := Verify(t.Context(), Options{Dir: dir, Origin: yardOrigin, RootKey: key})
	if err != nil || r.Authenticity.OK || r.Integrity.OK {
		t.Errorf("another root: %+v %v", r, err)
	}
	r, err = Verify(t.Context(), Options{Dir: dir, Origin: "site-other", RootKey: y.signers["root"].Public()})
	if err != nil || r.Integrity.OK || r.ExitCode() != 1 {
		t.Errorf("another site: %+v %v", r, err)
	}
	r, err = Verify(t.Context(), Options{Dir: dir, Origin: yardOrigin, RootKey: y.signers["root"].Public()})
	if err != nil || r.Freshness.OK || r.ExitCode() != 3 {
		t.Errorf("an old head: %+v %v", r, err)
	}
}
