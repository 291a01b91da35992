package auditor

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/tlog"
)

// headInFile keeps the head in a file alone.
func headInFile(c *Config) { c.Head = headFile }

// stands says that the auditor stands still with a fault.
func stands(code string) func(bool, string) bool {
	return func(ready bool, reason string) bool {
		return !ready && strings.Contains(reason, "integrity fault "+code)
	}
}

const headOrigin = "banksman/test/epoch-1"

// aHead is a head of so many leaves.
func aHead(size int, root byte) []byte {
	return fmt.Appendf(nil, "%s\n%d\n%s\n", headOrigin, size, base64.StdEncoding.EncodeToString(append(make([]byte, 31), root)))
}

// headLock is a lock of an auditor of its own, with a file of its own.
func (s *testSite) headLock() *headLock {
	s.t.Helper()
	env := &host.Env{Layout: s.layout, Bus: s.conn("auditor"), Log: s.log, Report: func(bool, string) {}}
	return newHeadLock(s.t.Context(), env, headOrigin, tlog.FileLock(s.t.TempDir()))
}

// loads wants the lock to hold a head.
func (h *headLock) loads(t *testing.T, want []byte) {
	t.Helper()
	if got, err := h.Load(); err != nil || string(got) != string(want) || h.fault != nil {
		t.Fatalf("the lock holds %q, %v, %v; want %q", got, err, h.fault, want)
	}
}

// Of many auditors that swap the same head at once one goes on, also where all of them
// would write the same.
func TestBucketHasOneWinner(t *testing.T) {
	s := newSite(t)
	first := s.headLock()
	first.loads(t, nil)
	if err := first.Swap(nil, aHead(1, 0)); err != nil {
		t.Fatal(err)
	}
	locks := make([]*headLock, 8)
	for i := range locks {
		locks[i] = s.headLock()
		locks[i].loads(t, aHead(1, 0))
	}
	results := make([]error, len(locks))
	var group sync.WaitGroup
	for i, h := range locks {
		group.Go(func() { results[i] = h.Swap(aHead(1, 0), aHead(2, 0)) })
	}
	group.Wait()
	won := 0
	for _, err := range results {
		if err == nil {
			won++
		} else if !errors.Is(err, tlog.ErrLockMoved) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d of them go on", won)
	}
	if err := first.Swap(aHead(1, 0), aHead(2, 1)); !errors.Is(err, tlog.ErrLockMoved) {
		t.Errorf("an older auditor: %v", err)
	}
	s.headLock().loads(t, aHead(2, 0))
}

// deaf loses the answer to what the bucket has stored.
type deaf struct {
	bucket
	again bool // and asks again, as a client does that is still waiting
}

func (d deaf) Swap(ctx context.Context, log string, revision uint64, value []byte) (uint64, error) {
	if _, err := d.bucket.Swap(ctx, log, revision, value); err != nil {
		return 0, err
	}
	if d.again {
		return d.bucket.Swap(ctx, log, revision, value)
	}
	return 0, bus.ErrOutage
}

// A swap whose answer was lost is decided by what the bucket holds.
func TestBucketAnswerIsLost(t *testing.T) {
	s := newSite(t)
	h := s.headLock()
	h.loads(t, nil)
	real := h.bucket
	h.bucket = deaf{real, true}
	if err := h.Swap(nil, aHead(1, 0)); err != nil {
		t.Fatalf("its own swap: %v", err)
	}
	h.bucket = deaf{real, false}
	if err := h.Swap(aHead(1, 0), aHead(2, 0)); !errors.Is(err, bus.ErrOutage) {
		t.Fatalf("an unknown end: %v", err)
	}
	h.bucket = real
	h.loads(t, aHead(2, 0)) // the file knows the one before
	if err := h.Swap(aHead(2, 0), aHead(3, 0)); err != nil {
		t.Fatal(err)
	}
	if got, err := h.file.Load(); err != nil || string(got) != string(aHead(3, 0)) {
		t.Errorf("the file holds %q, %v", got, err)
	}
}

// Without the bus there is no swap, and the board says so.
func TestBucketIsAway(t *testing.T) {
	s := newSiteAt(t, freePort(t))
	conn, err := host.Connection{Layout: s.layout, Site: s.config, Actor: "auditor", Power: events.RoleAuditor, Log: s.log}.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	h := s.headLock()
	h.bucket, h.silent = conn.Heads(), 1
	var away atomic.Bool
	said := make(chan string, 1)
	h.report = func(_ bool, reason string) {
		if !away.Load() {
			return
		}
		select {
		case said <- reason:
		default: // the first word is enough
		}
	}
	h.loads(t, nil)
	s.stop()
	away.Store(true)
	done := make(chan error, 1)
	go func() { done <- h.Swap(nil, aHead(1, 0)) }()
	if reason := <-said; !strings.Contains(reason, "nothing is sealed") {
		t.Errorf("the board says %q", reason)
	}
	if got, err := h.file.Load(); got != nil || err != nil {
		t.Errorf("the file holds %q, %v", got, err)
	}
	s.start()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.headLock().loads(t, aHead(1, 0))
}

// Which of bucket and file is ahead says what happened.
func TestBucketAndFileDiffer(t *testing.T) {
	s := newSite(t)
	h := s.headLock()
	h.loads(t, nil)
	if err := h.Swap(nil, aHead(5, 0)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		file []byte
		want error
		code string
	}{
		{"the file is behind", aHead(4, 9), nil, ""},
		{"the file is ahead", aHead(6, 0), nil, faultRollback},
		{"another root", aHead(5, 1), tlog.ErrFork, ""},
	} {
		o := s.headLock()
		if err := o.file.Swap(nil, c.file); err != nil {
			t.Fatal(err)
		}
		_, err := o.Load()
		if !errors.Is(err, c.want) || (o.fault == nil) != (c.code == "") || o.fault != nil && o.fault.Code != c.code {
			t.Errorf("%s: %v, %v", c.name, err, o.fault)
		}
		if c.code != "" {
			if err := o.Swap(c.file, aHead(7, 0)); !errors.As(err, new(*Fault)) {
				t.Errorf("%s: it swapped: %v", c.name, err)
			}
		}
	}
}

// memory is the auditor's folders as they are, to be put back later.
func (s *testSite) memory(t *testing.T) (back func()) {
	t.Helper()
	kept := t.TempDir()
	folders := []string{"audit", "head"}
	for _, f := range folders {
		copyPrivate(t, filepath.Join(kept, f), filepath.Join(s.layout.State(), f))
	}
	return func() {
		for _, f := range folders {
			to := filepath.Join(s.layout.State(), f)
			if err := os.RemoveAll(to); err != nil {
				t.Fatal(err)
			}
			copyPrivate(t, to, filepath.Join(kept, f))
		}
	}
}

// copyPrivate copies a folder that only its owner may enter.
func copyPrivate(t *testing.T, to, from string) {
	t.Helper()
	err := os.CopyFS(to, os.DirFS(from))
	if err == nil {
		err = filepath.WalkDir(to, func(path string, d os.DirEntry, err error) error {
			mode := os.FileMode(0o600)
			if err == nil && d.IsDir() {
				mode = 0o700
			}
			return errors.Join(err, os.Chmod(path, mode))
		})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A site that begins to use the bucket, or whose bucket was emptied, wants an
// administrator's word, which counts once and never against a bucket that has a head.
func TestEmptyBucket(t *testing.T) {
	s := newSite(t)
	a := s.audit(nil, headInFile)
	s.sealed(s.propose("a").last)
	a.stop(t)
	a = s.audit(nil)
	if f := a.closes(s, faultHead); f.Acknowledgeable || !strings.Contains(f.Next, "audit relock") {
		t.Errorf("%+v", f)
	}
	a.stop(t)
	if _, err := Relock(s.layout); err != nil {
		t.Fatal(err)
	}
	back := s.memory(t) // the order among it
	a = s.audit(nil)
	a.until(t, "the fault that was stated", func(_ bool, reason string) bool { return strings.Contains(reason, "fault "+faultHead) })
	s.heals(faultHead)
	s.acknowledge("the bucket is new")
	a.until(t, "readiness", isReady)
	s.sealed(s.propose("b").last)
	a.stop(t)
	if _, err := os.Stat(relockFile(s.layout)); err == nil {
		t.Error("the order is still there")
	}
	back()
	a = s.audit(nil)
	a.until(t, "the rollback", stands(faultRollback))
}

// Folders that went back in time together with the head in them, and an epoch that was
// taken away, are seen by the bucket; what a crash leaves is made whole.
func TestFoldersWentBack(t *testing.T) {
	s := twoEpochs(t)
	whole := s.memory(t)
	remove(t, filepath.Dir(s.layout.AuditHeadOf(2))) // the bucket moved, and the file did not yet
	a := s.audit(nil)
	a.until(t, "readiness", isReady)
	s.sealedIn(2, s.propose("more").last)
	a.stop(t)
	if n := s.layout.Epoch(); n != 2 {
		t.Errorf("epoch %d", n)
	}
	remove(t, filepath.Dir(s.layout.AuditHeadOf(2)))
	remove(t, s.layout.AuditLogOf(2))
	a = s.audit(nil)
	a.until(t, "the epoch that was taken away", stands(faultRollback))
	a.stop(t)
	whole()
	a = s.audit(nil)
	a.until(t, "the log that went back", stands(faultRollback))
}

// Two auditors with folders of their own on one bus: one goes on.
func TestTwoAuditorsOneBucket(t *testing.T) {
	s := newSite(t)
	a := s.audit(nil)
	s.sealed(s.propose("a").last)
	a.until(t, "readiness", isReady)
	a.stop(t)
	copied := filepath.Join(t.TempDir(), "copied")
	copyPrivate(t, copied, s.layout.Dir)
	own := s.layout
	a = s.audit(nil)
	s.layout = site.Layout{Dir: copied}
	b := s.audit(nil)
	s.layout = own
	failed := func(r *running) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return strings.Contains(r.reason, "integrity fault")
	}
	s.propose("b")
	eventually(t, "one to stand still", func() bool { return failed(a) || failed(b) })
	s.sealed(s.propose("c").last)
	if failed(a) && failed(b) {
		t.Error("neither goes on")
	}
}
