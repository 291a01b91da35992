package vitals

import (
	"context"
	"log/slog"
	"time"

	"github.com/banksman/banksman/events"
)

const (
	// Every is how long an unchanged machine is not spoken of.
	Every = 5 * time.Minute
	// Look is how often it is measured.
	Look = 15 * time.Second
	// sayWithin bounds one append, so that a bus that is away costs a reading
	// only.
	sayWithin = 10 * time.Second
)

// Bus finds the last event under a filter.
type Bus interface {
	Last(ctx context.Context, filter string) (events.Stored, bool, error)
}

// Voice appends events.
type Voice interface {
	Append(ctx context.Context, s events.Subject, expect uint64, payload any) (uint64, error)
}

// Reporter publishes host.observed for one process.
type Reporter struct {
	Gauge Gauge
	// Scope is the worker's pool, or "site".
	Scope   string
	Actor   string
	Session string
	Bus     Bus
	Voice   Voice
	Log     *slog.Logger

	level string
	said  time.Time
	last  uint64 // its last event
	doubt bool   // an append failed; what became of it must be read
}

// Run reports until ctx ends.
func (r *Reporter) Run(ctx context.Context) {
	tick := time.NewTicker(Look)
	defer tick.Stop()
	for {
		r.look(ctx, time.Now())
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// look measures and says what is due.
func (r *Reporter) look(ctx context.Context, now time.Time) {
	o, err := r.Gauge.Read()
	if err != nil {
		r.Log.Debug("the machine could not be measured in full", "error", err)
	}
	if o.Host == "" || o.Level == r.level && now.Sub(r.said) < Every {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sayWithin)
	defer cancel()
	if err := r.say(ctx, o); err != nil {
		if ctx.Err() == nil {
			r.Log.Warn("how the machine stands could not be stored", "error", err)
		}
		return
	}
	r.level, r.said = o.Level, now
}

func (r *Reporter) say(ctx context.Context, o events.HostObserved) error {
	s := events.For("host.observed", r.Scope, r.Session, r.Actor)
	if r.doubt {
		st, _, err := r.Bus.Last(ctx, s.Filter())
		if err != nil {
			return err
		}
		r.last = st.Seq
	}
	seq, err := r.Voice.Append(ctx, s, r.last, &o)
	r.doubt = err != nil
	if err == nil {
		r.last = seq
	}
	return err
}
