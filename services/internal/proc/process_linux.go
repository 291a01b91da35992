package proc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

// A Process is a program that was started, and its tree.
type Process struct {
	marker   string
	pid      int
	bound    string
	began    time.Time
	hand     *hand
	release  func(h *hand, reusable bool) // what becomes of the steward
	stopCtx  func() bool
	streams  *streams
	grace    time.Duration
	once     sync.Once // the first Cancel
	mu       sync.Mutex
	over     bool // guarded by mu; the steward may have its next job
	finished chan struct{}
	outcome  Outcome // valid when finished is closed
	err      error   // valid when finished is closed
}

// Start runs a program under a steward of its own. The context ends the tree like [Process.Cancel] does; it does not make
// Wait return before the tree is gone.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	setup, err := spec.setup()
	if err != nil {
		return nil, err
	}
	h, err := hire(setup)
	if err != nil {
		return nil, named(err, spec.Path)
	}
	return begin(ctx, h, spec, func(h *hand, _ bool) { h.dismiss() })
}

// setup checks the spec and returns what its steward must be like.
func (s *Spec) setup() (setup, error) {
	if err := s.check(); err != nil {
		return setup{}, err
	}
	out := setup{AllowNewPrivileges: s.AllowNewPrivileges}
	for _, path := range s.Hide {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return setup{}, &StartError{Code: CodeNoNamespace, Path: path, Detail: "find the folder to hide: " + reason(err)}
		}
		out.Hide = append(out.Hide, real)
	}
	for _, path := range s.Expose {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return setup{}, &StartError{Code: CodeNoNamespace, Path: path, Detail: "find the path to expose: " + reason(err)}
		}
		out.Expose = append(out.Expose, real)
	}
	return out, nil
}

// begin hands the program to a steward and follows it.
func begin(ctx context.Context, h *hand, spec Spec, release func(*hand, bool)) (*Process, error) {
	if ctx.Err() != nil {
		release(h, true)
		return nil, fmt.Errorf("start %s: %w", spec.Path, context.Cause(ctx))
	}
	p := &Process{marker: spec.Marker, hand: h, release: release, grace: spec.Grace, finished: make(chan struct{}), began: time.Now()}
	if p.marker == "" {
		p.marker = rand.Text()
	}
	if p.grace == 0 {
		p.grace = DefaultGrace
	}
	streams, files, err := openStreams(spec.Stdin, spec.Stdout, spec.Stderr)
	if err != nil {
		release(h, true)
		return nil, &StartError{Code: CodeSystem, Path: spec.Path, Detail: "make pipes: " + err.Error()}
	}
	p.streams = streams
	err = p.order(ctx, &spec, files)
	files.close()
	if err != nil {
		streams.abort()
		return nil, err
	}
	streams.start()
	p.stopCtx = context.AfterFunc(ctx, func() { p.Cancel(context.Cause(ctx).Error()) })
	go p.follow(spec.TimeLimit)
	return p, nil
}

// order sends the job and waits for the word that it runs.
func (p *Process) order(ctx context.Context, spec *Spec, files stdio) error {
	umask := spec.Umask
	if umask == 0 {
		umask = DefaultUmask
	}
	err := p.hand.tell(order{Run: &job{
		Argv: spec.Argv, Path: spec.Path, Found: spec.Found, ExpectSHA256: spec.ExpectSHA256, Sealed: spec.Sealed,
		Files: spec.Files, Dir: spec.Dir, Env: spec.Env, TimeLimitNS: int64(spec.TimeLimit), GraceNS: int64(p.grace),
		Until: spec.Until, NoticeNS: int64(spec.Notice), StartBy: spec.StartBy,
		Marker: p.marker, Umask: umask, Rlimits: spec.Rlimits, Nice: spec.Nice, User: spec.User, Reach: spec.Reach,
	}}, files.all()...)
	var got report
	if err == nil {
		interrupted := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			defer close(interrupted)
			_ = p.hand.conn.SetReadDeadline(time.Unix(1, 0))
		})
		got, err = p.hand.hearAwake()
		if !stop() {
			<-interrupted
			if err == nil { // the report came before the context ended; what happens now is a cancel
				err = p.hand.conn.SetReadDeadline(time.Time{})
			}
		}
	}
	switch {
	case err != nil && ctx.Err() != nil:
		p.release(p.hand, false)
		return fmt.Errorf("start %s: %w", spec.Path, context.Cause(ctx))
	case err != nil:
		p.hand.abandon(p.marker)
		p.release(p.hand, false)
		return &StartError{Code: CodeSteward, Path: spec.Path, Detail: "it ended while the program was started: " + err.Error()}
	case got.Refused != nil:
		p.release(p.hand, true)
		return named(got.Refused, spec.Path)
	}
	p.pid, p.bound = got.Started.PID, got.Started.Bound
	return nil
}

// PID is the direct child's process id.
func (p *Process) PID() int { return p.pid }

// Marker is the value that every process of the tree carries in its environment.
func (p *Process) Marker() string { return p.marker }

// Bound says how the program was tied to its digest: BoundFD, BoundSealed, BoundChecked, or empty.
func (p *Process) Bound() string { return p.bound }

// StartedAt is the wall clock at exec.
func (p *Process) StartedAt() time.Time { return p.began.UTC() }

// Cancel ends the tree: TERM to every process, grace, KILL. It does not wait. Only the first call counts, and none does
// after the direct child has exited.
func (p *Process) Cancel(reason string) {
	p.once.Do(func() {
		_ = p.hand.conn.SetReadDeadline(time.Now().Add(p.grace + killFor + patience))
		_ = p.hand.tell(order{Cancel: &reason}) // a lost steward is noticed by follow
	})
}

// Extend puts the end off that [Spec.Until] has set. It never brings it forward, and comes too late for a tree that is being
// ended.
func (p *Process) Extend(until Moment) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.over {
		_ = p.hand.tell(order{Until: until}) // a lost steward is noticed by follow
	}
}

// Done is closed when Wait would return at once.
func (p *Process) Done() <-chan struct{} { return p.finished }

// Wait returns when the direct child has exited, its tree is gone and all output has reached the writers. The error is
// [ErrStewardLost], the first failure of a writer, or nil; how the program ended is in the Outcome alone.
func (p *Process) Wait() (Outcome, error) {
	<-p.finished
	return p.outcome, p.err
}

// follow waits for the steward's last word.
func (p *Process) follow(limit time.Duration) {
	defer close(p.finished)
	if limit > 0 {
		_ = p.hand.conn.SetReadDeadline(p.began.Add(limit + p.grace + killFor + patience))
	}
	got, err := p.hand.hearAwake()
	p.stopCtx()
	p.once.Do(func() {}) // neither Cancel nor Extend reaches a steward that may already have its next job
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	if err != nil || got.Done == nil {
		p.lost()
	} else {
		p.outcome = *got.Done
	}
	p.err = errors.Join(p.err, p.streams.finish())
	_ = p.hand.conn.SetReadDeadline(time.Time{})
	p.release(p.hand, !errors.Is(p.err, ErrStewardLost) && len(p.outcome.Survivors) == 0)
}

// lost ends the tree of a dead steward and keeps what is known.
func (p *Process) lost() {
	wall := time.Since(p.began)
	survivors, means := p.hand.abandon(p.marker)
	p.err = ErrStewardLost
	p.outcome = Outcome{ExitCode: -1, StartedAt: p.began.UTC(), Wall: wall, Ended: time.Since(p.began), Bound: p.bound,
		PID: p.pid, Survivors: survivors, Means: means}
}

// named puts the program's path into a StartError that has none.
func named(err error, path string) error {
	var start *StartError
	if errors.As(err, &start) && start.Path == "" {
		start.Path = path
	}
	return err
}
