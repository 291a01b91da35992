package bus

import (
	"context"
	jsonv1 "encoding/json"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/grants"
)

// A page is what one batched direct get may return; it bounds memory.
const (
	pageMessages = 512
	pageBytes    = 4 << 20
)

const filterAll = events.PrefixStored + ".>"

// getRequest is the body of a direct get (ADR-31).
type getRequest struct {
	Seq      uint64 `json:"seq,omitempty"`
	Next     string `json:"next_by_subj,omitempty"`
	Last     string `json:"last_by_subj,omitempty"`
	Batch    int    `json:"batch,omitempty"`
	MaxBytes int    `json:"max_bytes,omitempty"`
	// Lasts asks for the last message of every subject under the filters, of those
	// from Seq on.
	Lasts []string `json:"multi_last,omitempty"`
}

// room is how many messages an answer may have, its end included.
func (r getRequest) room() int {
	switch {
	case r.Batch > 0:
		return r.Batch + 1
	case len(r.Lasts) > 0:
		return syncQueue
	}
	return 1
}

// many says whether the answer is a batch with an end of its own.
func (r getRequest) many() bool { return r.Batch > 0 || len(r.Lasts) > 0 }

// Last returns the last event stored under a subject filter.
func (c *Conn) Last(ctx context.Context, filter string) (st events.Stored, found bool, err error) {
	page, err := c.page(ctx, grants.Stream, getRequest{Last: filter})
	if err != nil || len(page) == 0 {
		return events.Stored{}, false, err
	}
	return page[0], true, nil
}

// LastSeq is the sequence of the last event, 0 for an empty stream.
func (c *Conn) LastSeq(ctx context.Context) (uint64, error) {
	st, _, err := c.Last(ctx, filterAll)
	return st.Seq, err
}

// Page returns some of what a stream holds from a sequence on, in order; nothing when
// there is nothing more.
func (c *Conn) Page(ctx context.Context, stream string, from uint64) ([]events.Stored, error) {
	return c.readFrom(ctx, stream, from, ">", pageMessages)
}

// Read returns up to limit events under a filter, in order, from a sequence
// on. It may return fewer than there are when they are large; none means that
// there are none.
func (c *Conn) Read(ctx context.Context, from uint64, filter string, limit int) ([]events.Stored, error) {
	return c.readFrom(ctx, grants.Stream, from, filter, limit)
}

func (c *Conn) readFrom(ctx context.Context, stream string, from uint64, filter string, limit int) ([]events.Stored, error) {
	req := getRequest{Seq: max(from, 1), Next: filter, Batch: min(max(limit, 1), pageMessages), MaxBytes: pageBytes}
	if filter == filterAll || filter == "" {
		req.Next = "" // by sequence alone, which needs no index of subjects
	}
	return c.page(ctx, stream, req)
}

// page repeats a direct get until it was answered. What an interrupted answer
// brought is kept, so that large pages make progress on a bad line.
func (c *Conn) page(ctx context.Context, stream string, req getRequest) ([]events.Stored, error) {
	what := "read stream " + stream
	for {
		if err := c.waitUp(ctx); err != nil {
			return nil, unanswered(what, err)
		}
		page, _, err := c.get(ctx, stream, req)
		if err == nil || (transient(err) && len(page) > 0) {
			return page, nil
		}
		if !transient(err) {
			return nil, unanswered(what, err)
		}
		if cause := pause(ctx, retryPause); cause != nil {
			return nil, outage(what, cause)
		}
	}
}

// get makes one attempt. The answer comes to an inbox of its own, whose end
// tells the server to forget the route of the answer. Through is the sequence up
// to which the server has looked, where it says so.
func (c *Conn) get(ctx context.Context, stream string, req getRequest) (page []events.Stored, through uint64, err error) {
	body, err := json.Marshal(req)
	if err != nil {
		return nil, 0, fmt.Errorf("write a direct get: %w", err)
	}
	subject := c.api + "DIRECT.GET." + stream
	answer, done, err := c.inbox(ctx, req.room())
	if err != nil {
		return nil, 0, err
	}
	defer done()
	for i := 0; ; i++ {
		attempt, done := c.fly(ctx, subject, attemptTimeout)
		if i == 0 {
			if err := c.nc.PublishRequest(subject, answer.name, body); err != nil {
				done()
				return nil, 0, c.outcome(attempt, err)
			}
		}
		m, err := answer.next(attempt)
		done()
		if err != nil {
			return page, 0, err
		}
		st, end, err := readAnswer(subject, m, req.many())
		if end && err == nil {
			through, _ = strconv.ParseUint(m.Header.Get(headerUpTo), 10, 64)
		}
		if err != nil || end {
			return page, through, err
		}
		page = append(page, st)
		if !req.many() {
			return page, 0, nil
		}
	}
}

// inbox is where the answer to one request comes.
type inbox struct {
	name string
	came chan *nats.Msg
}

// inbox makes one with room for so many messages that nobody has taken yet.
// The client would set aside room for the longest answer there is.
func (c *Conn) inbox(ctx context.Context, room int) (in inbox, done func(), err error) {
	in = inbox{name: c.nc.NewInbox(), came: make(chan *nats.Msg, room)}
	sub, err := c.nc.ChanSubscribe(in.name, in.came)
	if err != nil {
		return in, nil, c.outcome(ctx, err)
	}
	return in, func() { _ = sub.Unsubscribe() }, nil
}

// next waits for a message; attempt is a flight, which the end of the connection
// ends.
func (in inbox) next(attempt context.Context) (*nats.Msg, error) {
	select {
	case m := <-in.came:
		return m, nil
	case <-attempt.Done():
		return nil, ended(context.Cause(attempt))
	}
}

// readAnswer reads one message of the answer; end is the last one.
func readAnswer(subject string, m *nats.Msg, batch bool) (st events.Stored, end bool, err error) {
	if status := m.Header.Get("Status"); status != "" && len(m.Data) == 0 {
		switch status {
		case "404", "204":
			return st, true, nil
		case "503":
			return st, true, errNoResponders
		}
		code, _ := strconv.Atoi(status)
		return st, true, &Refused{Subject: subject, Status: code, Reason: m.Header.Get("Description")}
	}
	names := addedToGet
	if batch {
		names = addedToBatch
	}
	st, err = readStored(m, names)
	return st, false, err
}

// Headers that the server adds to what was stored.
const (
	headerStream   = "Nats-Stream"
	headerSubject  = "Nats-Subject"
	headerSequence = "Nats-Sequence"
	headerTime     = "Nats-Time-Stamp"
	headerPending  = "Nats-Num-Pending"
	headerLast     = "Nats-Last-Sequence"
	headerUpTo     = "Nats-UpTo-Sequence"
)

// What it adds where.
var (
	addedToGet   = []string{headerStream, headerSubject, headerSequence, headerTime}
	addedToBatch = append(slices.Clone(addedToGet), headerPending, headerLast)
	addedToLive  = append(slices.Clone(addedToGet), headerLast)
)

// readStored takes the server's headers off. The server puts them last, so a
// writer who stored headers of the same names deceives nobody.
func readStored(m *nats.Msg, added []string) (events.Stored, error) {
	h := m.Header
	subject, seqText, timeText := last(h, headerSubject), last(h, headerSequence), last(h, headerTime)
	seq, err := strconv.ParseUint(seqText, 10, 64)
	if err != nil || subject == "" {
		return events.Stored{}, errors.New("read a stored message: the server did not say subject and sequence")
	}
	at, err := time.Parse(time.RFC3339Nano, timeText)
	if err != nil {
		return events.Stored{}, fmt.Errorf("read stored message %d: time %q: %w", seq, timeText, err)
	}
	for _, name := range added {
		if v := h[name]; len(v) > 1 {
			h[name] = v[:len(v)-1]
		} else {
			delete(h, name)
		}
	}
	return events.Stored{Seq: seq, Time: at.UTC(), Subject: subject, Header: h, Data: m.Data}, nil
}

func last(h nats.Header, name string) string {
	if v := h[name]; len(v) > 0 {
		return v[len(v)-1]
	}
	return ""
}

// State is the state of the audited stream.
type State struct {
	Messages uint64 `json:"messages"`
	Bytes    uint64 `json:"bytes"`
	First    uint64 `json:"first_seq"`
	Last     uint64 `json:"last_seq"`
	Deleted  int    `json:"num_deleted"`
	MaxBytes int64  `json:"-"`
	// Created is when the stream was made.
	Created time.Time `json:"-"`
	// Weak is a setting under which the stream may lose events, nil for none.
	Weak *WeakSetting `json:"-"`
}

// StreamState asks for the stream's state; the auditor, persons, monitors,
// readers and the bus may.
func (c *Conn) StreamState(ctx context.Context) (State, error) {
	subject := c.api + "STREAM.INFO." + grants.Stream
	r, err := c.ask(ctx, "ask for the state of the stream", &nats.Msg{Subject: subject})
	if err != nil {
		return State{}, err
	}
	var info struct {
		Error   *apiError      `json:"error"`
		State   State          `json:"state"`
		Created time.Time      `json:"created"`
		Config  jsontext.Value `json:"config"`
	}
	if err := json.Unmarshal(r.Data, &info); err != nil {
		return State{}, fmt.Errorf("read the state of the stream: %w", err)
	}
	if info.Error != nil && info.Error.Code == codeNoStream {
		return State{}, fmt.Errorf("ask for the state of the stream: %w", ErrNoStream)
	}
	if info.Error != nil {
		return State{}, info.Error.refusal(subject)
	}
	var got jetstream.StreamConfig // made for the other version of the package
	if err := jsonv1.Unmarshal(info.Config, &got); err != nil {
		return State{}, fmt.Errorf("read the settings of the stream: %w", err)
	}
	info.State.MaxBytes, info.State.Created = got.MaxBytes, info.Created
	errors.As(compareStream(got, Layout{}.stored()), &info.State.Weak)
	return info.State, nil
}
