package site

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/keys"
)

// Plan is a site that exists in memory only: its name and its keys.
type Plan struct {
	Origin string
	Person string // actor token of the first person, who is also admin
	Name   string // of that person, for the trust file

	root       *keys.Signer
	signers    map[string]*keys.Signer
	logins     map[string]*keys.Login
	checkpoint *keys.CheckpointKey
	trust      events.TrustPublished
}

// services are the actors that run without a person.
var services = []struct {
	actor string
	role  events.Role
	signs bool
}{
	{"bus", events.RoleBus, false},
	{"proposer", events.RoleProposer, true},
	{"gate", events.RoleGate, true},
	{"worker", events.RoleWorker, true},
	{"supervisor", events.RoleSupervisor, true},
	{"monitor", events.RoleMonitor, true},
	{"auditor", events.RoleAuditor, true},
	{"reader", events.RoleReader, false},
}

// Epoch is the first epoch of every site; the audit events of an epoch carry its name
// as their id.
const Epoch = "epoch-1"

// NewPlan chooses a site's name and makes its keys.
func NewPlan(personName string) (*Plan, error) {
	p := &Plan{
		Origin: "site-" + word(10), Person: "p" + word(3)[:4], Name: personName,
		signers: map[string]*keys.Signer{}, logins: map[string]*keys.Login{},
	}
	var err error
	if p.root, err = keys.GenerateSigner(); err != nil {
		return nil, err
	}
	if p.checkpoint, err = keys.GenerateCheckpointKey(CheckpointOrigin(p.Origin)); err != nil {
		return nil, err
	}
	p.trust = events.TrustPublished{Version: 1, Origin: p.Origin, CheckpointKeys: []string{p.checkpoint.Verifier()}}
	for _, s := range services {
		if err := p.add(s.actor, s.actor, s.signs, s.role); err != nil {
			return nil, err
		}
	}
	return p, p.add(p.Person, personName, true, events.RolePerson, events.RoleAdmin)
}

// CheckpointOrigin is the origin line of the checkpoints of a site's first epoch.
func CheckpointOrigin(origin string) string { return CheckpointOriginOf(origin, events.FirstEpoch) }

// CheckpointOriginOf is the origin line of a site's checkpoints during an epoch.
func CheckpointOriginOf(origin string, epoch int) string {
	return "banksman/" + origin + "/" + events.EpochID(epoch)
}

// EpochOf is the inverse of [CheckpointOriginOf].
func EpochOf(checkpointOrigin, origin string) (epoch int, ok bool) {
	id, ok := strings.CutPrefix(checkpointOrigin, "banksman/"+origin+"/")
	if !ok {
		return 0, false
	}
	return events.ParseEpoch(id)
}

// RootKey is the public key that every role pins.
func (p *Plan) RootKey() keys.PublicKey { return p.root.Public() }

// add makes an actor's keys and its line in the trust file.
func (p *Plan) add(actor, name string, signs bool, roles ...events.Role) error {
	login, err := keys.GenerateLogin()
	if err != nil {
		return err
	}
	p.logins[actor] = login
	line := events.Actor{Actor: actor, Name: name, Roles: roles, Login: login.Public()}
	if signs {
		if p.signers[actor], err = keys.GenerateSigner(); err != nil {
			return err
		}
		line.Sign = string(p.signers[actor].Public())
	}
	p.trust.Actors = append(p.trust.Actors, line)
	return nil
}

// word is n random bytes as lower-case letters and digits.
func word(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails since Go 1.24
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b))
}

// genesis signs the first two events of the stream.
func (p *Plan) genesis(policy []byte, now time.Time) ([]events.Message, error) {
	trust, err := p.sign("root", p.root, "trust.published", events.TrustID, p.trust, now)
	if err != nil {
		return nil, err
	}
	text := events.PolicyPublished{Digest: events.Digest(policy), Text: string(policy)}
	rules, err := p.sign(p.Person, p.signers[p.Person], "policy.published", events.PolicyID, text, now)
	return []events.Message{trust, rules}, err
}

func (p *Plan) sign(actor string, key *keys.Signer, k events.Kind, id string, payload any, now time.Time) (events.Message, error) {
	session := make([]byte, 10)
	rand.Read(session)
	eventID := events.ID{Actor: actor, Session: hex.EncodeToString(session), N: 1}
	m, err := events.New(p.Origin, events.For(k, events.SiteScope, id, actor), eventID, now, 0, payload)
	if err != nil {
		return m, fmt.Errorf("make the site's first events: %w", err)
	}
	m.Sign(p.Origin, string(key.Public()), key.Sign)
	return m, nil
}
