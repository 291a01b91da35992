package auditor

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/site"
	"github.com/banksman/banksman/services/internal/tlog"
)

// bucket is where heads are kept outside the auditor's folders.
type bucket interface {
	Get(ctx context.Context, log string) (value []byte, revision uint64, err error)
	Swap(ctx context.Context, log string, revision uint64, value []byte) (uint64, error)
}

// headLock is the [tlog.Lock] of a log whose head lies in the bucket and, as a second
// memory, in the file. The bucket decides and moves first; the file follows, so that it is
// never ahead of a bucket that has forgotten nothing.
type headLock struct {
	ctx    context.Context
	bucket bucket
	file   tlog.Lock
	origin string // of the log
	relock string // file that names the head which may be put into an empty bucket
	writer string // tells this auditor's values from those of another one
	slog   *slog.Logger
	report func(ready bool, reason string)
	silent time.Duration // without an answer, before the board says so

	text     []byte // what the bucket held last, and its revision
	revision uint64
	fault    *Fault // why nothing may be swapped: the bucket knows less than the file
}

// newHeadLock makes the lock of one run.
func newHeadLock(ctx context.Context, env *host.Env, origin string, file tlog.Lock) *headLock {
	return &headLock{
		ctx: ctx, bucket: env.Bus.Heads(), file: file, origin: origin, relock: relockFile(env.Layout), writer: rand.Text(),
		slog: env.Log, report: env.Report, silent: silent,
	}
}

// Load implements [tlog.Lock]. Where the bucket knows less than the file, the log has to
// lead to what the file says, and fault says what is wrong: so the log can be looked at, the
// stream be compared with it, and queries be answered, but nothing be sealed.
func (h *headLock) Load() ([]byte, error) {
	file, err := h.file.Load()
	if err != nil {
		return nil, err
	}
	if err := h.read(); err != nil {
		return nil, err
	}
	switch {
	case file == nil:
		return h.text, nil
	case h.text == nil:
		return file, h.putBack(file)
	}
	_, size, _, err := tlog.ParseHead(h.text)
	if err != nil {
		return nil, err
	}
	_, fileSize, _, err := tlog.ParseHead(file)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the file's head: %w", err)
	case fileSize > size:
		h.fault = fault(faultRollback, "the bucket of heads went back in time: it has a head of %d leaves, the file one of %d", size, fileSize)
		return file, nil
	case fileSize == size && !bytes.Equal(h.text, file):
		return nil, fmt.Errorf("%w: bucket and file have different heads of %d leaves", tlog.ErrFork, size)
	}
	return h.text, nil
}

// putBack puts the file's head into a bucket that holds none, if that was ordered.
func (h *headLock) putBack(file []byte) error {
	ordered, err := os.ReadFile(h.relock)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !bytes.Equal(ordered, file) {
		h.fault = fault(faultHead, "the bucket of heads holds none of %s, although the file does: it was emptied, or never had it", h.origin)
		return nil
	}
	if err := h.swap(nil, file); err != nil {
		return err
	}
	h.slog.Warn("the head was put into the bucket again, as ordered", "log", h.origin, "head", string(file))
	return os.Remove(h.relock)
}

// Swap implements [tlog.Lock]. It waits for the bus as long as the auditor runs: without
// the swap nothing may be signed.
func (h *headLock) Swap(old, new []byte) error {
	if err := h.swap(old, new); err != nil {
		return err
	}
	return h.follow()
}

// follow lets the file hold what the bucket does.
func (h *headLock) follow() error {
	if h.fault != nil {
		return nil
	}
	now, err := h.file.Load()
	if err != nil || bytes.Equal(now, h.text) {
		return err
	}
	return h.file.Swap(now, h.text)
}

// swap swaps in the bucket alone.
func (h *headLock) swap(old, new []byte) error {
	if h.fault != nil {
		return h.fault
	}
	if (h.text == nil) != (old == nil) || !bytes.Equal(h.text, old) {
		return fmt.Errorf("%w: the bucket holds %q, expected %q", tlog.ErrLockMoved, h.text, old)
	}
	ctx, done := h.patience()
	defer done()
	value := fmt.Appendf(bytes.Clone(new), "writer %s\n", h.writer)
	revision, err := h.bucket.Swap(ctx, h.origin, h.revision, value)
	var conflict *bus.Conflict
	if errors.As(err, &conflict) {
		// An attempt whose answer was lost may have been stored: then it is this very
		// value, which no other auditor writes.
		var now []byte
		if now, revision, err = h.bucket.Get(ctx, h.origin); err == nil && !bytes.Equal(now, value) {
			err = fmt.Errorf("%w: the bucket holds %q", tlog.ErrLockMoved, now)
		}
	}
	if err != nil {
		return err
	}
	h.text, h.revision = new, revision
	return nil
}

// read reads what the bucket holds.
func (h *headLock) read() error {
	ctx, done := h.patience()
	defer done()
	value, revision, err := h.bucket.Get(ctx, h.origin)
	if err != nil {
		return err
	}
	h.text, h.revision = nil, revision
	if revision == 0 {
		return nil
	}
	at := bytes.LastIndex(value, []byte("writer "))
	if at < 0 {
		return fmt.Errorf("%w: the bucket's head names no writer", tlog.ErrMalformed)
	}
	origin, _, _, err := tlog.ParseHead(value[:at])
	if err == nil && origin != h.origin {
		err = fmt.Errorf("%w: it is of log %q", tlog.ErrFork, origin)
	}
	if err != nil {
		return fmt.Errorf("the bucket's head of %s: %w", h.origin, err)
	}
	h.text = value[:at:at]
	return nil
}

const (
	// silent is how long the bucket of a site may stay without an answer before the board
	// says so.
	silent = 3 * time.Second
	// grace is how long an exchange that has begun may take once the auditor is to end.
	grace = 3 * time.Second
)

// patience bounds an exchange with the bucket: it lasts as long as the auditor runs, and a
// little longer, so that what was read is sealed at the end. The board is told when there
// is no answer.
func (h *headLock) patience() (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(h.ctx))
	stop := context.AfterFunc(h.ctx, func() { time.AfterFunc(grace, cancel) })
	timer := time.AfterFunc(h.silent, func() {
		h.report(false, "nothing is sealed: the bucket of heads on the bus does not answer")
	})
	return ctx, func() { timer.Stop(); stop(); cancel() }
}

// relockFile names the head that may be put into a bucket which holds none.
func relockFile(l site.Layout) string { return filepath.Join(filepath.Dir(l.AuditHeadOf(1)), "relock") }

// Relock orders that the next start of the auditor puts the head in the file of the newest
// log into the bucket, provided that the bucket holds none of that log. It is for a bus
// that was made anew: after a restore, and when a site that kept heads in files alone
// begins to keep them in the bucket.
func Relock(l site.Layout) (head []byte, err error) {
	b, err := os.ReadFile(l.AuditHead())
	if err == nil {
		head, err = tlog.ReadLockFile(b)
	}
	if err == nil {
		_, _, _, err = tlog.ParseHead(head)
	}
	if err != nil {
		return nil, fmt.Errorf("relock: read the head of the newest log: %w", err)
	}
	if err := os.WriteFile(relockFile(l), head, 0o600); err != nil {
		return nil, fmt.Errorf("relock: %w", err)
	}
	return head, nil
}
