package trust

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/keys"
)

// Violation is an event that may not be believed.
type Violation struct {
	Code   string // stable, see the constants
	Seq    uint64
	Detail string
}

func (v *Violation) Error() string {
	return fmt.Sprintf("event %d not believed (%s): %s", v.Seq, v.Code, v.Detail)
}

// Codes of violations.
const (
	CodeMalformed    = "malformed"
	CodeUnknownActor = "unknown_actor"
	CodeWrongKey     = "wrong_key"
	CodeBadSignature = "bad_signature"
	CodeNoRight      = "no_right"
	CodeWrongBasis   = "wrong_basis"
	CodeWrongPool    = "wrong_pool"
	CodeNoTrust      = "no_trust"
	CodeTrustVersion = "trust_version"
)

// Book holds the trust files of a site in order.
type Book struct {
	origin string
	root   keys.PublicKey

	mu       sync.RWMutex
	versions []version // by ascending seq
}

type version struct {
	seq  uint64
	file *events.TrustPublished
}

// New makes an empty book that pins the root's public key.
func New(origin string, root keys.PublicKey) *Book {
	return &Book{origin: origin, root: root}
}

// Origin is the site's name.
func (b *Book) Origin() string { return b.origin }

// Root is the pinned key.
func (b *Book) Root() keys.PublicKey { return b.root }

// Current is the newest trust file, nil before the first.
func (b *Book) Current() *events.TrustPublished {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if len(b.versions) == 0 {
		return nil
	}
	return b.versions[len(b.versions)-1].file
}

// at is the file in force for an event at seq: the last one stored before it.
func (b *Book) at(seq uint64) *events.TrustPublished {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, v := range slices.Backward(b.versions) {
		if v.seq < seq {
			return v.file
		}
	}
	return nil
}

// Open reads a stored message and judges it. A trust file that passes is in
// force for everything after it. The error is a *Violation, or
// *events.UnknownKind for a believable event of a newer version.
func (b *Book) Open(st events.Stored) (events.Event, error) {
	e, err := events.Open(b.origin, st)
	var unknown *events.UnknownKind
	if err != nil && !errors.As(err, &unknown) {
		return e, &Violation{Code: CodeMalformed, Seq: st.Seq, Detail: err.Error()}
	}
	if v := b.judge(e); v != nil {
		return e, v
	}
	if err != nil {
		return e, err
	}
	if p, ok := e.Payload.(*events.TrustPublished); ok {
		return e, b.add(e, p)
	}
	return e, nil
}

// judge checks who signed, and whether they might.
func (b *Book) judge(e events.Event) error {
	bad := func(code, format string, args ...any) error {
		return &Violation{Code: code, Seq: e.Seq, Detail: fmt.Sprintf(format, args...)}
	}
	actor := events.Actor{Actor: string(events.RoleRoot), Roles: []events.Role{events.RoleRoot}, Sign: string(b.root)}
	if e.Kind != "trust.published" {
		file := b.at(e.Seq)
		if file == nil {
			return bad(CodeNoTrust, "no trust file was in force")
		}
		var ok bool
		if actor, ok = file.Find(e.Subject.Actor); !ok {
			return bad(CodeUnknownActor, "actor %q is not in trust file %d", e.Subject.Actor, file.Version)
		}
	} else if e.Subject.Actor != actor.Actor {
		return bad(CodeNoRight, "only root publishes trust files")
	}
	if actor.Sign == "" || actor.Sign != e.Signature.Key {
		return bad(CodeWrongKey, "signed with %s, the actor's key is %s", e.Signature.Key, actor.Sign)
	}
	if !keys.PublicKey(actor.Sign).Verify(e.Text, e.Signature.Sig) {
		return bad(CodeBadSignature, "the signature of %q does not verify", actor.Actor)
	}
	if !actor.MayPublish(e.Kind) {
		return bad(CodeNoRight, "%q with roles %v may not publish %s", actor.Actor, actor.Roles, e.Kind)
	}
	if len(actor.Pools) > 0 && e.Kind.Family() == "job" && !slices.Contains(actor.Pools, e.Subject.Scope) {
		return bad(CodeWrongPool, "%q belongs to pools %v, not %q", actor.Actor, actor.Pools, e.Subject.Scope)
	}
	if basis := basisOf(e.Payload); basis != "" && !actor.Has(basis) {
		return bad(CodeWrongBasis, "%q is no %s", actor.Actor, basis)
	}
	return nil
}

// basisOf is the role that a decision claims to be made in.
func basisOf(payload any) events.Role {
	basis := ""
	switch p := payload.(type) {
	case *events.JobApproved:
		basis = p.Basis
	case *events.JobDenied:
		basis = p.Basis
	default:
		return ""
	}
	if basis == "policy" {
		return events.RoleGate
	}
	return events.RolePerson
}

// add puts a verified trust file into force. Seeing the same one again is
// harmless.
func (b *Book) add(e events.Event, p *events.TrustPublished) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.versions); n > 0 {
		last := b.versions[n-1]
		if e.Seq <= last.seq {
			return nil
		}
		if p.Version != last.file.Version+1 {
			return &Violation{Code: CodeTrustVersion, Seq: e.Seq, Detail: fmt.Sprintf("version %d follows %d", p.Version, last.file.Version)}
		}
	}
	if p.Origin != b.origin {
		return &Violation{Code: CodeTrustVersion, Seq: e.Seq, Detail: fmt.Sprintf("the file is for site %q", p.Origin)}
	}
	b.versions = append(b.versions, version{seq: e.Seq, file: p})
	return nil
}
