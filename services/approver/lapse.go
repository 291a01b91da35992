package approver

import (
	"context"
	"errors"
	"log/slog"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/query"
)

// listen hears the heartbeats of every pool.
func (g *gate) listen(ctx context.Context) (stop func(), err error) {
	unsubscribe, err := g.env.Bus.Heartbeats(ctx, ">", g.ear.Heard)
	if err != nil {
		return nil, err
	}
	deaf := g.env.Bus.Notify(g.ear.Connection)
	g.ear.Connection(g.env.Bus.Connected())
	return func() {
		deaf()
		unsubscribe()
	}, nil
}

// lapseDeserted ends the claims of workers that fell silent in pools where no
// other worker is left to see it: nobody could cancel or retry their jobs before
// a worker comes.
func (g *gate) lapseDeserted(ctx context.Context) error {
	var failed []error
	err := query.Each(ctx, g.env.Bus, query.List{Status: []lifecycle.Status{lifecycle.Running}}, func(id string) error {
		if err := g.lapse(ctx, id); err != nil {
			failed = append(failed, err)
		}
		return ctx.Err()
	})
	return errors.Join(append(failed, err)...)
}

func (g *gate) lapse(ctx context.Context, id string) error {
	j, err := g.env.Standing.Job(ctx, id)
	if err != nil {
		return err
	}
	silent, deserted := g.ear.Deserted(j)
	if !deserted {
		return nil
	}
	err = g.append(ctx, j, verdict{kind: "job.lapsed", payload: &events.JobLapsed{
		Started: j.Current().StartedSeq, SilentS: int(silent.Seconds()), Why: "lease",
	}})
	if isConflict(err) {
		return nil // it has moved; the next round looks again
	}
	if err == nil {
		g.env.Log.Warn("the attempt of a silent worker lapsed, and its pool has no other", slog.String("job", id), slog.String("pool", j.Pool), slog.Duration("silent", silent))
	}
	return err
}
