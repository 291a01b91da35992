package repocheck

import (
	"fmt"
	"slices"
	"strings"
)

// layer is where a package stands among the arrows.
type layer string

const (
	layerEvents   layer = "events"
	layerInternal layer = "services/internal"
	layerHost     layer = "services/host"
	layerEmbed    layer = "services/host/embed"
	layerRole     layer = "a role"
	layerFront    layer = "services/front"
	layerCmd      layer = "cmd"
	layerTop      layer = "services"
)

// mayImport is every arrow between layers.
var mayImport = map[layer][]layer{
	layerEvents:   {layerEvents},
	layerInternal: {layerEvents, layerInternal},
	layerHost:     {layerEvents, layerInternal},
	layerEmbed:    {layerEvents, layerInternal, layerHost},
	layerRole:     {layerEvents, layerInternal, layerHost},
	layerFront:    {layerEvents, layerInternal, layerHost, layerEmbed, layerRole},
	layerCmd:      {layerFront, layerHost, layerEmbed, layerRole},
	layerTop:      {},
}

// harness is the package that helps tests; no binary contains it.
const harness = "services/internal/lab"

// layerOf says where a folder stands, "" for none.
func layerOf(dir string) layer {
	below := func(folder string) bool { return dir == folder || strings.HasPrefix(dir, folder+"/") }
	switch {
	case below("events"):
		return layerEvents
	case below("services/internal"):
		return layerInternal
	case below("services/host/embed"):
		return layerEmbed
	case below("services/host"):
		return layerHost
	case below("services/front"):
		return layerFront
	case dir == "services":
		return layerTop
	case below("services"):
		return layerRole
	case below("cmd"):
		return layerCmd
	}
	return ""
}

// role is the folder of a role's package.
func role(dir string) string { return strings.Join(strings.Split(dir, "/")[:2], "/") }

// owner is who may import a module of others.
type owner struct {
	module string
	code   []string // packages whose code imports it
	tests  []string // packages whose tests do; "..." is every package
	why    string
}

// owners give every module of others a home. A longer path goes before a
// shorter one that it begins with.
var owners = []owner{
	{"github.com/nats-io/nats.go", []string{"services/internal/bus", "services/internal/logserver"}, []string{"services/internal/keys", "services/auditor"},
		"bus is the one client; logserver only names the types of its in-process connection and of a stream; the tests of keys attack the log-in, those of the auditor the stream"},
	{"github.com/nats-io/nats-server/v2", []string{"services/internal/logserver"}, []string{"services/internal/keys"},
		"the server brings os/exec and fifteen megabytes; only who hosts a bus may carry it"},
	{"github.com/klauspost/compress/s2", []string{"services/internal/logserver"}, nil, "the server reads its archives of streams packed like this; it links the packer anyway"},
	{"github.com/nats-io/nkeys", []string{"services/internal/keys"}, nil, "private keys are handled in one place"},
	{"filippo.io/age", []string{"services/internal/keys"}, nil, "private keys are handled in one place"},
	{"golang.org/x/term", []string{"services/internal/keys"}, nil, "passphrases are asked for in one place"},
	{"golang.org/x/mod/sumdb/tlog", []string{"services/internal/tlog", "services/internal/evidence", "services/internal/witness"}, []string{"services/auditor/interop"}, "the tree of the log is computed in one place; evidence and witness check its proofs"},
	{"golang.org/x/mod/sumdb/note", []string{"services/internal/tlog", "services/internal/keys", "services/auditor", "services/internal/evidence", "services/internal/witness"}, []string{"services/auditor/interop", "services/front"},
		"keys makes checkpoint signers, tlog signs with them, the auditor carries them from the one to the other"},
	{"github.com/BurntSushi/toml", []string{"services/internal/config", "services/internal/policy"}, nil,
		"the configuration and the policy are the two files that people write"},
	{"mvdan.cc/sh/v3/syntax", []string{"services/internal/shell"}, nil, "what a shell text starts is read in one place"},
	{"go.etcd.io/bbolt", []string{"services/internal/index"}, nil, "the database's format stays private to the index"},
	{"github.com/spf13/cobra", []string{"services/front"}, nil, "the command line knows the roles, roles know no command line"},
	{"github.com/modelcontextprotocol/go-sdk", []string{"services/internal/mcp"}, []string{"services/front"}, "the protocol of agents' tools is spoken in one place; the tests of front play the agent"},
	{"github.com/oklog/run", []string{"services/host"}, nil, "one group runs the roles of a process"},
	{"github.com/coreos/go-systemd/v22/daemon", []string{"services/host"}, nil, "host alone speaks for the process"},
	{"github.com/gofrs/flock", []string{"services/host"}, nil, "host owns the lock on a role of a folder"},
	{"github.com/adrg/xdg", []string{"services/internal/site"}, nil, "site owns where things lie"},
	{"github.com/google/uuid", []string{"services/proposer"}, nil, "the proposer alone names jobs"},
	{"github.com/google/renameio/v2", []string{"services/front", "services/host/embed", "services/internal/imported", "services/internal/index", "services/internal/keys", "services/internal/logserver", "services/internal/tsa", "services/monitor"}, nil,
		"each owner of a file replaces it whole"},
	{"golang.org/x/sys", []string{"services/internal/index", "services/internal/keys", "services/internal/proc", "services/internal/tlog", "services/front"},
		[]string{"services/worker", "services/supervisor", "services/internal/bench"}, "whoever owns a promise that only the kernel keeps; front turns a signal's name into an exit code"},
	{"mvdan.cc/sh/v3", []string{"services/internal/shell"}, nil, "one reader of shell text, so that a trap of its parser is known in one place"},
	{"github.com/charmbracelet/x/ansi", []string{"services/front"}, nil, "front shows output on terminals"},
	{"github.com/shirou/gopsutil/v4", []string{"services/internal/vitals"}, nil, "vitals alone asks how the machine stands"},
	{"github.com/transparency-dev/tessera", nil, []string{"services/auditor/interop"}, "another author's reader of logs stays in a module of its own, out of the programs' modules"},
	{"github.com/transparency-dev/witness", nil, []string{"services/auditor/interop"}, "the reference witness and its client, in the same module of their own"},
	{"github.com/transparency-dev/formats", nil, []string{"services/auditor/interop"}, "keys and cosignatures of the reference witness, as its author reads them"},
	{"github.com/transparency-dev/merkle", nil, []string{"services/auditor/interop"}, "published vectors of proofs, read from the same module"},
	{"github.com/compose-spec/compose-go/v2", nil, []string{"deploy/composetest"}, "the specification's reader stays in a module of its own, out of the programs' modules"},
	{"gopkg.in/yaml.v3", nil, []string{"..."}, "tests read the compose file; no binary does"},
	{"github.com/creack/pty", nil, []string{"..."}, "tests play the terminal"},
	{"github.com/google/go-cmp", nil, []string{"..."}, "tests show differences"},
	{"pgregory.net/rapid", nil, []string{"..."}, "tests look for counter-examples"},
	{"go.uber.org/goleak", nil, []string{"..."}, "tests find goroutines left behind"},
	{"github.com/rogpeppe/go-internal", nil, []string{"..."}, "tests run scripts"},
	{"github.com/santhosh-tekuri/jsonschema/v6", nil, []string{"..."},
		"an independent validator of what the schemas promise; no binary needs one"},
}

func arrowRules() []rule {
	return []rule{
		{
			name: "arrows",
			why:  "arrows point one way, cmd -> services -> services/internal -> events, so that a lower package can be read and tested without a higher one",
			find: arrows,
			except: map[string]string{
				"services/internal/lab/forge/": "a program of the tests that plays a bus that was taken over, and connects as a role does",
			},
			planted: map[string]string{
				"events/x.go":               "package events\nimport _ \"" + module + "/services/host\"\n",
				"services/internal/q/x.go":  "package q\nimport _ \"" + module + "/services/worker\"\n",
				"services/host/x.go":        "package host\nimport _ \"" + module + "/services/approver\"\n",
				"services/worker/x.go":      "package worker\nimport _ \"" + module + "/services/host/embed\"\n",
				"services/worker/x_test.go": "package worker\nimport _ \"" + module + "/services/front\"\n",
				"cmd/banksman/x.go":         "package main\nimport _ \"" + module + "/events\"\n",
				"services/x.go":             "package services\nimport _ \"" + module + "/events\"\n",
				"elsewhere/x.go":            "package elsewhere\nimport _ \"" + module + "/events\"\n",
			},
		},
		{
			name:    "roles import no roles",
			why:     "roles talk through events alone, so that each can run, stop and move by itself; only front knows them all",
			find:    rolesApart,
			planted: map[string]string{"services/worker/x.go": "package worker\nimport _ \"" + module + "/services/approver\"\n"},
		},
		{
			name:    "the test harness stays out of binaries",
			why:     "package lab starts processes and fails tests; code that ships has no use for it",
			find:    labInTests,
			planted: map[string]string{"services/worker/x.go": "package worker\nimport _ \"" + module + "/" + harness + "\"\n"},
		},
		{
			name:    "events needs the standard library only",
			why:     "whoever reads the log with a program of his own can import the vocabulary without anything else",
			find:    standardOnly,
			planted: map[string]string{"events/x.go": "package events\nimport _ \"example.org/x\"\n"},
		},
		{
			name: "modules have owners",
			why:  "what is imported in one place can be replaced there, and whoever does not need its power does not link it",
			find: owned,
			planted: map[string]string{
				"services/worker/x.go":      "package worker\nimport _ \"github.com/nats-io/nats.go/jetstream\"\n",
				"services/worker/x_test.go": "package worker\nimport _ \"github.com/nats-io/nats-server/v2/server\"\n",
				"services/front/x.go":       "package front\nimport _ \"pgregory.net/rapid\"\n",
				"services/person/x.go":      "package person\nimport _ \"example.org/unheard-of\"\n",
			},
		},
	}
}

// ours is the folder of an import that lies in the project.
func ours(path string) (string, bool) { return strings.CutPrefix(path, module+"/") }

func arrows(r *tree) (faults []fault) {
	for _, s := range r.files {
		from := layerOf(s.dir)
		for _, i := range s.imports() {
			dir, ok := ours(i)
			if !ok || s.test && (dir == s.dir || dir == harness) {
				continue
			}
			to := layerOf(dir)
			if from == layerRole && to == layerRole {
				continue // another rule speaks of it
			}
			if (from == layerRole || from == layerHost) && to == layerEmbed && s.test {
				continue // its tests run on a real bus
			}
			if !slices.Contains(mayImport[from], to) {
				faults = append(faults, fault{s.path, fmt.Sprintf("%s may not import %s; %s may import %v", s.dir, dir, from, mayImport[from])})
			}
		}
	}
	return faults
}

func rolesApart(r *tree) (faults []fault) {
	for _, s := range r.files {
		for _, i := range s.imports() {
			dir, _ := ours(i)
			if layerOf(s.dir) == layerRole && layerOf(dir) == layerRole && role(s.dir) != role(dir) {
				faults = append(faults, fault{s.path, "the role " + s.dir + " imports the role " + dir})
			}
		}
	}
	return faults
}

func labInTests(r *tree) (faults []fault) {
	for _, s := range r.code() {
		if slices.Contains(s.imports(), module+"/"+harness) {
			faults = append(faults, fault{s.path, "imports " + harness + " outside a test"})
		}
	}
	return faults
}

func standardOnly(r *tree) (faults []fault) {
	for _, s := range in(r.code(), "events") {
		for _, i := range s.imports() {
			if _, project := ours(i); !project && foreign(i) {
				faults = append(faults, fault{s.path, "imports " + i})
			}
		}
	}
	return faults
}

// foreign says that an import belongs neither to the standard library nor to
// the project: its first element is a host name.
func foreign(path string) bool {
	host, _, _ := strings.Cut(path, "/")
	_, project := ours(path)
	return strings.Contains(host, ".") && !project
}

func owned(r *tree) (faults []fault) {
	for _, s := range r.files {
		for _, i := range s.imports() {
			if !foreign(i) {
				continue
			}
			n := slices.IndexFunc(owners, func(o owner) bool { return i == o.module || strings.HasPrefix(i, o.module+"/") })
			if n < 0 {
				faults = append(faults, fault{s.path, "imports " + i + ", which has no owner; give it a line in owners, with the reason"})
				continue
			}
			o := owners[n]
			if slices.Contains(o.code, s.dir) || s.test && (slices.Contains(o.tests, s.dir) || slices.Contains(o.tests, "...")) {
				continue
			}
			faults = append(faults, fault{s.path, fmt.Sprintf("imports %s, which belongs to %v: %s", i, o.code, o.why)})
		}
	}
	return faults
}
