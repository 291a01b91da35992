package host

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/redact"
	"github.com/banksman/banksman/services/internal/site"
)

// SiteConfig is what every role of a site must agree on.
type SiteConfig struct {
	Origin  string `toml:"origin" doc:"The site's unique name, chosen by init and never changed: every signature and checkpoint names it."`
	RootKey string `toml:"root_key" doc:"Public key of the root that signs trust files. It is the only thing taken on faith."`
	BusURL  string `toml:"bus_url" doc:"Where the bus listens, as a NATS URL. Roles in one process with the bus do not use it."`

	SecretPatterns []string `toml:"secret_patterns" doc:"Further regular expressions (RE2) of what is a secret on this site, beside those that are built in. A proposal with a text that matches is refused and not stored; in the output of jobs and rounds, line by line, a match is replaced."`
}

// Validate checks the section.
func (c *SiteConfig) Validate() error {
	if err := events.CheckName("origin", c.Origin); err != nil {
		return err
	}
	if _, err := keys.PublicKey(c.RootKey).Bytes(); err != nil {
		return fmt.Errorf("root_key: %w", err)
	}
	if !strings.Contains(c.BusURL, "://") { // there may be several, with commas
		return fmt.Errorf("bus_url %q: want a NATS URL, such as tls://127.0.0.1:4222", c.BusURL)
	}
	if _, err := redact.NewDetector(c.SecretPatterns...); err != nil {
		return fmt.Errorf("secret_patterns: %w", err)
	}
	return nil
}

// BusConfig is the bus's own table.
type BusConfig struct {
	Listen   string   `toml:"listen" doc:"Address and port to listen on. Keep it on loopback unless other hosts run workers."`
	Hosts    []string `toml:"hosts" doc:"Further names or addresses that the bus certificate was issued for."`
	Pools    []string `toml:"pools" doc:"Pools of workers that jobs may name."`
	MaxBytes int64    `toml:"max_bytes" doc:"Bound of the audited stream in bytes, and of the store of people's words that its events name. Above 80 % of it new proposals are refused, so that what was begun can end."`
	Output   int64    `toml:"output_max_bytes" doc:"Bound of the stored output of jobs and rounds in bytes. From seven eighths of it on the oldest goes; what ended with it, and its digest, stay in the log."`
	OutputS  int64    `toml:"output_max_age_s" doc:"Seconds for which output is kept, at least an hour; 0 for as long as there is room."`
}

// DefaultBus is the bus of a new site.
func DefaultBus() BusConfig {
	return BusConfig{Listen: "127.0.0.1:4222", Hosts: []string{}, Pools: []string{"default"}, MaxBytes: 8 << 30, Output: 4 << 30}
}

// Validate checks the section.
func (c *BusConfig) Validate() error {
	_, port, err := net.SplitHostPort(c.Listen)
	if n, bad := strconv.Atoi(port); err != nil || bad != nil || n > 65535 {
		return fmt.Errorf("listen %q: want address:port", c.Listen)
	}
	if len(c.Pools) == 0 {
		return fmt.Errorf("pools: at least one is needed")
	}
	for i, p := range c.Pools {
		if err := events.CheckName("pool", p); err != nil {
			return fmt.Errorf("pools: %w", err)
		}
		if slices.Contains(c.Pools[:i], p) {
			return fmt.Errorf("pools: %q is listed twice", p)
		}
	}
	if c.MaxBytes < 64<<20 || c.Output < 16<<20 {
		return fmt.Errorf("max_bytes must be at least 64 MiB and output_max_bytes at least 16 MiB")
	}
	if c.OutputS != 0 && (c.OutputS < 3600 || c.OutputS > 1e9) {
		return fmt.Errorf("output_max_age_s = %d: must be 0, or 3600 to 1000000000", c.OutputS)
	}
	return nil
}

// ErrNoSite is a folder without a site.
var ErrNoSite = errors.New("make one with 'banksman init' or 'banksman up'")

func loadSection(l site.Layout, name string, into any) error {
	return config.Load(l.Config(), config.Section{Name: name, Into: into})
}
