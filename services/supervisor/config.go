package supervisor

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/config"
	"github.com/banksman/banksman/services/internal/proc"
)

// Config is the supervisor's own table of the configuration.
type Config struct {
	Actor         string   `toml:"actor" doc:"Actor token in the trust file."`
	GraceS        int      `toml:"grace_s" doc:"Seconds between asking an agent's processes to end and killing them, 1 to 600."`
	DrainS        int      `toml:"drain_s" doc:"Seconds that running rounds get to end by themselves when the supervisor stops, 0 to 86400. Then they are ended; their changes are kept."`
	LeaseS        int      `toml:"lease_s" doc:"Seconds of silence after which a supervisor on another machine may take a project over, 3 to 3600."`
	SalvageLimitS int      `toml:"salvage_limit_s" doc:"Seconds that git may take to keep what a round has left, 1 to 3600."`
	MaxLogBytes   int64    `toml:"max_log_bytes" doc:"Bytes kept of a round's output, its head and at most 1 MiB of its tail, 64 KiB to 1 GiB."`
	KeepLogs      int      `toml:"keep_logs" doc:"How many round logs of a project stay on disk; the oldest go first. 0 keeps all."`
	EnvPass       []string `toml:"env_pass" doc:"Names of the supervisor's own environment variables that every agent gets. Everything else is left out."`
	Hide          bool     `toml:"hide" doc:"Let agents see an empty folder where banksman keeps its keys, sockets and state. Needs user namespaces; a supervisor that cannot have them refuses to start unless this is false."`
	Umask         int      `toml:"umask" doc:"File mode mask of agents, as a number; 18 is octal 022."`
}

// Project is one table [projects.NAME].
type Project struct {
	Enabled         bool              `toml:"enabled" doc:"Whether its agent is run at all."`
	WorkDir         string            `toml:"work_dir" doc:"Absolute folder in which the agent works. It may neither hold nor lie in banksman's own folder, and belongs to one project."`
	Agent           []string          `toml:"agent" doc:"The agent's program and arguments. With prompt_by = \"argv\" every {prompt} in them becomes the prompt."`
	PromptFile      string            `toml:"prompt_file" doc:"File that holds the prompt, absolute or inside work_dir. It is read anew for each round."`
	PromptBy        string            `toml:"prompt_by" doc:"How the agent gets the prompt: stdin, or argv, which carries at most 128 KiB."`
	RoundTimeLimitS int               `toml:"round_time_limit_s" doc:"Seconds after which a round's whole process tree is ended, 1 to 604800."`
	RestartDelayS   int               `toml:"restart_delay_s" doc:"Seconds between the end of a round and the next one, 1 to 86400."`
	MaxRounds       int               `toml:"max_rounds" doc:"Rounds after which the loop halts until a person starts it again; restarts of the supervisor do not reset the count. 0 for no bound."`
	EnvPass         []string          `toml:"env_pass" doc:"Names of further variables of the supervisor that this agent gets, such as ANTHROPIC_API_KEY."`
	Env             map[string]string `toml:"env" doc:"Variables with values that this agent gets."`
}

// How an agent gets its prompt.
const (
	byStdin = "stdin"
	byArgv  = "argv"
	// placeholder stands for the prompt in the agent's arguments.
	placeholder = "{prompt}"
)

// DefaultConfig is the supervisor of a new site.
func DefaultConfig() Config {
	return Config{
		Actor: "supervisor", GraceS: 5, DrainS: 10, LeaseS: 30, SalvageLimitS: 120, MaxLogBytes: 16 << 20, KeepLogs: 200,
		EnvPass: []string{"HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER"},
		Hide:    true,
		Umask:   proc.DefaultUmask,
	}
}

// DefaultProject is a project of which only the folder, the agent and the
// prompt are missing.
func DefaultProject() Project {
	return Project{
		Enabled: true, Agent: []string{}, PromptBy: byStdin, RoundTimeLimitS: 1800, RestartDelayS: 3,
		EnvPass: []string{}, Env: map[string]string{},
	}
}

// Validate checks the section.
func (c *Config) Validate() error {
	if err := events.CheckName("actor", c.Actor); err != nil {
		return err
	}
	if err := checkVariables("env_pass", c.EnvPass); err != nil {
		return err
	}
	return checkRanges([]bound{
		{"grace_s", int64(c.GraceS), 1, 600},
		{"drain_s", int64(c.DrainS), 0, 86400},
		{"lease_s", int64(c.LeaseS), 3, 3600},
		{"salvage_limit_s", int64(c.SalvageLimitS), 1, 3600},
		{"max_log_bytes", c.MaxLogBytes, 64 << 10, 1 << 30},
		{"keep_logs", int64(c.KeepLogs), 0, 1 << 30},
		{"umask", int64(c.Umask), 1, 0o777},
	})
}

// bound is the range of a key.
type bound struct {
	key         string
	value       int64
	least, most int64
}

func checkRanges(list []bound) error {
	for _, r := range list {
		if r.value < r.least || r.value > r.most {
			return fmt.Errorf("%s = %d: must be %d to %d", r.key, r.value, r.least, r.most)
		}
	}
	return nil
}

func checkVariables(key string, names []string) error {
	for _, name := range names {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			return fmt.Errorf("%s: %q is no name of a variable", key, name)
		case strings.HasPrefix(name, "BANKSMAN_"):
			return fmt.Errorf("%s: %s belongs to banksman itself and is never passed to an agent", key, name)
		}
	}
	return nil
}

// Validate checks a project.
func (p *Project) Validate() error {
	if !p.Enabled {
		return nil // it may be half written
	}
	if !filepath.IsAbs(p.WorkDir) {
		return fmt.Errorf("work_dir %q: must be an absolute folder", p.WorkDir)
	}
	if err := p.validatePrompt(); err != nil {
		return err
	}
	if err := checkVariables("env_pass", p.EnvPass); err != nil {
		return err
	}
	for name, value := range p.Env {
		if err := checkVariables("env", []string{name}); err != nil {
			return err
		}
		if strings.ContainsRune(value, 0) {
			return fmt.Errorf("env: the value of %s holds a NUL byte", name)
		}
	}
	return checkRanges([]bound{
		{"round_time_limit_s", int64(p.RoundTimeLimitS), 1, 604800},
		{"restart_delay_s", int64(p.RestartDelayS), 1, 86400},
		{"max_rounds", int64(p.MaxRounds), 0, 1 << 30},
	})
}

func (p *Project) validatePrompt() error {
	if len(p.Agent) == 0 || p.Agent[0] == "" {
		return fmt.Errorf("agent: name the program and its arguments, such as [\"claude\", \"-p\"]")
	}
	if p.PromptFile == "" {
		return fmt.Errorf("prompt_file is required")
	}
	holds := strings.Contains(strings.Join(p.Agent, "\x00"), placeholder)
	switch {
	case p.PromptBy != byStdin && p.PromptBy != byArgv:
		return fmt.Errorf("prompt_by %q: must be stdin or argv", p.PromptBy)
	case p.PromptBy == byArgv && !holds:
		return fmt.Errorf("prompt_by = \"argv\": no argument of agent holds %s", placeholder)
	case p.PromptBy == byStdin && holds:
		return fmt.Errorf("prompt_by = \"stdin\": an argument of agent holds %s, which only argv replaces", placeholder)
	}
	return nil
}

// projects is every table [projects.NAME].
type projects struct {
	config.Set[Project]
}

// Validate checks every project and what they must not share.
func (p *projects) Validate() error {
	if err := p.Set.Validate(); err != nil {
		return err
	}
	owner := map[string]string{}
	for name, t := range p.Tables {
		if err := events.CheckName("project", name); err != nil {
			return err
		}
		if len(name) > events.MaxProjectBytes {
			return fmt.Errorf("project name %q: at most %d characters, so that the ids of its rounds fit", name, events.MaxProjectBytes)
		}
		if !t.Enabled {
			continue
		}
		dir := filepath.Clean(t.WorkDir)
		if other, taken := owner[dir]; taken {
			return fmt.Errorf("%s: work_dir %s belongs to project %s already; agents need folders of their own, such as git worktrees", name, dir, other)
		}
		owner[dir] = name
	}
	return nil
}
