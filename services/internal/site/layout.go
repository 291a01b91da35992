package site

import (
	"path/filepath"

	"github.com/adrg/xdg"
)

// Layout is a banksman folder.
type Layout struct {
	Dir string // absolute
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
func (l Layout) Config() string               { return filepath.Join(l.Dir, "banksman.toml") }
func (l Layout) Policy() string               { return filepath.Join(l.Dir, "policy.toml") }
func (l Layout) Keys() string                 { return filepath.Join(l.Dir, "keys") }
func (l Layout) LoginKey(actor string) string { return filepath.Join(l.Keys(), actor+".login") }
func (l Layout) SignKey(actor string) string  { return filepath.Join(l.Keys(), actor+".sign") }
func (l Layout) CheckpointKey() string        { return filepath.Join(l.Keys(), "checkpoint.key") }
func (l Layout) CA() string                   { return filepath.Join(l.Dir, "tls", "ca.pem") }
func (l Layout) CAKey() string                { return filepath.Join(l.Keys(), "ca.key") }
func (l Layout) BusCert() string              { return filepath.Join(l.Dir, "tls", "bus.pem") }
func (l Layout) BusKey() string               { return filepath.Join(l.Keys(), "bus.tls.key") }
func (l Layout) Tokens() string               { return filepath.Join(l.Dir, "tokens") }
func (l Layout) Token(kind, id string) string { return filepath.Join(l.Tokens(), kind+"."+id) }
func (l Layout) Genesis() string              { return filepath.Join(l.Dir, "genesis.json") }
func (l Layout) NATS() string                 { return filepath.Join(l.Dir, "nats") }
func (l Layout) Run() string                  { return filepath.Join(l.Dir, "run") }
func (l Layout) Lock() string                 { return filepath.Join(l.Run(), "up.lock") }
func (l Layout) StatusDir() string            { return filepath.Join(l.Run(), "status") }
func (l Layout) ProposerSocket() string       { return filepath.Join(l.Run(), "proposer", "proposer.sock") }
func (l Layout) State() string                { return filepath.Join(l.Dir, "state") }
func (l Layout) BusStore() string             { return filepath.Join(l.State(), "bus") }
func (l Layout) BusConf() string              { return filepath.Join(l.Run(), "bus.conf") }
func (l Layout) AuditLog() string             { return filepath.Join(l.State(), "audit", "log") }
func (l Layout) AuditIndex() string           { return filepath.Join(l.State(), "audit", "index.db") }
func (l Layout) AuditHead() string            { return filepath.Join(l.State(), "head", "head.lock") }
func (l Layout) WorkerState(actor string) string {
	return filepath.Join(l.State(), "worker", actor)
}
