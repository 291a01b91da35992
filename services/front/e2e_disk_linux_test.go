package front_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/lab/need"
	"github.com/banksman/banksman/services/internal/query"
)

// says waits until the status of the site shows a text.
func says(t *testing.T, s *lab.Site, text string) {
	t.Helper()
	lab.Eventually(t, "status to say "+text, func() bool { return strings.Contains(s.Run("status").Stdout, text) })
}

// The disk on which a worker remembers its attempts is full, and then read-only
// while the bus is away as well. What runs ends, with its result and its output;
// nothing new starts and status says why; and everything goes on by itself as soon
// as there is room.
func TestWorkerHasNoRoom(t *testing.T) {
	t.Parallel()
	f, y := newFleet(t)
	disk := lab.NewDisk(t, filepath.Join(f.Site.Dir, "state", "worker"), "256k")
	f.Up(lab.Roles[:]...)
	o := f.Site.Observe()

	open := y.Close("full")
	f.Site.Propose(y.Job("full", "prints", "3000000", "full"))
	o.Await("full", lifecycle.Running)
	free := disk.Fill()
	f.Site.Propose(y.Job("refused", "quick"))
	says(t, f.Site, "no space left on device")
	open()
	j := o.Await("full", lifecycle.Succeeded)
	if r := j.Current().Result; r.Stdout.Bytes != 3000011 || r.Stdout.StoredBytes+r.Stdout.CutBytes != r.Stdout.Bytes || r.Stdout.StoredBytes < 64<<10 {
		t.Errorf("output: %+v", r.Stdout)
	}
	if j := o.Job("refused"); j.Status != lifecycle.Approved {
		t.Errorf("without room the next job is %s", j.Status)
	}
	free()
	o.Await("refused", lifecycle.Succeeded)

	open = y.Close("locked")
	f.Site.Propose(y.Job("locked", "waits", "locked"))
	lab.Eventually(t, "the job to be executed", func() bool { return y.Count("starts", "locked") == 1 })
	unlock := disk.Lock()
	f.Site.Propose(y.Job("later", "quick"))
	says(t, f.Site, "read-only file system")
	f.Kill("bus")
	open()
	lab.Eventually(t, "the command to end", func() bool { return y.Count("ends", "locked") == 1 && len(y.Left()) == 0 })
	f.Start("bus")
	o.Await("locked", lifecycle.Succeeded)
	unlock()
	o.Await("later", lifecycle.Succeeded)
	names := []string{"full", "refused", "locked", "later"}
	once(t, o, y, names)
	o.Check(y, names)
}

// The disk of a job's folder is full: that is the job's own failure, and the next
// one is none the worse. A job's folder is removed while it runs: it runs on. A job
// whose folder is gone before anybody has looked at it is not failed: the worker
// says so, and it runs where the folder is, or once it is there.
func TestJobHasNoRoomOrFolder(t *testing.T) {
	t.Parallel()
	f, y := newFleet(t)
	small, gone := filepath.Join(y.Work(), "small"), filepath.Join(y.Work(), "gone")
	lab.NewDisk(t, small, "64k")
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	f.Up(lab.Roles[:]...)
	o := f.Site.Observe()
	full := y.Job("full", "fills")
	full.Cwd = small
	f.Site.Propose(full)
	j := o.Await("full", lifecycle.Failed)
	if r := j.Current().Result; r.ExitCode != 28 || r.Error != "" {
		t.Errorf("the result: %+v", r)
	}
	open := y.Close("gate")
	leaves := y.Job("leaves", "waits", "gate")
	leaves.Cwd = gone
	f.Site.Propose(leaves)
	lab.Eventually(t, "the job to be executed", func() bool { return y.Count("starts", "leaves") == 1 })
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	open()
	o.Await("leaves", lifecycle.Succeeded)

	missing := y.Job("missing", "quick")
	missing.Cwd = gone
	f.Site.Propose(missing)
	o.Eventually("the worker to say so", func() bool { return len(o.Job("missing").Declines) == 1 })
	if j := o.Job("missing"); j.Declines[0].Code != "no_such_dir" || j.Status.Final() {
		t.Errorf("the job is %s, declined as %+v", j.Status, j.Declines[0])
	}
	if err := os.Mkdir(gone, 0o700); err != nil {
		t.Fatal(err)
	}
	f.Up("worker 2")
	o.Await("missing", lifecycle.Succeeded)
	once(t, o, y, []string{"leaves", "missing"})
	o.Check(y, []string{"full", "leaves", "missing"})
}

// A pool has two hosts, and only one of them has the jobs' folder. The other one
// says so of each job and fails none.
func TestHostWithoutTheFolder(t *testing.T) {
	t.Parallel()
	need.Root(t, "give a worker files of its own")
	unshare := need.Program(t, "unshare")
	f, y := newFleet(t)
	f.Up(lab.Roles[:len(lab.Roles)-1]...)
	o := f.Site.Observe()
	f.Site.Must(0, "actor", "add", "w2", "--role", "worker", "--pool", "default")
	outpost := f.Site.Outpost("w2")
	outpost.Set("worker", "actor", `"w2"`)
	dir, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	here := filepath.Join(y.Work(), "here")
	if err := os.Mkdir(here, 0o700); err != nil {
		t.Fatal(err)
	}
	bare := outpost.Fleet(dir)
	bare.Wrap = []string{unshare, "--mount", "sh", "-c", `mount -t tmpfs none "$0" && exec "$@"`, y.Work()}
	bare.Up("worker")
	names, jobs := series(y, "there", 6, "quick")
	for i := range jobs {
		jobs[i].Cwd = here
	}
	f.Site.Propose(jobs[:3]...)
	o.Eventually("the host without the folder to say so", func() bool {
		n := 0
		for _, j := range o.Jobs {
			n += len(j.Declines)
		}
		return n == 3
	})
	f.Up("worker")
	f.Site.Propose(jobs[3:]...)
	o.AwaitFinal(len(names))
	once(t, o, y, names)
	for _, j := range o.Jobs {
		if a := j.Current(); a != nil && a.Worker != "worker" {
			t.Errorf("job %s ran on %s", j.ID, a.Worker)
		}
	}
	bare.Stop("worker")
	o.Check(y, names)
}

// The disk is full when a round's work is to be kept: the round says that nothing was
// kept and why, the work stays as it is, and nothing half written is in the way of the
// next round, whose work is kept once there is room.
func TestNoRoomToKeepWork(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	repo := filepath.Join(t.TempDir(), "notes")
	lab.NewDisk(t, repo, "16m")
	projectIn(t, s, repo, "notes", "head -c 4194304 /dev/urandom >data.bin\n", "max_rounds = 1\n")
	ballast := filepath.Join(repo, ".git", "ballast")
	if err := os.WriteFile(ballast, make([]byte, 9<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	index, err := os.ReadFile(filepath.Join(repo, ".git", "index"))
	if err != nil {
		t.Fatal(err)
	}
	s.Up()
	lab.Eventually(t, "the first round", func() bool { return loopState(t, s, "notes").State == query.LoopHalted })
	first := endedRounds(t, s, "notes")
	if len(first) != 1 || first[0].Salvage == nil || first[0].Salvage.Ref != "" || !strings.Contains(first[0].Salvage.Error, "No space left") {
		t.Errorf("the round on a full disk: %+v, %+v", first, first[0].Salvage)
	}
	if info, err := os.Stat(filepath.Join(repo, "data.bin")); err != nil || info.Size() != 4<<20 {
		t.Errorf("the work itself: %v, %v", info, err)
	}
	if now, err := os.ReadFile(filepath.Join(repo, ".git", "index")); err != nil || !bytes.Equal(now, index) {
		t.Errorf("the index has changed: %v", err)
	}
	err = filepath.WalkDir(filepath.Join(repo, ".git"), func(path string, d fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".lock") || strings.HasPrefix(d.Name(), "tmp_") {
			t.Errorf("%s was left behind", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	s.Must(0, "loop", "start", "notes", "--reason", "there is room again")
	lab.Eventually(t, "the second round", func() bool { return len(endedRounds(t, s, "notes")) == 2 })
	lab.Eventually(t, "its work", func() bool { r := endedRounds(t, s, "notes")[0]; return r.Salvage != nil && r.Salvage.Ref != "" })
	noViolation(t, s)
}
