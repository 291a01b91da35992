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
	SocketGroup string `toml:"socket_group" doc:"Group whose members may reach the proposer's socket; empty is the proposer's own user alone. A token is needed all the same. The proposer must be a member of it."`
	MaxAttempts int    `toml:"max_attempts" doc:"Largest number of attempts a proposal may ask for. 1 to 100."`

	RatePerMinute  int `toml:"rate_per_minute" doc:"Proposals that one token may make in a minute. 0 to 1000000; 0 is no bound. Refusals and repetitions count."`
	RateBurst      int `toml:"rate_burst" doc:"Proposals that one token may make at once before the rate counts. 1 to 1000000."`
	TotalPerMinute int `toml:"total_per_minute" doc:"Proposals that all tokens together may make in a minute. 0 to 1000000; 0 is no bound."`
	TotalBurst     int `toml:"total_burst" doc:"Proposals that all tokens together may make at once before the rate counts. 1 to 1000000."`
	OpenPerToken   int `toml:"open_per_token" doc:"Undecided requests that one token may have open. 0 to 100000; 0 is no bound."`
	OpenTotal      int `toml:"open_total" doc:"Undecided requests that may be open in all. 0 to 100000; 0 is no bound. Up to 1000 fit one inbox."`
}

// DefaultConfig is the proposer of a new site.
func DefaultConfig() Config {
	return Config{ActorName: "proposer", Pool: "default", TimeoutS: 3600, ExpiresS: 86400, MaxArgs: 1024, MaxBytes: 131072, MaxAttempts: 10,
		RatePerMinute: 1200, RateBurst: 1000, TotalPerMinute: 6000, TotalBurst: 5000, OpenPerToken: 500, OpenTotal: 1000}
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
		{"rate_per_minute", c.RatePerMinute, 0, 1000000},
		{"rate_burst", c.RateBurst, 1, 1000000},
		{"total_per_minute", c.TotalPerMinute, 0, 1000000},
		{"total_burst", c.TotalBurst, 1, 1000000},
		{"open_per_token", c.OpenPerToken, 0, 100000},
		{"open_total", c.OpenTotal, 0, 100000},
	} {
		if r.v < r.low || r.v > r.high {
			return fmt.Errorf("%s is %d: want %d to %d", r.key, r.v, r.low, r.high)
		}
	}
	return nil
}
