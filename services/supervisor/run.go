package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/loops"
	"github.com/banksman/banksman/services/internal/proc"
)

// settleFor is how long a stopping supervisor tries to store each thing that it
// has to say: output, the end of a round, that it lets go of the project.
// Afterwards it waits on disk for the next start.
const settleFor = 5 * time.Second

// shift is one run of the supervisor, from connecting to the last round's end.
type shift struct {
	cfg   Config
	env   *host.Env
	me    identity
	log   *slog.Logger
	crew  *proc.Crew
	read  loops.Reader
	ears  *ears
	tends []*tender // by name

	settle   time.Duration // settleFor, but in tests
	stopping atomic.Bool
}

func newShift(cfg Config, list map[string]Project, machine string, env *host.Env) *shift {
	s := &shift{
		cfg: cfg, env: env, log: env.Log, crew: &proc.Crew{}, ears: newEars(), settle: settleFor,
		me:   identity{actor: env.Actor, session: env.Append.Session(), host: machine},
		read: loops.Reader{Bus: env.Bus, Standing: env.Standing},
	}
	for name, p := range list {
		s.tends = append(s.tends, newTender(s, name, p))
	}
	slices.SortFunc(s.tends, func(a, b *tender) int { return strings.Compare(a.name, b.name) })
	return s
}

// run is the shift.
func (s *shift) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer s.crew.Close()
	for _, t := range s.tends {
		if err := t.open(); err != nil {
			return err
		}
	}
	quiet, err := s.listen(ctx)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer quiet()
	s.tell()
	return s.labour(ctx, stop)
}

// labour runs every loop and returns after the last one. Heartbeats go on
// until every project is released.
func (s *shift) labour(ctx context.Context, stop context.CancelCauseFunc) error {
	var loops, beats sync.WaitGroup
	var once sync.Once
	var first error
	fail := func(err error) {
		if err != nil {
			once.Do(func() { first = err })
			stop(err)
		}
	}
	beating, endBeats := context.WithCancel(context.WithoutCancel(ctx))
	beats.Go(func() { s.beat(beating) })
	for _, t := range s.tends {
		loops.Go(func() { fail(t.run(ctx)) })
	}
	for _, family := range []string{"loop", "stop"} {
		loops.Go(func() { fail(s.follow(ctx, family)) })
	}
	loops.Go(func() { s.observe(ctx) })
	loops.Go(func() { // an idle supervisor waits, too
		<-ctx.Done()
		s.stopping.Store(true)
		s.env.Report(false, "stopping; ends running rounds")
	})
	loops.Wait()
	endBeats()
	beats.Wait()
	return first
}

// listen subscribes to heartbeats and serves questions. What the bus does not
// permit is done without: projects run all the same.
func (s *shift) listen(ctx context.Context) (quiet func(), err error) {
	var stops []func()
	quiet = func() {
		for _, stop := range slices.Backward(stops) {
			stop()
		}
	}
	s.ears.connection(s.env.Bus.Connected())
	stops = append(stops, s.env.Bus.Notify(s.onConnection))
	var denied *bus.Denied
	unsubscribe, err := s.env.Bus.Heartbeats(ctx, ">", s.ears.heard)
	switch {
	case errors.As(err, &denied):
		s.ears.deaf = true
		s.log.Warn("heartbeats cannot be heard, so no project is taken over from a silent supervisor", "error", err)
	case err != nil:
		quiet()
		return nil, err
	default:
		stops = append(stops, unsubscribe)
	}
	unserve, err := s.serve(ctx)
	switch {
	case errors.As(err, &denied):
		s.log.Warn("questions about projects are not answered", "error", err)
	case err != nil:
		quiet()
		return nil, err
	default:
		stops = append(stops, unserve)
	}
	return quiet, nil
}

func (s *shift) onConnection(connected bool) {
	s.ears.connection(connected)
	s.tell()
	if connected {
		for _, t := range s.tends {
			t.rouse()
		}
	}
}

// follow rouses a project whenever something of a family is stored about it.
func (s *shift) follow(ctx context.Context, family string) error {
	from, err := s.env.Bus.LastSeq(ctx)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	filter := events.PrefixStored + "." + family + ".>"
	err = s.env.Bus.Follow(ctx, from+1, filter, func(st events.Stored) error {
		if subject, err := events.ParseSubject(st.Subject); err == nil {
			if t := s.tender(subject.Scope); t != nil {
				t.rouse()
			}
		}
		return nil
	})
	return unlessEnded(ctx, err)
}

func (s *shift) tender(project string) *tender {
	i, found := slices.BinarySearchFunc(s.tends, project, func(t *tender, name string) int { return strings.Compare(t.name, name) })
	if !found {
		return nil
	}
	return s.tends[i]
}

// tell writes the board: the bus that is away, or what keeps projects from
// running.
func (s *shift) tell() {
	if s.stopping.Load() {
		return
	}
	if away := s.ears.away(); !away.IsZero() {
		s.env.Report(false, "the bus is away since "+away.UTC().Format(time.RFC3339)+"; running rounds go on")
		return
	}
	var waiting []string
	for _, t := range s.tends {
		if reason := t.waits(); reason != "" {
			waiting = append(waiting, t.name+": "+reason)
		}
	}
	s.env.Report(true, strings.Join(waiting, "; "))
}

// unlessEnded drops an error that only says that the run is over.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// beat sends a heartbeat for each project that is held, three to a lease.
func (s *shift) beat(ctx context.Context) {
	tick := time.NewTicker(time.Duration(s.cfg.LeaseS) * time.Second / 3)
	defer tick.Stop()
	for {
		for _, t := range s.tends {
			if !t.holds() {
				continue
			}
			if err := s.env.Bus.Heartbeat(fmt.Sprintf("%s.%s.%s", t.name, s.me.actor, s.me.session), []byte("{}")); err != nil {
				s.log.Debug("heartbeat not sent", "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
