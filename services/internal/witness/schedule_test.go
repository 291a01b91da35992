package witness

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/banksman/banksman/services/internal/tlog"
)

var errFault = errors.New("injected fault")

// outcome is what becomes of a call: it works, it fails before it took effect, or after.
type outcome int

const (
	works outcome = iota
	notPersisted
	persisted
)

// shakyLock is the one lock of both auditors, out of reach of their folders.
type shakyLock struct {
	tlog.Lock
	next *outcome
}

func (l shakyLock) Swap(old, new []byte) error {
	switch *l.next {
	case notPersisted:
		return errFault
	case persisted:
		return errors.Join(l.Lock.Swap(old, new), errFault)
	}
	return l.Lock.Swap(old, new)
}

// shakyLine loses requests on their way, or the answers to them.
type shakyLine struct {
	http.RoundTripper
	next *outcome
}

func (l shakyLine) RoundTrip(r *http.Request) (*http.Response, error) {
	if *l.next == notPersisted {
		return nil, errFault
	}
	answer, err := l.RoundTripper.RoundTrip(r)
	if err == nil && *l.next == persisted {
		answer.Body.Close()
		return nil, errFault
	}
	return answer, err
}

// rival is one of two auditors. They have seen different histories: each word stands in
// the records from the fork on.
type rival struct {
	dir, word string
	log       *tlog.Log // nil while it is down
}

// rivalry is one schedule of two auditors with one key, one lock and one witness, and
// all that ever left either of them: heads that were returned, stored or cosigned.
type rivalry struct {
	t       *testing.T
	rng     *rand.Rand
	signer  note.Signer
	lock    shakyLock
	client  *Client
	outcome outcome
	store   string // the witness's
	fork    uint64
	rivals  [2]*rival
	shown   map[int64]tlog.Hash
	largest int64
	lost    map[string]int
}

const scheduleOrigin = "log.example.org/epoch-1"

func newRivalry(t *testing.T, seed uint64) *rivalry {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "schedule")
	if err != nil {
		dir = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	base := newTree(t, scheduleOrigin)
	r := &rivalry{t: t, rng: rand.New(rand.NewPCG(seed, 9)), signer: base.signer, store: filepath.Join(dir, "witness"), shown: map[int64]tlog.Hash{}, lost: map[string]int{}}
	r.fork = 1 + r.rng.Uint64N(8)
	if err := os.Mkdir(filepath.Join(dir, "lock"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.lock = shakyLock{tlog.FileLock(filepath.Join(dir, "lock")), &r.outcome}
	r.client = serve(t, newSigner(t, "w"), r.store, base.vkey)
	r.client.HTTP = &http.Client{Transport: shakyLine{http.DefaultTransport, &r.outcome}}
	for i, word := range []string{"truth", "lie"} {
		r.rivals[i] = &rival{dir: filepath.Join(dir, word), word: word}
	}
	return r
}

// saw takes a head that has left an auditor. No other head of that size may ever do, and
// it must have grown out of each that did before.
func (r *rivalry) saw(a *rival, cp tlog.Checkpoint) {
	r.t.Helper()
	if root, known := r.shown[cp.Size]; known {
		if root != cp.Root {
			r.t.Fatalf("two heads of %d leaves were signed", cp.Size)
		}
		return
	}
	reader, err := tlog.OpenReader(a.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	defer reader.Close()
	if cp.Size < r.largest {
		r.t.Fatalf("a head of %d leaves was signed after one of %d", cp.Size, r.largest)
	}
	for size, root := range r.shown {
		if got, err := reader.TreeHash(size); err != nil || got != root {
			r.t.Fatalf("the head of %d leaves does not grow out of the one of %d: %v", cp.Size, size, err)
		}
	}
	r.shown[cp.Size], r.largest = cp.Root, cp.Size
}

// look reads the checkpoint that lies in a folder, as anybody may.
func (r *rivalry) look(a *rival) {
	r.t.Helper()
	reader, err := tlog.OpenReader(a.dir)
	if err != nil {
		return
	}
	defer reader.Close()
	if cp, err := reader.Checkpoint(); err == nil {
		r.saw(a, cp)
	}
}

// down ends an auditor, as a crash or a stop does.
func (r *rivalry) down(a *rival) {
	if a.log != nil {
		a.log.Close()
		a.log = nil
	}
}

// up starts an auditor. One that the lock shows to be behind or beside what was signed is
// refused; its operator makes its folder anew from the other's.
func (r *rivalry) up(a, other *rival) {
	r.t.Helper()
	l, err := tlog.Open(a.dir, r.signer, r.lock)
	if errors.Is(err, tlog.ErrNoHead) {
		l, err = tlog.Create(a.dir, tlog.Genesis{Origin: scheduleOrigin, Stream: "S", Created: time.Unix(1, 0), Config: sha256.Sum256(nil)}, r.signer, r.lock)
	}
	switch {
	case err == nil:
		a.log = l
	case errors.Is(err, tlog.ErrRollback) || errors.Is(err, tlog.ErrFork):
		r.lost["refused"]++
		r.down(other)
		if err := errors.Join(os.RemoveAll(a.dir), os.CopyFS(a.dir, os.DirFS(other.dir))); err != nil {
			r.t.Fatal(err)
		}
	case errors.Is(err, errFault):
		r.lost["fault"]++
	case errors.Is(err, tlog.ErrLockMoved):
		r.lost["moved"]++
		if err := os.RemoveAll(a.dir); err != nil { // it held a genesis and no more
			r.t.Fatal(err)
		}
	default:
		r.t.Fatalf("%s does not start: %v", a.word, err)
	}
}

// grow appends some records; after the fork each auditor has its own.
func (r *rivalry) grow(a *rival) {
	r.t.Helper()
	for range 1 + r.rng.IntN(3) {
		seq := a.log.LastSeq() + 1
		word := ""
		if seq >= r.fork {
			word = a.word
		}
		rec := tlog.Record{Seq: seq, Time: time.Unix(int64(seq), 0), Subject: "bm.test", Payload: fmt.Append(nil, word, seq)}
		if _, err := a.log.Append(rec, tlog.Meta{}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// step lets one of the two do one thing, whose lock, request or answer may be lost.
func (r *rivalry) step() {
	r.t.Helper()
	i := r.rng.IntN(2)
	a, other := r.rivals[i], r.rivals[1-i]
	r.outcome = works
	if r.rng.IntN(4) == 0 {
		r.outcome = 1 + outcome(r.rng.IntN(2))
	}
	defer func() { r.outcome = works }()
	switch {
	case a.log == nil:
		r.up(a, other)
	case r.rng.IntN(12) == 0:
		r.down(a)
	case r.rng.IntN(2) == 0:
		r.grow(a)
	default:
		cp, err := a.log.Seal()
		if err != nil {
			if !errors.Is(err, errFault) && !errors.Is(err, tlog.ErrLockMoved) {
				r.t.Fatalf("seal: %v", err)
			}
			r.lost["seal"]++
			r.down(a)
			break
		}
		r.saw(a, cp)
		r.publish(a, cp)
	}
	r.look(r.rivals[0])
	r.look(r.rivals[1])
}

// publish shows a head to the witness, which knows neither auditor from the other. It may
// refuse one only because it has cosigned what came after: an auditor that has nothing new
// answers with its newest head and does not know that the other went on.
func (r *rivalry) publish(a *rival, cp tlog.Checkpoint) {
	r.t.Helper()
	reader, err := tlog.OpenReader(a.dir)
	if err != nil {
		r.t.Fatal(err)
	}
	defer reader.Close()
	lines, err := r.client.Cosign(r.t.Context(), 0, cp, func(old int64) (tlog.TreeProof, error) { return reader.ProveGrowth(old, cp.Size) })
	var stale *Stale
	if errors.As(err, &stale) && stale.Size > cp.Size {
		r.lost["late"]++
		return
	}
	if err != nil {
		if !errors.Is(err, errFault) {
			r.t.Fatalf("the witness about a head of %d leaves: %v", cp.Size, err)
		}
		r.lost["publish"]++
		return
	}
	if _, err := a.log.Cosign(cp, lines); err != nil {
		r.t.Fatal(err)
	}
}

// TestTwoAuditorsOneLock runs random schedules of two auditors that have seen different
// histories. Whatever is lost, and whether it took effect or not, nobody ever sees two
// signed heads of one size, or two of which one has not grown out of the other.
func TestTwoAuditorsOneLock(t *testing.T) {
	schedules := 40
	if os.Getenv("BANKSMAN_SOAK") == "1" {
		schedules = 2000
	}
	heads, lost := 0, map[string]int{}
	for seed := range schedules {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := newRivalry(t, uint64(seed))
			for range 120 {
				r.step()
			}
			r.down(r.rivals[0])
			r.down(r.rivals[1])
			if misfits, _ := filepath.Glob(filepath.Join(r.store, "*.misfit")); len(misfits) > 0 {
				t.Error("the witness can accuse the log")
			}
			heads += len(r.shown)
			for what, n := range r.lost {
				lost[what] += n
			}
		})
	}
	t.Logf("%d heads, lost %v", heads, lost)
	for _, what := range []string{"refused", "fault", "seal", "publish", "late"} {
		if lost[what] == 0 {
			t.Errorf("no schedule had a %s", what)
		}
	}
}
