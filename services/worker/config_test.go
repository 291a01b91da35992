package worker

import (
	"strings"
	"testing"

	"github.com/banksman/banksman/services/internal/config"
)

func TestDefaultConfigIsValidAndSurvivesItsOwnText(t *testing.T) {
	w := New()
	w.cfg.EnvPass = append(w.cfg.EnvPass, "EDITOR")
	text := config.Render(w.Section())
	back := New()
	must(t, config.Decode("test", text, back.Section()))
	if strings.Join(back.cfg.EnvPass, " ") != strings.Join(w.cfg.EnvPass, " ") || back.cfg.LeaseS != 15 || !back.cfg.Hide {
		t.Errorf("%+v", back.cfg)
	}
}

func TestBadConfigNamesItsKey(t *testing.T) {
	for key, change := range map[string]func(*Config){
		"actor":            func(c *Config) { c.Actor = "A B" },
		"pool":             func(c *Config) { c.Pool = "" },
		"slots":            func(c *Config) { c.Slots = 0 },
		"path":             func(c *Config) { c.Path = []string{"bin"} },
		"env_pass":         func(c *Config) { c.EnvPass = []string{"BANKSMAN_TOKEN"} },
		"grace_s":          func(c *Config) { c.GraceS = 0 },
		"lease_s":          func(c *Config) { c.LeaseS = 2 },
		"drain_s":          func(c *Config) { c.DrainS = -1 },
		"max_timeout_s":    func(c *Config) { c.MaxTimeoutS = 0 },
		"max_output_bytes": func(c *Config) { c.MaxOutputBytes = 1 },
		"umask":            func(c *Config) { c.Umask = 0o1000 },
	} {
		c := DefaultConfig()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestEnvironmentIsChosen(t *testing.T) {
	t.Setenv("HOME", "/home/w")
	t.Setenv("BANKSMAN_TOKEN", "secret")
	t.Setenv("AWS_SECRET", "secret")
	s := &shift{cfg: DefaultConfig()}
	s.cfg.EnvPass = []string{"HOME", "MISSING"}
	got := map[string]bool{}
	for _, e := range s.environment(map[string]string{"STAGE": "prod"}) {
		got[e] = true
	}
	if len(got) != 3 || !got["HOME=/home/w"] || !got["STAGE=prod"] || !got["PATH="+s.cfg.search()] {
		t.Errorf("%v", got)
	}
}
