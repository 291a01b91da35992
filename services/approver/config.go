package approver

import (
	"fmt"
	"time"

	"github.com/banksman/banksman/events"
)

// Config is the table [gate].
type Config struct {
	ActorName      string `toml:"actor" doc:"Actor token that the gate signs as."`
	ResolveWaitMS  int    `toml:"resolve_wait_ms" doc:"How many milliseconds a worker has to report what would run, before the job is listed as unresolved. 100 to 60000."`
	ApprovalValidS int    `toml:"approval_valid_s" doc:"How many seconds an approval by policy may wait for its start. 1 to 86400."`
	GrantMaxS      int    `toml:"grant_max_s" doc:"How many seconds after it was given a grant counts at most, whatever it says itself. 0 to 604800; with 0 none counts."`
	ExpireEveryS   int    `toml:"expire_every_s" doc:"How often, in seconds, requests and approvals that ran out are closed. They end by stream time in any case; this only says so. As often it looks whether a worker fell silent in a pool that has no other. 1 to 3600."`
}

// DefaultConfig is the gate of a new site.
func DefaultConfig() Config {
	return Config{ActorName: "gate", ResolveWaitMS: 5000, ApprovalValidS: 3600, GrantMaxS: 28800, ExpireEveryS: 15}
}

// Validate checks the section.
func (c *Config) Validate() error {
	if err := events.CheckName("actor", c.ActorName); err != nil {
		return err
	}
	if c.ResolveWaitMS < 100 || c.ResolveWaitMS > 60000 {
		return fmt.Errorf("resolve_wait_ms is %d: want 100 to 60000", c.ResolveWaitMS)
	}
	if c.ApprovalValidS < 1 || c.ApprovalValidS > 86400 {
		return fmt.Errorf("approval_valid_s is %d: want 1 to 86400", c.ApprovalValidS)
	}
	if c.GrantMaxS < 0 || c.GrantMaxS > events.MaxGrantS {
		return fmt.Errorf("grant_max_s is %d: want 0 to %d", c.GrantMaxS, events.MaxGrantS)
	}
	if c.ExpireEveryS < 1 || c.ExpireEveryS > 3600 {
		return fmt.Errorf("expire_every_s is %d: want 1 to 3600", c.ExpireEveryS)
	}
	return nil
}

func (c *Config) resolveWait() time.Duration {
	return time.Duration(c.ResolveWaitMS) * time.Millisecond
}
func (c *Config) expireEvery() time.Duration { return time.Duration(c.ExpireEveryS) * time.Second }
