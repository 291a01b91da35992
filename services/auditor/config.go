package auditor

import (
	"fmt"

	"github.com/banksman/banksman/events"
)

// Config is the auditor's table of the configuration.
type Config struct {
	ActorName      string `toml:"actor" doc:"Actor token in the trust file."`
	SealMaxEntries int    `toml:"seal_max_entries" doc:"While events keep coming, seal after so many, 1 to 100000. When none waits, a seal is made at once."`
	SealMaxMS      int    `toml:"seal_max_ms" doc:"While events keep coming, seal after so many milliseconds, 1 to 10000."`
	KVRecent       int    `toml:"kv_recent" doc:"How many ended jobs the key-value view bm_jobs keeps for the nats command line, 0 to 10000. Open jobs are always in it, up to 10000."`
	CheckS         int    `toml:"check_s" doc:"Seconds between two looks at the state of the stream, which show deleted events and lost tails, 1 to 3600."`
	EpochJobs      int    `toml:"epoch_jobs" doc:"Begin a new epoch when so many jobs have ended in this one, 10 to 10000000. What is still in force goes along; the bus lets go of the rest, which stays in the audit log."`
	EpochPercent   int    `toml:"epoch_percent" doc:"Begin a new epoch when the stream has filled so many percent of its max_bytes, 10 to 79."`
	ScrubH         int    `toml:"scrub_h" doc:"Hours between two comparisons of the whole stream with the log, which show what a disk has lost unnoticed, 1 to 168. One is made at every start, too."`
	Head           string `toml:"head" doc:"Where the newest head that may be signed is kept: \"bucket\" for a bucket of the bus in an account of its own and, as a second memory, a file; \"file\" for the file alone. Before a change to \"bucket\" run 'banksman audit relock' once."`
	WitnessPolicy  string `toml:"witness_policy" doc:"File that names witnesses (C2SP tlog-policy). Those with a URL are shown each head, and their cosignatures are stored with the checkpoint; empty for none."`
}

// Values of head.
const (
	headBucket = "bucket"
	headFile   = "file"
)

// KeepsElsewhere says whether heads are kept outside the auditor's folders as well.
func (c *Config) KeepsElsewhere() bool { return c.Head == headBucket }

// DefaultConfig is the auditor of a new site.
func DefaultConfig() Config {
	return Config{ActorName: "auditor", SealMaxEntries: 1000, SealMaxMS: 20, KVRecent: 500, CheckS: 10, ScrubH: 24, EpochJobs: 100_000, EpochPercent: 60, Head: headBucket}
}

// Validate checks the section.
func (c *Config) Validate() error {
	if err := events.CheckName("actor", c.ActorName); err != nil {
		return err
	}
	if c.Head != headBucket && c.Head != headFile {
		return fmt.Errorf("head = %q: must be %q or %q", c.Head, headBucket, headFile)
	}
	for _, r := range []struct {
		key               string
		value, least, top int
	}{
		{"seal_max_entries", c.SealMaxEntries, 1, 100000},
		{"seal_max_ms", c.SealMaxMS, 1, 10000},
		{"kv_recent", c.KVRecent, 0, 10000},
		{"epoch_jobs", c.EpochJobs, 10, 10_000_000},
		{"epoch_percent", c.EpochPercent, 10, 79},
		{"check_s", c.CheckS, 1, 3600},
		{"scrub_h", c.ScrubH, 1, 168},
	} {
		if r.value < r.least || r.value > r.top {
			return fmt.Errorf("%s = %d: must be %d to %d", r.key, r.value, r.least, r.top)
		}
	}
	return nil
}
