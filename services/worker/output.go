package worker

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"log/slog"
	"sync"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/redact"
)

// batchFor is how long bytes wait for company before they become a chunk.
const batchFor = 100 * time.Millisecond

// recorder takes what an attempt writes. Its memory is bounded, its writers
// never wait for the bus, and what is kept of each stream is its head and its
// tail, after secrets were taken out of it.
type recorder struct {
	began time.Time
	wake  chan struct{} // one token: there may be something to publish

	mu     sync.Mutex // guards the rest
	queue  *spool
	n      int // chunks so far, over both streams
	tapes  [len(streamNames)]*tape
	closed bool
	fault  error // the first chunk that could not be kept
}

// newRecorder keeps up to limit bytes of each stream and spools to path.
func newRecorder(path string, limit int64, began time.Time, rules *redact.Rules) *recorder {
	r := &recorder{began: began, wake: make(chan struct{}, 1), queue: &spool{path: path}}
	for i, name := range streamNames {
		t := &tape{rec: r, name: name, head: limit / 2, tail: ring{limit: limit - limit/2}, sum: sha256.New()}
		t.clean = rules.Stream(t.take)
		r.tapes[i] = t
	}
	return r
}

func (r *recorder) stdout() *tape { return r.tapes[0] }
func (r *recorder) stderr() *tape { return r.tapes[1] }

// tape is one stream. Everything that is stored or shown has passed clean.
type tape struct {
	rec   *recorder
	name  string
	clean *redact.Stream
	now   time.Time // of the call that clean works for
	pause time.Time // when clean may pass on what is no secret yet
	head  int64     // bytes that may still go to the head
	batch []byte
	due   time.Time // when the batch becomes a chunk
	atMS  int64     // of the batch's first byte
	tail  ring

	bytes  int64
	stored int64
	chunks int
	cut    int64
	sum    hash.Hash
}

// Write never fails and never waits for the bus.
func (t *tape) Write(p []byte) (int, error) {
	t.rec.mu.Lock()
	defer t.rec.mu.Unlock()
	t.now = time.Now()
	t.rec.flushDue(t.now)
	t.bytes += int64(len(p))
	n, err := t.clean.Write(p)
	if t.clean.Held() {
		t.pause = t.now.Add(batchFor)
		t.rec.rouse()
	}
	return n, err
}

// take keeps redacted bytes as head or tail.
func (t *tape) take(p []byte) {
	head := p[:min(int64(len(p)), t.head)]
	t.head -= int64(len(head))
	t.keep(head, t.now)
	t.cut += t.tail.write(p[len(head):])
}

// keep adds bytes to the batch and cuts full chunks off it.
func (t *tape) keep(p []byte, now time.Time) {
	for len(p) > 0 {
		if len(t.batch) == 0 {
			if len(p) >= chunkBytes/4 {
				t.batch = make([]byte, 0, chunkBytes) // more will follow
			}
			t.due, t.atMS = now.Add(batchFor), now.Sub(t.rec.began).Milliseconds()
			t.rec.rouse()
		}
		n := min(len(p), chunkBytes-len(t.batch))
		t.batch = append(t.batch, p[:n]...)
		p = p[n:]
		if len(t.batch) == chunkBytes {
			t.flush()
		}
	}
}

// flushDue makes chunks of the batches that have waited long enough, the older
// one first: what was written more than batchFor apart stays in its order over both
// streams, however late the publisher is.
func (r *recorder) flushDue(now time.Time) (some bool) {
	for {
		var first *tape
		for _, t := range r.tapes {
			if t != nil && len(t.batch) > 0 && !t.due.After(now) && (first == nil || t.due.Before(first.due)) {
				first = t
			}
		}
		if first == nil {
			return some
		}
		first.flush()
		some = true
	}
}

// flush makes a chunk of the batch.
func (t *tape) flush() {
	if len(t.batch) == 0 {
		return
	}
	data := t.batch
	t.batch = nil
	c := chunk{n: t.rec.n + 1, stream: t.name, atMS: t.atMS, data: data}
	if err := t.rec.queue.push(c); err != nil {
		t.cut += int64(len(data))
		if t.rec.fault == nil {
			t.rec.fault = err
		}
		return
	}
	t.rec.n++
	t.chunks++
	t.stored += int64(len(data))
	t.sum.Write(data)
	t.rec.rouse()
}

func (r *recorder) rouse() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// close ends both streams. Nothing is written afterwards.
func (r *recorder) close() (stdout, stderr events.Output, fault error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.tapes {
		t.now = time.Now()
		if err := t.clean.Close(); err != nil && r.fault == nil {
			r.fault = err
		}
		t.cut += t.clean.Withheld()
		t.flush()
		parts := t.tail.parts()
		t.tail = ring{}
		for i, part := range parts { // each becomes a chunk as it is: memory is scarce now
			parts[i] = nil
			t.batch, t.atMS = part, t.now.Sub(r.began).Milliseconds()
			t.flush()
		}
	}
	r.closed = true
	r.rouse()
	return r.tapes[0].summary(), r.tapes[1].summary(), r.fault
}

func (t *tape) summary() events.Output {
	return events.Output{
		Bytes: t.bytes, StoredBytes: t.stored, SHA256: hex.EncodeToString(t.sum.Sum(nil)),
		Chunks: t.chunks, CutBytes: t.cut, Redacted: t.clean.Redacted(),
	}
}

// next returns the oldest chunk, or how long to wait for one at most; done
// means that there will be none.
func (r *recorder) next(now time.Time) (c chunk, ok bool, wait time.Duration, done bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok, err = r.queue.front(); ok || err != nil {
		return c, ok, 0, false, err
	}
	wait = time.Hour
	for _, t := range r.tapes {
		if t == nil {
			continue
		}
		if t.clean.Held() {
			if left := t.pause.Sub(now); left > 0 {
				wait = min(wait, left)
			} else {
				t.now = now
				t.clean.Idle()
			}
		}
	}
	if r.flushDue(now) {
		return chunk{}, false, 0, false, nil
	}
	for _, t := range r.tapes {
		if t != nil && len(t.batch) > 0 {
			wait = min(wait, t.due.Sub(now))
		}
	}
	return chunk{}, false, wait, r.closed && wait == time.Hour, nil
}

// publish carries chunks to put, in order, until both streams have ended and
// everything is delivered, or ctx ends. What is then left stays for keep.
func (r *recorder) publish(ctx context.Context, log *slog.Logger, put func(context.Context, chunk) error) {
	for {
		c, ok, wait, done, err := r.next(time.Now())
		switch {
		case err != nil:
			log.Error("output that had to wait on disk is lost", "error", err)
			r.mu.Lock()
			r.queue.skipRest()
			r.mu.Unlock()
		case ok:
			if err := put(ctx, c); err != nil {
				return
			}
			r.mu.Lock()
			r.queue.advance(c)
			r.mu.Unlock()
		case done:
			return
		default:
			timer := time.NewTimer(wait)
			select {
			case <-r.wake:
			case <-timer.C:
			case <-ctx.Done():
			}
			timer.Stop()
			if ctx.Err() != nil {
				return
			}
		}
	}
}

// persist puts what is not published yet on disk and lets publish go on.
func (r *recorder) persist() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queue.persist()
}

// rest puts what could not be published on disk.
func (r *recorder) rest() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queue.keep()
}

// discard closes the spool; its file goes with the attempt's record.
func (r *recorder) discard() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queue.close()
}

// leftRecorder is the recorder of an attempt that ended in an earlier life.
func leftRecorder(path string) (*recorder, error) {
	q, err := reopenSpool(path)
	if err != nil {
		return nil, err
	}
	return &recorder{wake: make(chan struct{}, 1), queue: q, closed: true}, nil
}

// empty says whether everything was delivered.
func (r *recorder) empty() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok, err := r.queue.front()
	return !ok && err == nil
}
