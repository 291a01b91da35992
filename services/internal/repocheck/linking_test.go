package repocheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// powers are packages that give a binary a power, and the reason why it is one.
var powers = map[string]string{
	module + "/services/internal/proc":      "it starts programs for others",
	module + "/services/internal/logserver": "it hosts the bus and holds everybody's permissions",
	"github.com/nats-io/nats-server/":       "it hosts the bus",
	"os/exec":                               "it starts programs",
}

// lacks says which powers the packages of a role must not contain: who reaches
// a role that lacks a power cannot make it use one.
var lacks = []struct {
	packages []string
	without  []string
	except   map[string]string // an importer of a power, and why that is right
}{
	{
		packages: []string{"./services/proposer", "./services/approver", "./services/auditor", "./services/monitor", "./services/person", "./cmd/banksman-proposer", "./cmd/banksman-approver", "./cmd/banksman-auditor", "./cmd/banksman-monitor"},
		without:  []string{module + "/services/internal/proc", module + "/services/internal/logserver", "github.com/nats-io/nats-server/", "os/exec"},
	},
	{
		packages: []string{"./services/worker", "./cmd/banksman-worker"},
		without:  []string{module + "/services/internal/logserver", "github.com/nats-io/nats-server/", "os/exec"},
		except: map[string]string{
			"github.com/shirou/gopsutil/v4/internal/common": "it starts programs on systems that have no other way to say how they stand; what vitals asks reads files and calls the kernel",
		},
	},
	{
		packages: []string{"./services/host"},
		without:  []string{module + "/services/internal/proc", module + "/services/internal/logserver", "github.com/nats-io/nats-server/", "os/exec"},
	},
}

// Capability by linking: a binary cannot be talked into what it does not
// contain.
func TestRolesLinkNoPowerTheyDoNotNeed(t *testing.T) {
	for _, l := range lacks {
		for _, p := range l.packages {
			if _, err := os.Stat(filepath.Join(root(t), p)); os.IsNotExist(err) && strings.HasPrefix(p, "./cmd/") {
				continue // this program is not built by itself
			}
			t.Run(p, func(t *testing.T) {
				linked := dependencies(t, p)
				for _, power := range l.without {
					for _, d := range linked {
						if d.path != power && !(strings.HasSuffix(power, "/") && strings.HasPrefix(d.path, power)) {
							continue
						}
						from := importers(linked, d.path)
						from = slices.DeleteFunc(from, func(i string) bool { return l.except[i] != "" })
						if len(from) > 0 {
							t.Errorf("%s links %s (%s), imported by %v", p, d.path, powers[power], from)
						}
					}
				}
			})
		}
	}
}

// The check above would see a power if it were there.
func TestLinkingSeesPowers(t *testing.T) {
	for p, power := range map[string]string{
		"./services/worker":     module + "/services/internal/proc",
		"./services/host/embed": module + "/services/internal/logserver",
		"./cmd/banksman":        "os/exec",
	} {
		if linked := dependencies(t, p); !slices.ContainsFunc(linked, func(d dependency) bool { return d.path == power }) {
			t.Errorf("%s does not link %s", p, power)
		}
	}
}

// dependency is one package of a binary and what it imports.
type dependency struct {
	path    string
	imports []string
}

func dependencies(t *testing.T, of string) []dependency {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`, of)
	cmd.Dir = root(t)
	cmd.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0", "GOFLAGS=")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("list what %s links: %v", of, err)
	}
	var list []dependency
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		list = append(list, dependency{words[0], words[1:]})
	}
	return list
}

func importers(list []dependency, of string) []string {
	var from []string
	for _, d := range list {
		if slices.Contains(d.imports, of) {
			from = append(from, d.path)
		}
	}
	return from
}
