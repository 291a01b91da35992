package front_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/banksman/banksman/services/internal/lab"
)

// kills is how often up is killed in mid-publish.
const kills = 20

// What was acknowledged is never lost: up is killed while four proposers
// publish, over and over, and every job whose propose exited 0 is there
// afterwards, in a log that verifies.
func TestKilledInMidPublish(t *testing.T) {
	t.Parallel()
	s := lab.NewSite(t, binary)
	var acknowledged []string
	for round := range kills {
		up := s.Up()
		acknowledged = append(acknowledged, publishUntilKilled(t, s, up, 3+round%5)...)
	}
	s.Up()
	if len(acknowledged) < kills*3 {
		t.Fatalf("only %d proposals were acknowledged", len(acknowledged))
	}
	for _, id := range acknowledged {
		show(t, s, id)
	}
	r := s.Run("audit", "verify", "--json")
	if r.Code != 0 {
		t.Errorf("the log does not verify: %s", r)
	}
}

// publishUntilKilled proposes from four processes at once and kills up after so
// many acknowledgements, while the others are on their way. It returns the ids
// that were acknowledged.
func publishUntilKilled(t *testing.T, s *lab.Site, up *lab.Process, after int) []string {
	t.Helper()
	var mu sync.Mutex
	var ids []string
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for ctx.Err() == nil {
				out, err := s.Command(t.Context(), "propose", "--", "true").Output()
				var exit *exec.ExitError
				if errors.As(err, &exit) {
					continue // up is gone
				}
				if err != nil {
					t.Errorf("propose: %v", err)
					return
				}
				mu.Lock()
				ids = append(ids, strings.TrimSpace(string(out)))
				n := len(ids)
				mu.Unlock()
				if n == after {
					up.Kill()
					cancel()
				}
			}
		})
	}
	wg.Wait()
	return ids
}
