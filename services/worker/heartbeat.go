package worker

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/leases"
	"github.com/banksman/banksman/services/internal/proc"
)

// A lease is what an attempt is granted from the moment of the last word that
// the bus is known to have. Peers count from when they hear that word, so later,
// and wait for a third of the lease more.
type lease time.Duration

// until is when the processes of a retry-safe attempt have to be gone.
func (l lease) until(word proc.Moment) proc.Moment { return word.Add(time.Duration(l)) }

// notice is how long before that they are asked to end.
func (l lease) notice() time.Duration { return time.Duration(l) / 3 }

// beats is the pause between heartbeats: some may be lost, and the next one still
// arrives before the notice.
func (l lease) beats() time.Duration { return time.Duration(l) / 6 }

// beat sends heartbeats, six to a lease, until ctx ends. A confirmed one extends
// what the stewards of retry-safe attempts were granted: without, they end the
// attempt before somebody else may start its job again, also where this process is
// stopped.
func (s *shift) beat(ctx context.Context) {
	tick := time.NewTicker(s.lease().beats())
	defer tick.Stop()
	for {
		word, line := proc.Boottime(), s.env.Bus.Line()
		if s.pulse() && s.atRisk() && s.confirmed(ctx, s.lease().beats()) && s.env.Bus.Line() == line {
			s.extend(s.lease().until(word))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *shift) lease() lease { return lease(time.Duration(s.cfg.LeaseS) * time.Second) }

// extend lets the retry-safe attempts live on.
func (s *shift) extend(until proc.Moment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a := range s.running {
		if retrySafe(a) {
			a.extend(until)
		}
	}
}

// pulse sends one heartbeat, or returns false. The bus being away is seen
// elsewhere.
func (s *shift) pulse() bool {
	p := leases.Pulse{Slots: s.cfg.Slots, Running: []leases.Underway{}}
	s.mu.Lock()
	for a := range s.running {
		if a.started != 0 {
			p.Running = append(p.Running, leases.Underway{Job: a.job.ID, Started: a.started})
		}
	}
	s.mu.Unlock()
	data, err := json.Marshal(p, json.Deterministic(true))
	if err == nil {
		err = s.env.Bus.Heartbeat(fmt.Sprintf("%s.%s.%s", s.me.pool, s.me.actor, s.me.session), data)
	}
	if err != nil {
		s.log.Debug("heartbeat not sent", "error", err)
	}
	return err == nil
}

func retrySafe(a *attempt) bool { return a.job.Proposal.RetrySafe }

// atRisk says whether somebody may start again what runs here.
func (s *shift) atRisk() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a := range s.running {
		if retrySafe(a) {
			return true
		}
	}
	return false
}

// confirmed asks the stream for this worker's own announcement: an answer
// shows that what was sent before it has arrived.
func (s *shift) confirmed(ctx context.Context, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, _, err := s.env.Bus.Last(ctx, events.Filter("worker", s.me.session))
	return err == nil
}

// cancelAll ends every attempt.
func (s *shift) cancelAll(reason string) {
	s.mu.Lock()
	chosen := slices.Collect(maps.Keys(s.running))
	s.mu.Unlock()
	for _, a := range chosen {
		s.log.Warn("ending a running job", "job", a.job.ID, "reason", reason)
		a.end(reason)
	}
}
