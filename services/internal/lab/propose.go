package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/keys"
)

// proposers is how many agents propose at once.
const proposers = 16

// Propose proposes jobs as the local agent, many at once, and returns when each
// was acknowledged. While the proposer or the bus is away it proposes the same
// again.
func (s *Site) Propose(all ...agentapi.Proposal) { s.Agent("local").Propose(all...) }

// Agent is who proposes, by the name of its token.
type Agent struct {
	site *Site
	name string
}

// Agent is an agent of the site; one that is not known yet gets a token.
func (s *Site) Agent(name string) Agent {
	s.t.Helper()
	path := s.layout().Token("agent", name)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err := keys.WriteSecret(path, []byte(keys.NewToken()+"\n")); err != nil {
			s.t.Fatal(err)
		}
	}
	return Agent{s, name}
}

// Propose is the site's, by this agent.
func (a Agent) Propose(all ...agentapi.Proposal) {
	s := a.site
	s.t.Helper()
	token, err := keys.ReadSecret(s.layout().Token("agent", a.name))
	if err != nil {
		s.t.Fatal(err)
	}
	queue := make(chan agentapi.Proposal, len(all))
	for _, p := range all {
		queue <- p
	}
	close(queue)
	errs := make(chan error, proposers)
	var wg sync.WaitGroup
	for range min(proposers, len(all)) {
		wg.Go(func() {
			c := agentapi.NewClient(s.layout().ProposerSocket(), strings.TrimSpace(string(token)))
			for p := range queue {
				if err := propose(s.t.Context(), c, p); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		s.t.Fatal(err)
	}
}

// propose proposes one job until it is acknowledged.
func propose(ctx context.Context, c *agentapi.Client, p agentapi.Proposal) (err error) {
	acknowledged := Within(2*Patience, func() bool {
		attempt, cancel := context.WithTimeout(ctx, Patience/4)
		defer cancel()
		j, fault := c.Propose(attempt, p)
		if err = fault; err == nil && j.Status == lifecycle.Denied {
			err = fmt.Errorf("denied: %s", j.Ending)
			return true
		}
		var refused *agentapi.Error
		return err == nil || ctx.Err() != nil || errors.As(err, &refused) && refused.Status >= 400 && refused.Status < http.StatusInternalServerError
	})
	switch {
	case err != nil:
		return fmt.Errorf("propose %q: %w", p.Argv, err)
	case !acknowledged:
		return fmt.Errorf("propose %q: no answer in %s", p.Argv, time.Duration(2*Patience))
	}
	return nil
}
