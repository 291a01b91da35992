package bus

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// Endpoint answers one query. What it returns is sent as JSON; an error is
// sent as code and message, with the code of a [*RemoteError] or "internal".
type Endpoint func(ctx context.Context, request []byte) (any, error)

// servedAtOnce bounds how many requests one endpoint works on.
const servedAtOnce = 16

// Serve answers queries as a NATS micro service, so that `nats micro ls` and
// `nats micro stats` show it. The keys of endpoints are subjects, such as
// bmq.jobs.get; a "*" in them is any token. Stop returns after the last
// endpoint has returned. The error is *Denied when the actor may not serve one
// of the subjects.
func (c *Conn) Serve(ctx context.Context, service, version, description string, endpoints map[string]Endpoint) (stop func(), err error) {
	if err := c.waitUp(ctx); err != nil {
		return nil, unanswered("serve "+service, err)
	}
	svc, err := micro.AddService(c.nc, micro.Config{Name: service, Version: version, Description: description})
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", service, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &waiters{conn: c}
	stop = func() {
		_ = svc.Stop()
		cancel()
		w.close()
	}
	for subject, endpoint := range endpoints {
		slots := make(chan struct{}, servedAtOnce)
		handler := micro.HandlerFunc(func(r micro.Request) { w.serve(ctx, slots, r, endpoint) })
		if err := svc.AddEndpoint(endpointName(subject), handler, micro.WithEndpointSubject(subject)); err != nil {
			stop()
			return nil, fmt.Errorf("serve %s: %w", subject, err)
		}
		if err := c.established(ctx, subject); err != nil && !transient(err) {
			stop()
			return nil, fmt.Errorf("serve %s: %w", service, err)
		}
	}
	return stop, nil
}

// waiters are the requests being worked on by one service.
type waiters struct {
	conn *Conn

	mu     sync.Mutex
	closed bool
	group  sync.WaitGroup
}

// serve works on one request on a goroutine of its own.
func (w *waiters) serve(ctx context.Context, slots chan struct{}, r micro.Request, endpoint Endpoint) {
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return
	}
	w.group.Go(func() {
		defer func() { <-slots }()
		w.conn.answer(ctx, r, endpoint)
	})
}

// close returns when nothing is worked on any more.
func (w *waiters) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.group.Wait()
}

// endpointName is a name that the micro protocol allows.
func endpointName(subject string) string {
	return strings.NewReplacer(".", "-", "*", "any", ">", "all").Replace(subject)
}

func (c *Conn) answer(ctx context.Context, r micro.Request, endpoint Endpoint) {
	resp, err := endpoint(ctx, r.Data())
	// The request's own methods belong to the handler, which has returned long since.
	m := &nats.Msg{Subject: r.Reply()}
	if err == nil {
		m.Data, err = json.Marshal(resp, json.Deterministic(true))
	}
	if err != nil {
		e := &RemoteError{Code: "internal", Message: err.Error()}
		errors.As(err, &e)
		m.Data, _ = json.Marshal(map[string]any{"error": e}, json.Deterministic(true))
		m.Header = nats.Header{micro.ErrorCodeHeader: {e.Code}, micro.ErrorHeader: {oneLine(e.Message)}}
	}
	if err = c.nc.PublishMsg(m); err != nil {
		c.log.Warn("an answer could not be sent", "subject", r.Subject(), "error", err)
	}
}

// oneLine makes text fit for a header; the body has it unchanged.
func oneLine(text string) string {
	return strings.NewReplacer("\r", " ", "\n", " ").Replace(text)
}

// Ask sends a query and reads its answer into resp. Errors: [*RemoteError]
// from the service, [ErrNoResponder], [*Denied], [ErrOutage]. Without a
// deadline it waits 10 s.
func (c *Conn) Ask(ctx context.Context, subject string, req, resp any) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
	}
	body, err := json.Marshal(req, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("ask %s: %w", subject, err)
	}
	if err := c.waitUp(ctx); err != nil {
		return unanswered("ask "+subject, err)
	}
	attempt, done := c.fly(ctx, subject, time.Minute)
	defer done()
	r, err := c.nc.RequestMsgWithContext(attempt, &nats.Msg{Subject: subject, Data: body})
	if err != nil {
		return asked(subject, c.outcome(attempt, err))
	}
	if code := r.Header.Get(micro.ErrorCodeHeader); code != "" {
		return remoteError(code, r)
	}
	if resp == nil {
		return nil
	}
	if err := json.Unmarshal(r.Data, resp); err != nil {
		return fmt.Errorf("read the answer of %s: %w", subject, err)
	}
	return nil
}

func asked(subject string, err error) error {
	switch {
	case errors.Is(err, errNoResponders):
		return fmt.Errorf("ask %s: %w", subject, ErrNoResponder)
	case transient(err):
		return outage("ask "+subject, err)
	}
	return unanswered("ask "+subject, err)
}

func remoteError(code string, r *nats.Msg) error {
	var body struct {
		Error RemoteError `json:"error"`
	}
	if err := json.Unmarshal(r.Data, &body); err == nil && body.Error.Code == code {
		return &body.Error
	}
	return &RemoteError{Code: code, Message: r.Header.Get(micro.ErrorHeader)}
}
