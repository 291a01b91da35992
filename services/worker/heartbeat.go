package worker

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"time"

	"github.com/banksman/banksman/events"
)

// pulse is what a heartbeat says.
type pulse struct {
	Slots   int        `json:"slots"`
	Running []underway `json:"running"`
}

// underway is one attempt that runs.
type underway struct {
	Job     string `json:"job"`
	Started uint64 `json:"started"`
}

// beat sends heartbeats, three to a lease, until ctx ends, and ends retry-safe
// attempts when they cannot be confirmed: after the lease somebody else may
// start these jobs again.
func (s *shift) beat(ctx context.Context) {
	lease := time.Duration(s.cfg.LeaseS) * time.Second
	tick := time.NewTicker(lease / 6)
	defer tick.Stop()
	confirmed := time.Now()
	for n := 0; ; n++ {
		if n%2 == 0 {
			s.pulse()
		}
		if !s.atRisk() || s.confirmed(ctx, lease/6) {
			confirmed = time.Now()
		} else if time.Since(confirmed) >= lease-lease/3 {
			s.cancelAll(reasonFenced, retrySafe)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// pulse sends one heartbeat. The bus being away is seen elsewhere.
func (s *shift) pulse() {
	p := pulse{Slots: s.cfg.Slots, Running: []underway{}}
	s.mu.Lock()
	for a := range s.running {
		if a.started != 0 {
			p.Running = append(p.Running, underway{Job: a.job.ID, Started: a.started})
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

// cancelAll ends the attempts that which names.
func (s *shift) cancelAll(reason string, which func(*attempt) bool) {
	s.mu.Lock()
	var chosen []*attempt
	for a := range s.running {
		if which(a) {
			chosen = append(chosen, a)
		}
	}
	s.mu.Unlock()
	for _, a := range chosen {
		s.log.Warn("ending a running job", "job", a.job.ID, "reason", reason)
		a.end(reason)
	}
}
