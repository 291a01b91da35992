package evidence

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	modtlog "golang.org/x/mod/sumdb/tlog"

	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/tlog"
)

// stated is a log with a state: job-a is at 1021 and 1022, the state at 1024, and a job
// that has an event after it at 1023.
func stated(t testing.TB) *yard {
	y := newYard(t)
	for i := 2; i < 1021; i++ {
		y.propose(fmt.Sprint("job-x", i))
	}
	y.propose("job-a")
	y.deny("job-a")
	y.propose("job-b")
	y.deny("job-b")
	return y
}

func TestBundleHoldsWhatTheStateSays(t *testing.T) {
	y := stated(t)
	whole, later := y.export("job-a"), y.export("job-b")
	for _, kind := range []string{"entry", "directory", "tlog-proof"} {
		if _, err := os.Stat(path(whole, 1024, kind)); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path(later, 1024, kind)); err == nil {
			t.Errorf("a state's %s in the bundle of a job that went on", kind)
		}
	}
	other := y.export("job-x7")
	replace := func(kind, from, to string) func(string) {
		return func(dir string) {
			edit(t, path(dir, 1024, kind), func(b []byte) []byte {
				changed := bytes.Replace(b, []byte(from), []byte(to), 1)
				if bytes.Equal(changed, b) {
					t.Fatalf("%q is not in %s", from, b)
				}
				return changed
			})
		}
	}
	for _, c := range []struct {
		name   string
		dir    string
		change func(dir string)
		want   string
	}{
		{"nothing", whole, func(string) {}, ""},
		{"nothing, of the job that went on", later, func(string) {}, ""},
		{"another leaf", whole, replace("directory", "last 1022", "last 1021"), "i"},
		{"another place", whole, replace("directory", "index ", "index 1"), "i"},
		{"a space", whole, replace("directory", "index ", "index  "), "i"},
		{"a hash less", whole, func(dir string) {
			edit(t, path(dir, 1024, "directory"), func(b []byte) []byte { return b[:len(b)-45] })
		}, "i"},
		{"a line feed less", whole, func(dir string) {
			edit(t, path(dir, 1024, "directory"), func(b []byte) []byte { return b[:len(b)-1] })
		}, "i"},
		{"what it says of another job", whole, func(dir string) {
			edit(t, path(dir, 1024, "directory"), func([]byte) []byte {
				b, err := os.ReadFile(path(other, 1024, "directory"))
				if err != nil {
					t.Fatal(err)
				}
				return b
			})
		}, "i"},
		{"another root", whole, replace("entry", "root ", "root f"), "i"},
		{"no directory", whole, func(dir string) { remove(t, path(dir, 1024, "directory")) }, "i"},
		{"no state", whole, func(dir string) {
			remove(t, path(dir, 1024, "directory"), path(dir, 1024, "entry"), path(dir, 1024, "tlog-proof"))
		}, "c"},
		{"a payload of the state", whole, func(dir string) {
			if err := os.WriteFile(path(dir, 1024, "payload"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}, "i"},
		{"a directory of an event", whole, func(dir string) {
			if err := os.Link(path(dir, 1024, "directory"), path(dir, 1022, "directory")); err != nil {
				t.Fatal(err)
			}
		}, "i"},
		{"the state in the bundle of the job that went on", later, func(dir string) {
			for _, kind := range []string{"entry", "directory", "tlog-proof"} {
				if err := os.Link(path(whole, 1024, kind), path(dir, 1024, kind)); err != nil {
					t.Fatal(err)
				}
			}
		}, "i"},
	} {
		dir := filepath.Join(t.TempDir(), "b")
		if err := os.CopyFS(dir, os.DirFS(c.dir)); err != nil {
			t.Fatal(err)
		}
		c.change(dir)
		y.agree(c.name, dir, c.want)
	}
	if t.Failed() {
		return
	}
	for _, kind := range []string{"directory", "entry"} {
		everyByteOf(t, y, path(whole, 1024, kind), 1, 1)
	}
}

// agree wants both verifiers to find the same.
func (y *yard) agree(name, dir, want string) {
	y.t.Helper()
	r := y.verify(dir)
	if got := letters(r); (got == "") != (want == "") || !strings.Contains(got, want) {
		y.t.Errorf("%s: fails %q, want %q: %+v", name, got, want, r)
	}
	if t, ok := y.t.(*testing.T); ok {
		needShell(t)
	}
	if ok, said := y.shell(dir); ok != (want == "") {
		y.t.Errorf("%s: the shell: %v: %s", name, ok, said)
	}
}

// A state that contradicts the bundle is found where everything else of the log agrees
// with it, the signed head included.
func TestStateThatContradictsTheBundle(t *testing.T) {
	for last, want := range map[int64]string{6: "", 3: "c", 7: "c"} {
		y := story(t)
		y.agree(fmt.Sprint("last ", last), y.endWithState(y.export("job-a"), last), want)
	}
}

// endWithState makes of a bundle the one of a log that ends with a state, whose directory
// says of job-a what it is told to.
func (y *yard) endWithState(dir string, last int64) string {
	y.t.Helper()
	must := func(err error) {
		y.t.Helper()
		if err != nil {
			y.t.Fatal(err)
		}
	}
	log := y.seal()
	cp, err := log.Checkpoint()
	must(err)
	state := tlog.Entry{Kind: tlog.KindState, Size: cp.Size, Seq: y.seq, Jobs: 1}
	var hashes savedHashes
	for leaf := range cp.Size + 1 {
		var raw []byte
		if leaf < cp.Size {
			_, raw, err = log.Entry(leaf)
			must(err)
			state.Prev = sha256.Sum256(raw)
		} else {
			line := (&tlog.Listed{Last: last}).Line("job-a")
			state.Root = tlog.Hash(modtlog.RecordHash(line))
			raw = state.Encode()
			edit(y.t, filepath.Join(dir, laterFile), func(b []byte) []byte { return append(b, raw...) })
			must(os.WriteFile(path(dir, leaf, "entry"), raw, 0o644))
			must(os.WriteFile(path(dir, leaf, "directory"), directoryText("job-a", tlog.Listed{Last: last}), 0o644))
			must(os.WriteFile(path(dir, leaf, "tlog-proof"), nil, 0o644))
		}
		more, err := modtlog.StoredHashes(leaf, raw, hashes)
		must(err)
		hashes = append(hashes, more...)
	}
	root, err := modtlog.TreeHash(cp.Size+1, hashes)
	must(err)
	text := fmt.Sprintf("%s\n%d\n%s\n", site.CheckpointOrigin(yardOrigin), cp.Size+1, base64.StdEncoding.EncodeToString(root[:]))
	head, err := note.Sign(&note.Note{Text: text}, y.signer)
	must(err)
	must(os.WriteFile(filepath.Join(dir, checkpointFile), head, 0o644))
	proofs, err := filepath.Glob(filepath.Join(dir, "*.tlog-proof"))
	must(err)
	for _, at := range proofs {
		leaf, _, _ := leafOf(filepath.Base(at))
		if leaf == cp.Size-1 { // it ended the tree before
			must(os.Remove(at))
			continue
		}
		p := Proof{Index: leaf, Checkpoint: head}
		p.Path, err = modtlog.ProveRecord(cp.Size+1, leaf, hashes)
		must(err)
		must(os.WriteFile(at, p.Text(), 0o644))
	}
	return dir
}

type savedHashes []modtlog.Hash

func (s savedHashes) ReadHashes(at []int64) (out []modtlog.Hash, err error) {
	for _, x := range at {
		out = append(out, s[x])
	}
	return out, nil
}
