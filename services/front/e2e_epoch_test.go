package front_test

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/view"
)

// epochs are the verdicts on all epochs.
type epochs struct {
	verdicts
	Epochs []struct {
		Origin  string `json:"origin"`
		EndedBy string `json:"ended_by"`
	} `json:"epochs"`
	FirstBadIn string `json:"first_bad_in"`
}

// TestEpochIsClosed: an epoch is closed beside a job that runs, one that waits for a
// person and one that has ended. Nobody notices but the log and the store.
func TestEpochIsClosed(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	up := s.Up()
	ended := proposed(t, s, "--key", "once", "--", "git", "--version")
	becomes(t, s, ended, lifecycle.Succeeded)
	gate := filepath.Join(t.TempDir(), "go-on")
	running := proposed(t, s, "--", "sh", "-c", "while ! test -e "+gate+"; do sleep 0.05; done")
	s.Must(0, "approve", running)
	becomes(t, s, running, lifecycle.Running)
	ran := filepath.Join(t.TempDir(), "ran")
	waits := proposed(t, s, "--", "touch", ran)
	pending(t, s)

	s.Must(0, "audit", "close-epoch", "--reason", "the year is over")
	lab.Eventually(t, "the stream to be thinned", func() bool {
		_, err := os.Stat(filepath.Join(s.Dir, "state", "bus.epoch"))
		return err == nil
	})
	s.Ready()
	if j := show(t, s, ended); j.Status != lifecycle.Succeeded {
		t.Errorf("the ended job is %s", j.Status)
	}
	if r := patient(t, s, "replay", ended); !strings.Contains(r.Stdout, "git version") {
		t.Errorf("the output of the ended job: %s", r)
	}
	if again := proposed(t, s, "--key", "once", "--", "git", "--version"); again != ended {
		t.Errorf("the key of an epoch before is a new job: %s", again)
	}
	s.Must(1, "propose", "--key", "once", "--", "git", "log")
	s.Must(0, "approve", waits)
	becomes(t, s, waits, lifecycle.Succeeded)
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	becomes(t, s, running, lifecycle.Succeeded)
	var list view.List
	s.Must(0, "ls", "--json").JSON(t, &list)
	if len(list.Jobs) != 3 {
		t.Errorf("%d jobs are listed", len(list.Jobs))
	}
	var r epochs
	s.Must(0, "audit", "verify", "--json").JSON(t, &r)
	if len(r.Epochs) != 1 || !strings.HasSuffix(r.Epochs[0].Origin, "/epoch-1") || r.Epochs[0].EndedBy != "requested" {
		t.Errorf("epochs: %+v", r.Epochs)
	}
	for name, job := range map[string]string{"carried": waits, "ended": ended} {
		bundle := filepath.Join(t.TempDir(), name)
		s.Must(0, "audit", "export", job, "--to", bundle)
		s.Must(0, "audit", "verify", "--bundle", bundle)
	}
	s.Must(0, "doctor")
	if code := up.Stop(); code != 0 {
		t.Errorf("up exited %d", code)
	}
	s.Up().Stop() // both logs are taken up again
	s.Must(0, "audit", "verify")
	for folder, in := range map[string]string{"log": "epoch-1", "epoch-2": "epoch-2"} {
		spoilt(t, filepath.Join(s.Dir, "state", "audit", folder, "raw.log"), func() {
			var r epochs
			s.Must(1, "audit", "verify", "--json").JSON(t, &r)
			if r.Integrity.OK || r.FirstBadIn != in || !strings.Contains(r.Integrity.Reason, in+": ") {
				t.Errorf("a flipped bit in %s: %+v, first bad in %q", folder, r.Integrity, r.FirstBadIn)
			}
		})
	}
}

// proposed proposes and returns the job's id.
func proposed(t *testing.T, s *lab.Site, args ...string) string {
	t.Helper()
	return strings.TrimSpace(patient(t, s, append([]string{"propose"}, args...)...).Stdout)
}

// becomes waits until a job has a status.
func becomes(t *testing.T, s *lab.Site, id string, status lifecycle.Status) {
	t.Helper()
	lab.Eventually(t, "job "+id+" to be "+string(status), func() bool {
		var j view.Detail
		patient(t, s, "show", "--json", id).JSON(t, &j)
		return j.Status == status
	})
}

// patient runs a verb again while the bus or a role is away, as both are when an epoch
// begins, for a moment.
func patient(t *testing.T, s *lab.Site, args ...string) (r lab.Result) {
	t.Helper()
	lab.Eventually(t, "an answer", func() bool {
		r = s.Run(args...)
		return r.Code != 75 && !strings.Contains(r.Stderr, "nobody answers")
	})
	if r.Code != 0 {
		t.Fatalf("want exit 0: %s", r)
	}
	return r
}

// spoilt flips a bit in the middle of a file, looks, and flips it back.
func spoilt(t *testing.T, path string, look func()) {
	t.Helper()
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Clone(whole)
	other[len(other)/2] ^= 1
	for _, text := range [][]byte{other, whole} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(text, other) {
			look()
		}
	}
}

// TestEpochsEndByThemselves: with a small bound one epoch follows another while jobs are
// proposed and run without a pause. Every job runs once, every log goes on after the one
// before, and an index that is lost is made again from all of them.
func TestEpochsEndByThemselves(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	s.Set("auditor", "epoch_jobs", "10")
	up := s.Up()
	done := filepath.Join(t.TempDir(), "done")
	waits := proposed(t, s, "--", "touch", done)
	pending(t, s)
	var jobs []string
	for range 3 {
		for range 12 {
			jobs = append(jobs, proposed(t, s, "--", "git", "--version"))
		}
		for _, id := range jobs[len(jobs)-12:] {
			becomes(t, s, id, lifecycle.Succeeded)
		}
	}
	lab.Eventually(t, "the third epoch", func() bool { return thinned(s) >= "epoch-3" })
	s.Ready()
	patient(t, s, "approve", waits)
	becomes(t, s, waits, lifecycle.Succeeded)
	var r epochs
	patient(t, s, "audit", "verify", "--json").JSON(t, &r)
	if len(r.Epochs) < 2 || r.Epochs[0].EndedBy != "jobs" {
		t.Errorf("epochs: %+v", r.Epochs)
	}
	up.Stop()
	if err := os.Remove(filepath.Join(s.Dir, "state", "audit", "index.db")); err != nil {
		t.Fatal(err)
	}
	s.Up()
	for _, id := range append(jobs, waits) {
		var j view.Detail
		patient(t, s, "show", "--json", id).JSON(t, &j)
		if j.Status != lifecycle.Succeeded || len(j.Attempts) != 1 {
			t.Errorf("job %s is %s after %d attempts", id, j.Status, len(j.Attempts))
		}
	}
}

// TestEpochSurvivesKills: the whole site is killed at any moment while an epoch is closed,
// and started again. There is one new epoch for each that was asked for at most, nothing of
// what was open is lost, and every log goes on after the one before.
func TestEpochSurvivesKills(t *testing.T) {
	t.Parallel()
	kills := 4
	if soak() {
		kills = 60
	}
	random := rand.New(rand.NewPCG(seed(t), 0))
	s := lab.NewSite(t, binary)
	up := s.Up()
	done := filepath.Join(t.TempDir(), "done")
	waits := proposed(t, s, "--", "touch", done)
	pending(t, s)
	for range kills {
		asked := make(chan struct{})
		go func() {
			defer close(asked)
			s.Run("audit", "close-epoch") // it may find nobody
		}()
		lab.Within(time.Duration(random.IntN(3000))*time.Millisecond, func() bool { return false })
		up.Kill()
		<-asked
		up = s.Up()
	}
	patient(t, s, "approve", waits)
	becomes(t, s, waits, lifecycle.Succeeded)
	var status struct {
		Epoch int `json:"epoch"`
	}
	lab.Eventually(t, "the stream to be thinned for the newest epoch", func() bool { // a request may be read late
		patient(t, s, "audit", "status", "--json").JSON(t, &status)
		return status.Epoch == 1 || thinned(s) == "epoch-"+strconv.Itoa(status.Epoch)
	})
	if status.Epoch > kills+1 {
		t.Errorf("epoch %d after %d requests", status.Epoch, kills)
	}
	var r epochs
	patient(t, s, "audit", "verify", "--json").JSON(t, &r)
	if len(r.Epochs) != status.Epoch-1 {
		t.Errorf("%d epochs before epoch %d", len(r.Epochs), status.Epoch)
	}
	if left, _ := filepath.Glob(filepath.Join(s.Dir, "state", "*.archive*")); len(left) > 0 {
		t.Errorf("archives are left behind: %v", left)
	}
}

// thinned is the epoch for which the bus has thinned its stream.
func thinned(s *lab.Site) string {
	text, _ := os.ReadFile(filepath.Join(s.Dir, "state", "bus.epoch"))
	return strings.TrimSpace(string(text))
}
