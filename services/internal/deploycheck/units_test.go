package deploycheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/banksman/banksman/services/internal/lab/need"
)

// unit is a file of systemd: section, key, values in their order.
type unit map[string]map[string][]string

// parseUnit reads the part of systemd.syntax(7) that the units use.
func parseUnit(t *testing.T, text string) unit {
	t.Helper()
	u, section := unit{}, ""
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "[") && strings.HasSuffix(line, "]"):
			section = line
			u[section] = map[string][]string{}
		default:
			key, value, ok := strings.Cut(line, "=")
			if !ok || section == "" {
				t.Fatalf("line %d: %q is no setting of a section", i+1, line)
			}
			u[section][key] = append(u[section][key], value)
		}
	}
	return u
}

// one is the value of a key that a unit has exactly once.
func (u unit) one(t *testing.T, key string) string {
	t.Helper()
	values := u["[Service]"][key]
	if len(values) != 1 {
		t.Fatalf("%s is set %d times, want once", key, len(values))
	}
	return values[0]
}

func unitPath(name string) string {
	return filepath.Join(project, "deploy", "systemd", "banksman-"+name+".service")
}

func readUnit(t *testing.T, name string) unit {
	t.Helper()
	text, err := os.ReadFile(unitPath(name))
	if err != nil {
		t.Fatal(err)
	}
	return parseUnit(t, string(text))
}

// credentials maps what a unit loads to where it takes it from.
func (u unit) credentials(t *testing.T) map[string]string {
	t.Helper()
	from := map[string]string{}
	for _, line := range u["[Service]"]["LoadCredential"] {
		name, path, ok := strings.Cut(line, ":")
		below, inSite := strings.CutPrefix(path, "/etc/banksman/")
		if !ok || !inSite || from[name] != "" {
			t.Fatalf("LoadCredential=%s: want NAME:/etc/banksman/FILE, each once", line)
		}
		from[name] = below
	}
	return from
}

func TestEveryProgramHasAUnit(t *testing.T) {
	list, err := filepath.Glob(unitPath("*"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, path := range list {
		got = append(got, strings.TrimSuffix(strings.TrimPrefix(filepath.Base(path), prefix), ".service"))
	}
	want := append(roles(t), "up")
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("units (-programs and up, +units):\n%s", diff)
	}
}

func TestUnitsGiveEachRoleItsOwnFiles(t *testing.T) {
	for _, role := range roles(t) {
		t.Run(role, func(t *testing.T) {
			var got []string
			for name := range readUnit(t, role).credentials(t) {
				got = append(got, name)
			}
			slices.Sort(got)
			if diff := cmp.Diff(needs(role), got); diff != "" {
				t.Errorf("files (-needed +given):\n%s", diff)
			}
		})
	}
}

func TestUnitsRestartWatchAndStop(t *testing.T) {
	for _, name := range append(roles(t), "up") {
		t.Run(name, func(t *testing.T) {
			u := readUnit(t, name)
			for key, want := range map[string]string{
				"Type": "notify", "Restart": "on-failure", "RestartPreventExitStatus": "2 78", "NoNewPrivileges": "yes",
				"CapabilityBoundingSet": "", "AmbientCapabilities": "", "UMask": "0077", "StateDirectoryMode": "0700",
				"StateDirectory": "banksman/" + name,
			} {
				if got := u.one(t, key); got != want {
					t.Errorf("%s=%s, want %s", key, got, want)
				}
			}
			if s, err := strconv.Atoi(u.one(t, "WatchdogSec")); err != nil || s < 10 {
				t.Errorf("WatchdogSec=%s: want at least 10 seconds, so that a busy machine is no hung process", u.one(t, "WatchdogSec"))
			}
			if start := u.one(t, "ExecStart"); name != "up" && start != "/usr/local/bin/banksman-"+name {
				t.Errorf("ExecStart=%s, want the role's own program", start)
			}
			if users := len(u["[Service]"]["User"]) + len(u["[Service]"]["DynamicUser"]); users != 1 {
				t.Errorf("User and DynamicUser are set %d times, want once", users)
			}
		})
	}
}

// A unit that is stopped gets as long as its configuration lets it drain, and
// the signal goes to the role alone, so that it ends what it runs itself.
func TestUnitsOutlastTheDrain(t *testing.T) {
	text, err := exec.CommandContext(t.Context(), filepath.Join(programs, "banksman"), "config", "reference").Output()
	if err != nil {
		t.Fatal(err)
	}
	for table, keys := range map[string][]string{"worker": {"drain_s", "grace_s"}, "supervisor": {"drain_s", "grace_s", "salvage_limit_s"}} {
		t.Run(table, func(t *testing.T) {
			longest := 0
			for _, key := range keys {
				m := regexp.MustCompile(`(?ms)^\[` + table + `\]$.*?^` + key + ` = (\d+)$`).FindStringSubmatch(string(text))
				if m == nil {
					t.Fatalf("the configuration has no %s.%s", table, key)
				}
				s, _ := strconv.Atoi(m[1])
				longest += s
			}
			for _, name := range []string{table, "up"} {
				u := readUnit(t, name)
				if s, err := strconv.Atoi(u.one(t, "TimeoutStopSec")); err != nil || s < longest+20 {
					t.Errorf("%s: TimeoutStopSec=%s, want %d s of %v and 20 s for what follows", name, u.one(t, "TimeoutStopSec"), longest, keys)
				}
				if u.one(t, "KillMode") != "mixed" {
					t.Errorf("%s: KillMode=%s ends jobs before their role can", name, u.one(t, "KillMode"))
				}
			}
		})
	}
}

// Proposer and supervisor meet in one folder, and so are one user.
func TestAgentsReachTheirDoor(t *testing.T) {
	p, s := readUnit(t, "proposer"), readUnit(t, "supervisor")
	for _, key := range []string{"User", "RuntimeDirectory", "RuntimeDirectoryPreserve"} {
		if p.one(t, key) != s.one(t, key) {
			t.Errorf("%s differs: %s and %s", key, p.one(t, key), s.one(t, key))
		}
	}
	text, err := os.ReadFile(filepath.Join(project, "deploy", "systemd", "banksman.sysusers"))
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"proposer", "supervisor", "worker", "up"} {
		user := readUnit(t, role).one(t, "User")
		if !regexp.MustCompile(`(?m)^u ` + user + ` `).Match(text) {
			t.Errorf("%s runs as %s, whom banksman.sysusers does not make", role, user)
		}
	}
}

// installed copies the units with the programs at the place where they were
// built, for a tool that looks for them.
func installed(t *testing.T) (dir string, paths []string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range append(roles(t), "up") {
		text, err := os.ReadFile(unitPath(name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "banksman-"+name+".service")
		at := strings.ReplaceAll(string(text), "/usr/local/bin/", programs+"/")
		if err := os.WriteFile(path, []byte(at), 0o644); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return dir, paths
}

func TestSystemdAcceptsTheUnits(t *testing.T) {
	analyze := need.Program(t, "systemd-analyze")
	_, paths := installed(t)
	out, err := exec.CommandContext(t.Context(), analyze, append([]string{"verify"}, paths...)...).CombinedOutput()
	if err != nil || strings.Contains(string(out), "banksman") {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	// It would see a fault.
	bad := filepath.Join(t.TempDir(), "banksman-bad.service")
	if err := os.WriteFile(bad, []byte("[Service]\nExecStart=/nowhere/banksman\nNoSuchDirective=1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), analyze, "verify", bad).CombinedOutput(); err == nil && !strings.Contains(string(out), "NoSuchDirective") {
		t.Errorf("systemd-analyze finds no fault in a bad unit: %s", out)
	}
}

// exposure bounds what systemd-analyze security says, 0 for none to 10 for all.
// Roles that run programs of others cannot have every directive.
func exposure(role string) float64 {
	switch role {
	case "worker", "supervisor", "up":
		return 5.0
	}
	return 1.5
}

func TestUnitsAreHardened(t *testing.T) {
	analyze := need.Program(t, "systemd-analyze")
	dir, _ := installed(t)
	score := regexp.MustCompile(`exposure level for \S+: ([\d.]+)`)
	for _, role := range append(roles(t), "up") {
		t.Run(role, func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), analyze, "security", "--offline=true", filepath.Join(dir, "banksman-"+role+".service")).CombinedOutput()
			m := score.FindSubmatch(out)
			if m == nil {
				t.Fatalf("systemd-analyze security: %v\n%s", err, out)
			}
			got, err := strconv.ParseFloat(string(m[1]), 64)
			if err != nil || got > exposure(role) {
				t.Errorf("exposure %s, want at most %.1f", m[1], exposure(role))
			}
		})
	}
}
