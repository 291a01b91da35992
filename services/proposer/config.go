package proposer

import (
	"fmt"

	"github.com/banksman/banksman/events"
)

// Config is the table [proposer].
type Config struct {
	ActorName   string `toml:"actor" doc:"Actor token that the proposer signs as."`
	Pool        string `toml:"pool" doc:"Pool of a proposal that names none."`
	TimeoutS    int    `toml:"timeout_s" doc:"Run time in seconds after which a job's processes are ended, for a proposal that names none. 1 to 604800."`
	ExpiresS    int    `toml:"expires_s" doc:"Seconds after which an undecided request ends. 1 to 2592000."`
	MaxArgs     int    `toml:"max_args" doc:"Largest number of arguments of a proposal. 1 to 4096."`
	MaxBytes    int    `toml:"max_bytes" doc:"Largest size of a whole proposal in bytes. 1024 to 196608, so that it fits a message of the stream."`
	MaxAttempts int    `toml:"max_attempts" doc:"Largest number of attempts a proposal may ask for. 1 to 100."`
}

// DefaultConfig is the proposer of a new site.
func DefaultConfig() Config {
	return Config{ActorName: "proposer", Pool: "default", TimeoutS: 3600, ExpiresS: 86400, MaxArgs: 1024, MaxBytes: 131072, MaxAttempts: 10}
}

// Validate checks the section.
func (c *Config) Validate() error {
	if err := events.CheckName("actor", c.ActorName); err != nil {
		return err
	}
	if err := events.CheckName("pool", c.Pool); err != nil {
		return err
	}
	for _, r := range []struct {
		key          string
		v, low, high int
	}{
		{"timeout_s", c.TimeoutS, 1, 604800},
		{"expires_s", c.ExpiresS, 1, 2592000},
		{"max_args", c.MaxArgs, 1, 4096},
		{"max_bytes", c.MaxBytes, 1024, 196608},
		{"max_attempts", c.MaxAttempts, 1, 100},
	} {
		if r.v < r.low || r.v > r.high {
			return fmt.Errorf("%s is %d: want %d to %d", r.key, r.v, r.low, r.high)
		}
	}
	return nil
}
