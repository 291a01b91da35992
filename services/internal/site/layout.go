package site

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/adrg/xdg"

	"github.com/banksman/banksman/events"
)

// Layout is where the files of a site lie for one process. A person has one
// folder with everything in it. A service has three, given by its service manager
// or by its container, so that it sees the keys of its own role and no others.
type Layout struct {
	Dir     string // absolute; holds all that is not elsewhere
	Secrets string // configuration, keys and certificates side by side; empty when they lie in Dir
	Runtime string // sockets and locks; empty when they lie in Dir
}

// At is the layout of a process. A named folder holds everything. Without a name
// the folders count that systemd gives to a service (systemd.exec(5)): its
// credentials, its state and its runtime folder; then [DefaultDir].
func At(dir string, getenv func(string) string) (Layout, error) {
	l := Layout{Dir: dir}
	if secrets, state := getenv("CREDENTIALS_DIRECTORY"), getenv("STATE_DIRECTORY"); dir == "" && secrets != "" && state != "" {
		first, _, _ := strings.Cut(state, ":") // a service may have several, and names its own first
		l.Dir, l.Secrets = first, secrets
		l.Runtime, _, _ = strings.Cut(getenv("RUNTIME_DIRECTORY"), ":")
	}
	if l.Dir == "" {
		l.Dir = DefaultDir()
	}
	for _, path := range []*string{&l.Dir, &l.Secrets, &l.Runtime} {
		if *path == "" {
			continue
		}
		abs, err := filepath.Abs(*path)
		if err != nil {
			return Layout{}, fmt.Errorf("find the folder %s: %w", *path, err)
		}
		*path = abs
	}
	return l, nil
}

// Private are the folders that no job and no agent has any business in.
func (l Layout) Private() []string {
	list := []string{l.Dir}
	for _, path := range []string{l.Secrets, l.Runtime} {
		if path != "" {
			list = append(list, path)
		}
	}
	return list
}

// secret is a file that lies among the secrets, or below Dir under the name that
// it has there.
func (l Layout) secret(below ...string) string {
	if l.Secrets != "" {
		return filepath.Join(l.Secrets, below[len(below)-1])
	}
	return filepath.Join(append([]string{l.Dir}, below...)...)
}

// EnvDir names the environment variable that chooses the folder.
const EnvDir = "BANKSMAN_DIR"

// EnvToken names the environment variable that holds a proposer token.
const EnvToken = "BANKSMAN_TOKEN"

// EnvSocket names the environment variable that holds the proposer's socket.
const EnvSocket = "BANKSMAN_SOCKET"

// DefaultDir is the folder of a user who names none: "banksman" in the XDG
// data home.
func DefaultDir() string { return filepath.Join(xdg.DataHome, "banksman") }

// Paths inside the folder.
func (l Layout) Config() string               { return l.secret("banksman.toml") }
func (l Layout) Policy() string               { return l.secret("policy.toml") }
func (l Layout) Keys() string                 { return filepath.Join(l.Dir, "keys") }
func (l Layout) LoginKey(actor string) string { return l.secret("keys", actor+".login") }
func (l Layout) SignKey(actor string) string  { return l.secret("keys", actor+".sign") }
func (l Layout) CheckpointKey() string        { return l.secret("keys", "checkpoint.key") }
func (l Layout) CA() string                   { return l.secret("tls", "ca.pem") }
func (l Layout) CAKey() string                { return l.secret("keys", "ca.key") }
func (l Layout) BusCert() string              { return l.secret("tls", "bus.pem") }
func (l Layout) BusKey() string               { return l.secret("keys", "bus.tls.key") }
func (l Layout) Token(kind, id string) string { return filepath.Join(l.Tokens(), kind+"."+id) }
func (l Layout) Genesis() string              { return l.secret("genesis.json") }
func (l Layout) NATS() string                 { return filepath.Join(l.Dir, "nats") }
func (l Layout) Lock() string                 { return filepath.Join(l.Run(), "up.lock") }
func (l Layout) StatusDir() string            { return filepath.Join(l.Run(), "status") }
func (l Layout) ProposerSocket() string       { return filepath.Join(l.Run(), "proposer", "proposer.sock") }
func (l Layout) State() string                { return filepath.Join(l.Dir, "state") }
func (l Layout) BusStore() string             { return filepath.Join(l.State(), "bus") }
func (l Layout) BusEpoch() string             { return filepath.Join(l.State(), "bus.epoch") }
func (l Layout) BusConf() string              { return filepath.Join(l.Run(), "bus.conf") }
func (l Layout) AuditLog() string             { return l.AuditLogOf(l.Epoch()) }
func (l Layout) AuditStamps() string          { return l.AuditLog() + StampsSuffix }
func (l Layout) AuditIndex() string           { return filepath.Join(l.State(), "audit", "index.db") }
func (l Layout) AuditHead() string            { return l.AuditHeadOf(l.Epoch()) }

// StampsSuffix, after the folder of a log, makes that of the time stamps of its heads.
const StampsSuffix = ".stamps"

// AuditLogOf is the folder of an epoch's audit log.
func (l Layout) AuditLogOf(epoch int) string {
	name := "log"
	if epoch > events.FirstEpoch {
		name = events.EpochID(epoch)
	}
	return filepath.Join(l.State(), "audit", name)
}

// AuditHeadOf is the file of the newest head of an epoch that may be signed.
func (l Layout) AuditHeadOf(epoch int) string {
	folder := filepath.Join(l.State(), "head")
	if epoch > events.FirstEpoch {
		folder = filepath.Join(folder, events.EpochID(epoch))
	}
	return filepath.Join(folder, "head.lock")
}

// Epoch is the newest epoch that has a head. A log exists only with its head.
func (l Layout) Epoch() int {
	n := events.FirstEpoch
	for {
		if _, err := os.Stat(l.AuditHeadOf(n + 1)); err != nil {
			return n
		}
		n++
	}
}

// Tokens is the folder in which tokens are made while roles run.
func (l Layout) Tokens() string {
	if l.Secrets != "" {
		return filepath.Join(l.Run(), "tokens")
	}
	return filepath.Join(l.Dir, "tokens")
}

// TokenFolders are all folders whose tokens count.
func (l Layout) TokenFolders() []string {
	if l.Secrets != "" {
		return []string{l.Secrets, l.Tokens()}
	}
	return []string{l.Tokens()}
}

// Run is the folder of sockets and locks, which need not outlive a restart of
// the machine.
func (l Layout) Run() string {
	if l.Runtime != "" {
		return l.Runtime
	}
	return filepath.Join(l.Dir, "run")
}

// WorkerState is the folder of a worker's attempts.
func (l Layout) WorkerState(actor string) string {
	return filepath.Join(l.State(), "worker", actor)
}
