package worker

import (
	"context"
	"os"

	"github.com/banksman/banksman/services/internal/vitals"
)

// observe says how the worker's machine stands, until ctx ends: jobs fail when
// the disks that they and the worker write to are full.
func (s *shift) observe(ctx context.Context) {
	r := vitals.Reporter{
		Gauge: vitals.Gauge{Paths: []string{s.env.Layout.Dir, os.TempDir(), "/"}},
		Scope: s.me.pool, Actor: s.me.actor, Session: s.me.session,
		Bus: s.env.Bus, Voice: s.env.Append, Log: s.log,
	}
	r.Run(ctx)
}
