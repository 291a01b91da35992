package person

import (
	"fmt"

	"github.com/banksman/banksman/events"
)

// Config is the table [person].
type Config struct {
	ActorName      string `toml:"actor" doc:"Actor token of the person who decides from this folder. Its name stands in the trust file only."`
	ApprovalValidS int    `toml:"approval_valid_s" doc:"How many seconds an approval by this person may wait for its start. 1 to 604800."`
	GrantMaxS      int    `toml:"grant_max_s" doc:"Longest time in seconds for which this person gives a grant. 0 gives none, 604800 is the most. The gate has a bound of its own."`
}

// DefaultConfig is the person of a new site; init fills in the token.
func DefaultConfig() Config { return Config{ApprovalValidS: 3600, GrantMaxS: 28800} }

// Validate checks the section.
func (c *Config) Validate() error {
	if err := events.CheckName("actor", c.ActorName); err != nil {
		return err
	}
	if c.ApprovalValidS < 1 || c.ApprovalValidS > 604800 {
		return fmt.Errorf("approval_valid_s is %d: want 1 to 604800", c.ApprovalValidS)
	}
	if c.GrantMaxS < 0 || c.GrantMaxS > events.MaxGrantS {
		return fmt.Errorf("grant_max_s is %d: want 0 to %d", c.GrantMaxS, events.MaxGrantS)
	}
	return nil
}
