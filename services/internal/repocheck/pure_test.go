package repocheck

import (
	"go/ast"
	"path"
	"slices"
)

// impureImports reach out of the process or keep state; what decides needs
// none of them.
var impureImports = []string{
	"context", "crypto/rand", "io/ioutil", "log", "log/slog", "math/rand", "math/rand/v2", "net", "net/http", "os", "os/exec",
	"os/signal", "runtime", "sync", "sync/atomic", "syscall",
}

// clock are the names of package time that read a clock or wait for one.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer"}

// disk are the names of package path/filepath that look at files.
var disk = []string{"Abs", "EvalSymlinks", "Glob", "Walk", "WalkDir"}

func pureRules() []rule {
	planted := func(dir, pkg string) map[string]string {
		return map[string]string{
			dir + "/a_import.go": "package " + pkg + "\nimport _ \"os\"\n",
			dir + "/a_clock.go":  "package " + pkg + "\nimport \"time\"\nfunc now() time.Time { return time.Now() }\n",
			dir + "/a_go.go":     "package " + pkg + "\nfunc start() { go start() }\n",
		}
	}
	return []rule{
		{
			name:    "the core is pure",
			why:     "the same events must give the same answer to everybody, years later too: no clock, no I/O, no goroutine, no logger",
			find:    func(r *tree) []fault { return impure(in(r.code(), "events", "services/internal/policy")) },
			except:  map[string]string{},
			planted: planted("events/lifecycle", "lifecycle"),
		},
		{
			name: "deciding is pure",
			why:  "whether something is refused is decided from values alone, time comes in as one, so that every refusal can be tested",
			find: func(r *tree) []fault {
				var list []*source
				for _, s := range r.code() {
					if path.Base(s.path) == "decide.go" && layerOf(s.dir) == layerRole {
						list = append(list, s)
					}
				}
				return impure(list)
			},
			except: map[string]string{
				"services/proposer/decide.go:net/http": "a refusal names the status of its answer, which is a number that the package defines",
			},
			planted: map[string]string{"services/worker/decide.go": "package worker\nimport \"time\"\nvar at = time.Now()\n"},
		},
	}
}

func impure(list []*source) (faults []fault) {
	for _, s := range list {
		for _, i := range s.imports() {
			if slices.Contains(impureImports, i) {
				faults = append(faults, fault{s.path + ":" + i, "imports " + i})
			}
		}
		for _, use := range append(s.uses("time", clock...), s.uses("path/filepath", disk...)...) {
			faults = append(faults, fault{s.path, "uses " + use})
		}
		ast.Inspect(s.ast, func(n ast.Node) bool {
			if _, ok := n.(*ast.GoStmt); ok {
				faults = append(faults, fault{s.path, "starts a goroutine"})
			}
			return true
		})
	}
	return faults
}
