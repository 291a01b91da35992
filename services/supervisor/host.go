package supervisor

import (
	"context"
	"os"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/vitals"
)

// observe says how the supervisor's machine stands, until ctx ends: an agent
// whose disk is full loses its work.
func (s *shift) observe(ctx context.Context) {
	paths := []string{s.env.Layout.Dir, os.TempDir(), "/"}
	for _, t := range s.tends {
		paths = append(paths, t.cfg.WorkDir)
	}
	r := vitals.Reporter{
		Gauge: vitals.Gauge{Paths: paths}, Scope: events.SiteScope, Actor: s.me.actor, Session: s.me.session,
		Bus: s.env.Bus, Voice: s.env.Append, Log: s.log,
	}
	r.Run(ctx)
}
