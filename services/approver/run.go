package approver

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/jobs"
	"github.com/banksman/banksman/services/internal/leases"
	"github.com/banksman/banksman/services/internal/permits"
	"github.com/banksman/banksman/services/internal/policy"
	"github.com/banksman/banksman/services/internal/query"
)

// Role is the approver.
type Role struct{ config Config }

// New makes the role with its defaults.
func New() *Role { return &Role{config: DefaultConfig()} }

// Name is "approver".
func (r *Role) Name() string { return "approver" }

// Power is the gate's.
func (r *Role) Power() events.Role { return events.RoleGate }

// Section is [gate].
func (r *Role) Section() config.Section { return config.Section{Name: "gate", Into: &r.config} }

// Actor is the token that the gate signs as.
func (r *Role) Actor() string { return r.config.ActorName }

// durable is the consumer that remembers what the gate has seen.
const durable = "gate"

// Run decides until the context ends.
func (r *Role) Run(ctx context.Context, env *host.Env) error {
	g := newGate(&r.config, env)
	stop, err := env.Bus.Serve(ctx, "banksman-gate", env.Version, "Assesses proposals without storing them", map[string]bus.Endpoint{
		query.Assess: g.assess,
	})
	if err != nil {
		return fmt.Errorf("serve assessments: %w", err)
	}
	defer stop()
	deaf, err := g.listen(ctx)
	if err != nil {
		return fmt.Errorf("listen to workers: %w", err)
	}
	defer deaf()
	g.look(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wg.Go(func() { g.expireLoop(ctx) })
	wg.Go(func() { g.takeUp(ctx) })
	return env.Bus.Consume(ctx, durable, inFlight, g.handle)
}

// inFlight is how many deliveries are worked on at once. Appends go one at a
// time; more than one hides the round trips of reading.
const inFlight = 8

// gate decides deliveries.
type gate struct {
	config *Config
	env    *host.Env
	grants *permits.Keeper
	ear    *leases.Ear
	now    func() time.Time
	ahead  time.Duration // of now before the stream's time, as far as known; the expire loop's own
}

func newGate(c *Config, env *host.Env) *gate {
	grants := &permits.Keeper{Reader: permits.Reader{Bus: env.Bus, Standing: env.Standing}}
	return &gate{config: c, env: env, grants: grants, ear: leases.NewEar(time.Now), now: time.Now}
}

// look shows on the board whether there is a policy to decide by.
func (g *gate) look(ctx context.Context) {
	switch _, err := g.env.Standing.Policy(ctx); {
	case err == nil:
		g.env.Report(true, "")
	case ctx.Err() == nil:
		g.env.Report(false, "nothing is decided: "+err.Error())
	}
}

// retryAfter is when a delivery comes again that could not be decided because
// something was away.
const retryAfter = time.Second

// handle decides about the job of one delivery.
func (g *gate) handle(ctx context.Context, d *bus.Delivery) {
	s, err := events.ParseSubject(d.Stored.Subject)
	if err != nil {
		g.ack(ctx, d)
		return
	}
	act := g.decideJob
	if s.Family == "ask" {
		act = g.answerJob
	}
	again, err := act(ctx, s.ID)
	switch {
	case err != nil && ctx.Err() == nil:
		g.env.Log.Error("job not decided", slog.String("job", s.ID), slog.Any("error", err))
		g.env.Report(false, "nothing is decided: "+err.Error())
		d.Nak(retryAfter)
	case err != nil:
		d.Nak(0)
	case again > 0:
		d.Nak(again)
	default:
		g.env.Report(true, "")
		g.ack(ctx, d)
	}
}

// takeUp decides what an earlier life of the gate had in hand when it died. The
// queue brings that too, but only after its ack_wait.
func (g *gate) takeUp(ctx context.Context) {
	undecided := query.List{Status: []lifecycle.Status{lifecycle.Proposed, lifecycle.Pending}}
	err := query.Each(ctx, g.env.Bus, undecided, func(id string) error {
		_, err := g.decideJob(ctx, id)
		return err
	})
	if err != nil && ctx.Err() == nil {
		g.env.Log.Debug("undecided jobs not looked at; the queue brings them", slog.Any("error", err))
	}
}

func (g *gate) ack(ctx context.Context, d *bus.Delivery) {
	if err := d.Ack(ctx); err != nil && ctx.Err() == nil {
		g.env.Log.Warn("delivery not acknowledged; it will come again", slog.Any("error", err))
	}
}

// decideJob appends what is due for a job. A conflict means that somebody was
// faster: the job is read again.
func (g *gate) decideJob(ctx context.Context, id string) (again time.Duration, err error) {
	for {
		j, err := g.env.Standing.Job(ctx, id)
		if errors.Is(err, jobs.ErrUnknown) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		if j.Proposal == nil {
			return 0, nil // nothing believable was proposed
		}
		p, err := g.env.Standing.Policy(ctx)
		if err != nil {
			return 0, err
		}
		now := g.now()
		v, err := g.weigh(ctx, j, p, decide(g.config, j, p, now), now)
		if err != nil {
			return 0, err
		}
		if v.payload == nil {
			return v.again, nil
		}
		if err := g.append(ctx, j, v); !isConflict(err) {
			return 0, err
		}
	}
}

func (g *gate) append(ctx context.Context, j lifecycle.Job, v verdict) error {
	_, err := g.env.Append.Append(ctx, events.For(v.kind, j.Pool, j.ID, g.env.Actor), j.LastSeq, v.payload)
	if err != nil && !isConflict(err) {
		return fmt.Errorf("store %s for job %s: %w", v.kind, j.ID, err)
	}
	return err
}

func isConflict(err error) bool {
	var c *bus.Conflict
	return errors.As(err, &c)
}

// expireLoop closes what ran out, requests and claims.
func (g *gate) expireLoop(ctx context.Context) {
	tick := time.NewTicker(g.config.expireEvery())
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			g.look(ctx)
			if err := g.expireDue(ctx); err != nil && ctx.Err() == nil {
				g.env.Log.Warn("expired jobs not closed; the next round tries again", slog.Any("error", err))
			}
			if err := g.lapseDeserted(ctx); err != nil && ctx.Err() == nil {
				g.env.Log.Warn("running jobs not looked at; the next round tries again", slog.Any("error", err))
			}
		}
	}
}

// expireDue closes what ran out. A job that cannot be read does not keep the
// others open.
func (g *gate) expireDue(ctx context.Context) error {
	open := []lifecycle.Status{lifecycle.Proposed, lifecycle.Pending, lifecycle.Approved, lifecycle.RetryWait}
	var failed []error
	err := query.Each(ctx, g.env.Bus, query.List{Status: open}, func(id string) error {
		if err := g.expireJob(ctx, id); err != nil {
			failed = append(failed, err)
		}
		return ctx.Err()
	})
	return errors.Join(append(failed, err)...)
}

func (g *gate) expireJob(ctx context.Context, id string) error {
	j, err := g.env.Standing.Job(ctx, id)
	if err != nil {
		return err
	}
	now := g.now()
	v := expire(j, now.Add(-g.ahead))
	if v.payload == nil {
		return nil
	}
	if err := g.append(ctx, j, v); err != nil {
		if isConflict(err) {
			return nil // it has moved; the next round looks again
		}
		return err
	}
	// The fold compares with the stream's time. If that is behind, the event
	// changed nothing, and another one every few seconds would not either.
	if j, err = g.env.Standing.Job(ctx, id); err == nil && !j.Status.Final() {
		g.ahead = max(g.ahead, now.Sub(j.UpdatedAt))
	}
	return err
}

// assess answers what policy would say, storing nothing.
func (g *gate) assess(ctx context.Context, data []byte) (any, error) {
	var q query.AssessRequest
	if err := json.Unmarshal(data, &q); err != nil {
		return nil, fmt.Errorf("read the question: %w", err)
	}
	p, err := g.env.Standing.Policy(ctx)
	if err != nil {
		return nil, err
	}
	d := p.Static(policy.Request{Argv: q.Argv, Cwd: q.Cwd, Pool: q.Pool, Proposer: q.Proposer, Timeout_s: q.TimeoutS, MaxAttempts: q.MaxAttempts, EnvNames: q.EnvNames, At: time.Now()})
	if by, ok := events.ParseProposer(q.Proposer); ok && d.Verdict != policy.Deny {
		bar, _, err := g.asks().Bar(ctx, events.Content(by, q.Argv, q.Cwd), by)
		if err != nil {
			return nil, err
		}
		if bar != nil {
			r := barredRuling(*bar)
			d = policy.Decision{Verdict: policy.Deny, Code: policy.Code(r.Code), Reason: r.Reason, Instead: r.Instead}
		}
	}
	return query.Assessment{Verdict: d.Verdict.String(), Rule: d.Rule, Code: string(d.Code), Reason: d.Reason, Instead: d.Instead, Quorum: d.Quorum, Policy: p.Digest()}, nil
}
