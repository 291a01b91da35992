package worker

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/proc"
	"github.com/banksman/banksman/services/internal/secretref"
)

// Config is the worker's table of the configuration.
type Config struct {
	Actor            string            `toml:"actor" doc:"Actor token in the trust file. Workers that share it are replicas; their sessions tell them apart."`
	Pool             string            `toml:"pool" doc:"Pool whose jobs it resolves and runs."`
	Slots            int               `toml:"slots" doc:"How many jobs run at once, 1 to 256."`
	Path             []string          `toml:"path" doc:"Absolute folders in which programs are looked up, in this order. A job sees them as its PATH."`
	EnvPass          []string          `toml:"env_pass" doc:"Names of the worker's own environment variables that a job gets. Everything else is left out."`
	Secrets          map[string]string `toml:"secrets" doc:"Secrets by name. A job whose variable has the value secret:NAME gets the secret in its place; output never shows one. Each comes from \"file:/PATH\", \"cred:NAME\" (a credential of systemd) or \"cmd:/PROGRAM ARG...\" (what it prints; no shell). Values under 8 bytes cannot be kept out of output."`
	GraceS           int               `toml:"grace_s" doc:"Seconds between asking a job's processes to end and killing them, 1 to 600."`
	LeaseS           int               `toml:"lease_s" doc:"Seconds of silence after which other workers may say that this one's attempts have lapsed, 3 to 3600. Heartbeats go out six times in it. A retry-safe job is gone before it is over without a confirmed heartbeat, even where this process hangs."`
	DrainS           int               `toml:"drain_s" doc:"Seconds that running jobs get to end by themselves when the worker stops, 0 to 86400. Then they are ended: those with attempts left are tried again, by another worker or this one's next start, and the others are cancelled."`
	MaxTimeoutS      int               `toml:"max_timeout_s" doc:"Longest run time of a job in seconds, whatever it asked for, 1 to 604800."`
	MaxOutputBytes   int64             `toml:"max_output_bytes" doc:"Bytes kept of each output stream, half from its head and half from its tail, 64 KiB to 1 GiB. Half of it may be held in memory for each stream of a running job."`
	Hide             bool              `toml:"hide" doc:"Let jobs see an empty folder where banksman keeps its keys, sockets and state. Needs user namespaces; a worker that cannot have them refuses to start unless this is false."`
	RetryFirstS      int               `toml:"retry_first_s" doc:"Seconds between a failed attempt and the second one, 1 to 86400. The pause doubles with each further attempt; up to a quarter is added by chance. A job that may be started once is never tried again."`
	RetryMostS       int               `toml:"retry_most_s" doc:"Longest pause between attempts in seconds, without what chance adds, 1 to 604800."`
	RetryExits       []int             `toml:"retry_exits" doc:"Exit statuses after which a job is tried again; empty for every status but 0."`
	RetrySignal      bool              `toml:"retry_signal" doc:"Try a job again whose program was ended by a signal."`
	RetryTimeout     bool              `toml:"retry_timeout" doc:"Try a job again that ran out of time."`
	RetryStart       bool              `toml:"retry_start" doc:"Try a job again whose program could not be started. What is no longer as approved is never tried again."`
	Scratch          string            `toml:"scratch" doc:"Absolute folder, empty for none, in which each attempt gets a HOME and a TMPDIR of its own, removed with all that is in them when it ends."`
	User             string            `toml:"user" doc:"User that jobs run as, by name or number. Needs a worker that runs as root. Empty for the worker's own user."`
	Nice             int               `toml:"nice" doc:"How far jobs step back for other programs, 0 to 19."`
	LimitCPUS        int64             `toml:"limit_cpu_s" doc:"Seconds of processor time that each process of a job may use; 0 for no limit."`
	LimitMemoryBytes int64             `toml:"limit_memory_bytes" doc:"Address space that each process of a job may have; 0 for no limit."`
	LimitOpenFiles   int64             `toml:"limit_open_files" doc:"Descriptors that each process of a job may have open; 0 for no limit."`
	LimitProcesses   int64             `toml:"limit_processes" doc:"Processes that the job's user may have in all, other programs of that user included; 0 for no limit. Does not bind root."`
	LimitFileBytes   int64             `toml:"limit_file_bytes" doc:"Largest file that a job may write; 0 for no limit."`
	ReachRead        []string          `toml:"reach_read" doc:"Absolute paths beneath which jobs may read and execute files, kept to by the kernel's Landlock (Linux 6.2 and later). {cwd}, {home} and {tmp} are the job's own. A job's program and all that it loads must lie in them. Empty for everything, unless reach_write is empty too: then nothing keeps jobs to a part of the file system."`
	ReachWrite       []string          `toml:"reach_write" doc:"Absolute paths beneath which jobs may change files as well, such as {cwd}; a worker on a machine that cannot keep jobs to them refuses to start. Devices that every program expects, such as /dev/null, are always open; network and sockets with a path are not covered."`
	ExecPrefix       []string          `toml:"exec_prefix" doc:"Program and arguments, such as a container engine's run, that execute the job's command, which is appended with its program's absolute path. {cwd}, {home}, {tmp} and {cidfile} are replaced, and {env} becomes --env NAME for each variable."`
	ExecStop         []string          `toml:"exec_stop" doc:"Program and arguments that end the container whose id exec_prefix wrote to {cidfile}; the id is appended. Runs after each attempt and must succeed where the container is gone, as in /usr/bin/podman rm --force --ignore."`
	Umask            int               `toml:"umask" doc:"File mode mask of jobs, as a number; 18 is octal 022."`
}

// DefaultConfig is the worker of a new site.
func DefaultConfig() Config {
	return Config{
		Actor: "worker",
		Pool:  "default",
		Slots: 4,
		Path:  []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/go/bin"},
		EnvPass: []string{
			"HOME", "LANG", "LC_ALL", "LC_CTYPE", "LOGNAME", "SHELL", "TMPDIR", "TZ", "USER",
		},
		GraceS: 5, LeaseS: 15, DrainS: 30, MaxTimeoutS: 86400,
		MaxOutputBytes: 8 << 20,
		Hide:           true,
		RetryFirstS:    1, RetryMostS: 300, RetryExits: []int{}, RetrySignal: true, RetryTimeout: true,
		ReachRead: []string{}, ReachWrite: []string{},
		ExecPrefix: []string{}, ExecStop: []string{},
		Umask: proc.DefaultUmask,
	}
}

// Validate checks the section.
func (c *Config) Validate() error {
	if err := events.CheckName("actor", c.Actor); err != nil {
		return err
	}
	if err := events.CheckName("pool", c.Pool); err != nil {
		return err
	}
	for _, r := range []struct {
		key         string
		value       int64
		least, most int64
	}{
		{"slots", int64(c.Slots), 1, 256},
		{"grace_s", int64(c.GraceS), 1, 600},
		{"lease_s", int64(c.LeaseS), 3, 3600},
		{"drain_s", int64(c.DrainS), 0, 86400},
		{"max_timeout_s", int64(c.MaxTimeoutS), 1, 604800},
		{"max_output_bytes", c.MaxOutputBytes, 64 << 10, 1 << 30},
		{"retry_first_s", int64(c.RetryFirstS), 1, 86400},
		{"retry_most_s", int64(c.RetryMostS), 1, 604800},
		{"nice", int64(c.Nice), 0, 19},
		{"limit_cpu_s", c.LimitCPUS, 0, 604800},
		{"limit_memory_bytes", c.LimitMemoryBytes, 0, 1 << 50},
		{"limit_open_files", c.LimitOpenFiles, 0, 1 << 20},
		{"limit_processes", c.LimitProcesses, 0, 1 << 22},
		{"limit_file_bytes", c.LimitFileBytes, 0, 1 << 50},
		{"umask", int64(c.Umask), 1, 0o777},
	} {
		if r.value < r.least || r.value > r.most {
			return fmt.Errorf("%s = %d: must be %d to %d", r.key, r.value, r.least, r.most)
		}
	}
	if err := c.validateRetry(); err != nil {
		return err
	}
	if c.Scratch != "" && !filepath.IsAbs(c.Scratch) {
		return fmt.Errorf("scratch: %q is no absolute folder", c.Scratch)
	}
	if err := c.validateContainer(); err != nil {
		return err
	}
	if err := c.validateReach(); err != nil {
		return err
	}
	return c.validateEnvironment()
}

func (c *Config) validateEnvironment() error {
	if len(c.Path) == 0 {
		return fmt.Errorf("path: name at least one folder, such as %q", "/usr/bin")
	}
	for _, dir := range c.Path {
		if !filepath.IsAbs(dir) || strings.ContainsAny(dir, ":\x00") {
			return fmt.Errorf("path: %q is no absolute folder without a colon", dir)
		}
	}
	for _, name := range c.EnvPass {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			return fmt.Errorf("env_pass: %q is no name of a variable", name)
		case name == "PATH":
			return fmt.Errorf("env_pass: a job's PATH is the key path; leave PATH out")
		case strings.HasPrefix(name, "BANKSMAN_"):
			return fmt.Errorf("env_pass: %s belongs to banksman itself and is never passed to a job", name)
		}
	}
	if err := secretref.Check(c.Secrets); err != nil {
		return fmt.Errorf("secrets: %w", err)
	}
	return nil
}

// search is the search path as one variable.
func (c *Config) search() string { return strings.Join(c.Path, string(filepath.ListSeparator)) }
