package monitor

import (
	"fmt"

	"github.com/banksman/banksman/events"
)

// Config is the monitor's table of the configuration.
type Config struct {
	Actor               string `toml:"actor" doc:"Actor token in the trust file."`
	CheckS              int    `toml:"check_s" doc:"Seconds between two looks at what only time brings about, such as a round that hangs, 1 to 300."`
	TimeoutWindow       int    `toml:"timeout_window" doc:"How many of a project's newest rounds the timeout rate is about, 1 to 100; 0 switches the detector off."`
	TimeoutPercent      int    `toml:"timeout_percent" doc:"Share of timeout_window that may not have timed out without a warning, 1 to 100."`
	HungPercent         int    `toml:"hung_percent" doc:"A round that runs for so much of its time limit hangs, 101 to 1000; 0 switches the detector off."`
	SilentS             int    `toml:"silent_s" doc:"Seconds for which a project that is held, neither stopped nor halted, may begin no round without a warning, 60 to 604800; 0 for any time."`
	AuthFailures        int    `toml:"auth_failures" doc:"Rounds in a row whose agent was refused by its provider's log-in that are critical, 1 to 100; 0 switches the detector off."`
	AuthStop            string `toml:"auth_stop" doc:"What that orders: drain, kill or none."`
	CrashRounds         int    `toml:"crash_rounds" doc:"Rounds in a row that failed quickly that are critical, 2 to 100; 0 switches the detector off."`
	CrashShortS         int    `toml:"crash_short_s" doc:"A round that failed in less than so many seconds failed quickly, 1 to 3600."`
	CrashStop           string `toml:"crash_stop" doc:"What that orders: drain, kill or none."`
	DiskWarningPercent  int    `toml:"disk_warning_percent" doc:"Used share of a disk that is worth a warning, 1 to 100."`
	DiskCriticalPercent int    `toml:"disk_critical_percent" doc:"Used share of a disk that is critical, above the warning and at most 100; 0 switches the detector off."`
	DiskStop            string `toml:"disk_stop" doc:"What a critical disk orders for every project that runs on its machine: drain, kill or none."`
	IntegrityStop       string `toml:"integrity_stop" doc:"What a fault of the stream or the audit log orders for every project: drain, kill or none."`
	ConfirmS            int    `toml:"confirm_s" doc:"Seconds in which a stop that an alert ordered, or one to kill, has to be confirmed; then it is escalated, and a drain becomes a kill. 1 to 86400."`
}

// stopNone is the mode of a detector that orders nothing.
const stopNone = "none"

// DefaultConfig is the monitor of a new site.
func DefaultConfig() Config {
	return Config{
		Actor: "monitor", CheckS: 5, TimeoutWindow: 10, TimeoutPercent: 20, HungPercent: 150, SilentS: 3600,
		AuthFailures: 3, AuthStop: events.StopDrain, CrashRounds: 5, CrashShortS: 60, CrashStop: events.StopDrain,
		DiskWarningPercent: 90, DiskCriticalPercent: 95, DiskStop: events.StopDrain, IntegrityStop: events.StopDrain, ConfirmS: 300,
	}
}

// Validate checks the section.
func (c *Config) Validate() error {
	if err := events.CheckName("actor", c.Actor); err != nil {
		return err
	}
	for _, r := range []struct {
		key         string
		value       int
		least, most int
		off         bool // 0 is allowed too
	}{
		{"check_s", c.CheckS, 1, 300, false},
		{"timeout_window", c.TimeoutWindow, 1, 100, true},
		{"timeout_percent", c.TimeoutPercent, 1, 100, false},
		{"hung_percent", c.HungPercent, 101, 1000, true},
		{"silent_s", c.SilentS, 60, 604800, true},
		{"auth_failures", c.AuthFailures, 1, 100, true},
		{"crash_rounds", c.CrashRounds, 2, 100, true},
		{"crash_short_s", c.CrashShortS, 1, 3600, false},
		{"disk_warning_percent", c.DiskWarningPercent, 1, 100, false},
		{"disk_critical_percent", c.DiskCriticalPercent, c.DiskWarningPercent + 1, 100, true},
		{"confirm_s", c.ConfirmS, 1, 86400, false},
	} {
		if (r.value < r.least || r.value > r.most) && !(r.off && r.value == 0) {
			return fmt.Errorf("%s = %d: must be %d to %d", r.key, r.value, r.least, r.most)
		}
	}
	for _, m := range []struct{ key, value string }{
		{"auth_stop", c.AuthStop}, {"crash_stop", c.CrashStop}, {"disk_stop", c.DiskStop}, {"integrity_stop", c.IntegrityStop},
	} {
		if m.value != events.StopDrain && m.value != events.StopKill && m.value != stopNone {
			return fmt.Errorf("%s = %q: must be drain, kill or none", m.key, m.value)
		}
	}
	return nil
}

// stopOf is what a critical alert of a detector orders.
func (c *Config) stopOf(detector string) string {
	switch detector {
	case nameAuth:
		return c.AuthStop
	case nameCrash:
		return c.CrashStop
	case nameDisk:
		return c.DiskStop
	case nameIntegrity:
		return c.IntegrityStop
	}
	return stopNone
}
