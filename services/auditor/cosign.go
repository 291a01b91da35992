package auditor

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/banksman/banksman/services/internal/tlog"
	"github.com/banksman/banksman/services/internal/witness"
)

// loadWitnesses reads the policy file, nil if none is configured.
func loadWitnesses(path string) (*witness.Policy, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("witness_policy: %w", err)
	}
	p, err := witness.ParsePolicy(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &p, nil
}

// cosigner shows new heads to the witnesses and stores their cosignatures with the
// checkpoint. It runs beside the fold and never holds it up: where several heads are
// sealed while a witness thinks, only the newest is shown next.
type cosigner struct {
	a      *auditor
	policy *witness.Policy
	old    map[string]int64 // size that a witness cosigned last
	silent map[string]bool  // it has been said that the witness does not answer
}

// cosign runs until the context ends; the context's end is no error.
func (a *auditor) cosign(ctx context.Context) error {
	c := cosigner{a: a, policy: a.witnesses, old: map[string]int64{}, silent: map[string]bool{}}
	retry := time.NewTicker(30 * time.Second)
	defer retry.Stop()
	var done int64 // size of the last head that every witness has cosigned
	for {
		s, _, advanced := a.state.get()
		if s.head.Size > done {
			all, err := c.show(ctx, s.head)
			if err != nil {
				return err
			}
			if all {
				done = s.head.Size
				continue
			}
		}
		select {
		case <-advanced:
		case <-retry.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// show asks every witness about a head, at the same time, and says whether each of
// them has cosigned it.
func (c *cosigner) show(ctx context.Context, head tlog.Checkpoint) (all bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	grown := func(old int64) (tlog.TreeProof, error) { return c.a.reader.ProveGrowth(old, head.Size) }
	lines := make([]string, len(c.policy.Witnesses))
	errs := make([]error, len(lines))
	var group sync.WaitGroup
	for i, w := range c.policy.Witnesses {
		if w.URL == "" {
			continue
		}
		old := c.old[w.Name]
		group.Go(func() { lines[i], errs[i] = (&witness.Client{Witness: w}).Cosign(ctx, old, head, grown) })
	}
	group.Wait()
	all = true
	for i, w := range c.policy.Witnesses {
		switch {
		case errs[i] != nil:
			all = false
			if !c.silent[w.Name] {
				c.a.slog.Warn("a witness did not cosign the head", "witness", w.Name, "size", head.Size, "error", errs[i])
			}
		case lines[i] != "":
			c.old[w.Name] = head.Size
		}
		c.silent[w.Name] = errs[i] != nil
	}
	if text := strings.Join(lines, ""); text != "" {
		_, err = c.a.log.Cosign(head, text)
	}
	return all, err
}
