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
	CodeRetiredKey   = "retired_key" // it was the actor's key until a trust file took it away
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

	memo memo
}

type version struct {
	seq        uint64
	number     int
	file       *events.TrustPublished // nil when this reader cannot interpret it
	unreadable *events.UnknownKind
}

// New makes an empty book that pins the root's public key.
func New(origin string, root keys.PublicKey) *Book {
	return &Book{origin: origin, root: root}
}

// Origin is the site's name.
func (b *Book) Origin() string { return b.origin }

// Root is the pinned key.
func (b *Book) Root() keys.PublicKey { return b.root }

// Current is the newest trust file, nil before the first and while the newest
// is one that this version cannot interpret.
func (b *Book) Current() *events.TrustPublished {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if len(b.versions) == 0 {
		return nil
	}
	return b.versions[len(b.versions)-1].file
}

// at is the file in force for an event at seq: the last one stored before it.
func (b *Book) at(seq uint64) (version, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.before(seq)
}

// before is at for who holds mu.
func (b *Book) before(seq uint64) (version, bool) {
	for _, v := range slices.Backward(b.versions) {
		if v.seq < seq {
			return v, true
		}
	}
	return version{}, false
}

// Open reads a stored message and judges it. A trust file that passes is in
// force for everything after it. The error is a *Violation, or
// *events.UnknownKind for a believable event of a newer version and for every
// event that only a trust file of a newer version could judge; such an event
// has no Payload.
func (b *Book) Open(st events.Stored) (events.Event, error) {
	e, err := events.Open(b.origin, st)
	return b.Judge(Read{st.Seq, e, err})
}

// Read is a message that was read and is not judged yet.
type Read struct {
	seq   uint64
	event events.Event
	err   error
}

// Read reads a message and checks its signature by the key that it names. It needs no
// trust file, so that many goroutines may read ahead while one judges.
func (b *Book) Read(st events.Stored) Read {
	e, err := events.Open(b.origin, st)
	if key := e.Signature.Key; len(e.Text) > 0 {
		b.memo.verified(key, e.Text, e.Signature.Sig, func() bool { return keys.PublicKey(key).Verify(e.Text, e.Signature.Sig) })
	}
	return Read{st.Seq, e, err}
}

// Judge is Open for a message that was read. Messages are judged in order.
func (b *Book) Judge(r Read) (events.Event, error) {
	e, err := r.event, r.err
	var unknown *events.UnknownKind
	if err != nil && !errors.As(err, &unknown) {
		return e, &Violation{Code: CodeMalformed, Seq: r.seq, Detail: err.Error()}
	}
	if e.Kind == trustKind {
		return e, b.openTrust(e, unknown)
	}
	file, ok := b.at(e.Seq)
	if ok && file.file == nil {
		e.Payload = nil
		return e, file.unreadable
	}
	if v := b.judge(e, file.file); v != nil {
		return e, v
	}
	return e, err
}

const trustKind = events.Kind("trust.published")

// openTrust judges a trust file by the pinned key and puts it into force.
func (b *Book) openTrust(e events.Event, unknown *events.UnknownKind) error {
	root := events.Actor{Actor: string(events.RoleRoot), Roles: []events.Role{events.RoleRoot}, Sign: string(b.root)}
	if e.Subject.Actor != root.Actor {
		return &Violation{Code: CodeNoRight, Seq: e.Seq, Detail: fmt.Sprintf("%q published a trust file; only root may", e.Subject.Actor)}
	}
	if e.Subject.Scope != events.SiteScope || e.Subject.ID != events.TrustID {
		return &Violation{Code: CodeMalformed, Seq: e.Seq, Detail: fmt.Sprintf("a trust file on subject %s, where nobody looks for it", e.Subject)}
	}
	if v := b.signed(e, root); v != nil {
		return v
	}
	p, _ := e.Payload.(*events.TrustPublished)
	if err := b.add(e, p, unknown); err != nil {
		return err
	}
	if unknown != nil {
		return unknown
	}
	return nil
}

// violation makes one of an event.
func violation(e events.Event, code, format string, args ...any) error {
	return &Violation{Code: code, Seq: e.Seq, Detail: fmt.Sprintf(format, args...)}
}

// judge checks who signed, and whether they might, by the file in force.
func (b *Book) judge(e events.Event, file *events.TrustPublished) error {
	if file == nil {
		return violation(e, CodeNoTrust, "no trust file was in force")
	}
	actor, ok := file.Find(e.Subject.Actor)
	if !ok {
		return violation(e, CodeUnknownActor, "actor %q is not in trust file %d", e.Subject.Actor, file.Version)
	}
	if v := b.signed(e, actor); v != nil {
		return v
	}
	if len(actor.Pools) > 0 && ofPool(e.Kind) && !slices.Contains(actor.Pools, e.Subject.Scope) {
		return violation(e, CodeWrongPool, "%q belongs to pools %v, not %q", actor.Actor, actor.Pools, e.Subject.Scope)
	}
	if basis := basisOf(e.Payload); basis != "" && !actor.Has(basis) {
		return violation(e, CodeWrongBasis, "%q is no %s", actor.Actor, basis)
	}
	return nil
}

// ofPool says whether the scope of a kind's subject is a pool.
func ofPool(k events.Kind) bool {
	return k.Family() == "job" || k.Family() == "worker" || k.Family() == "ask"
}

// signed checks the signature, and that its owner may publish the kind.
func (b *Book) signed(e events.Event, actor events.Actor) error {
	bad := func(code, format string, args ...any) error { return violation(e, code, format, args...) }
	key := e.Signature.Key
	if !actor.Believes(key) {
		if number, was := b.retired(actor.Actor, key, e.Seq); was {
			return bad(CodeRetiredKey, "signed with %s, which was a key of %q until trust file %d took it away", key, actor.Actor, number)
		}
		return bad(CodeWrongKey, "signed with %s, the actor's key is %s", key, actor.Sign)
	}
	if !b.memo.verified(key, e.Text, e.Signature.Sig, func() bool { return keys.PublicKey(key).Verify(e.Text, e.Signature.Sig) }) {
		return bad(CodeBadSignature, "the signature of %q does not verify", actor.Actor)
	}
	if !actor.MayPublish(e.Kind) {
		return bad(CodeNoRight, "%q with roles %v may not publish %s", actor.Actor, actor.Roles, e.Kind)
	}
	return nil
}

// retired says whether a trust file before seq gave the key to the actor, and which
// one took it away.
func (b *Book) retired(actor, key string, seq uint64) (number int, was bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for _, v := range slices.Backward(b.versions) {
		if v.seq >= seq || v.file == nil {
			continue
		}
		if line, ok := v.file.Find(actor); ok && line.Believes(key) {
			return number, true
		}
		number = v.number
	}
	return 0, false
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
	if basis == "policy" || basis == "grant" {
		return events.RoleGate
	}
	return events.RolePerson
}

// add puts a verified trust file into force; p is nil for one that this version
// cannot interpret. Seeing the same one again is harmless, and one that was
// refused is refused again.
func (b *Book) add(e events.Event, p *events.TrustPublished, unknown *events.UnknownKind) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	last, some := b.before(e.Seq)
	number := last.number + 1
	if p != nil {
		if p.Origin != b.origin {
			return violation(e, CodeTrustVersion, "the file is for site %q", p.Origin)
		}
		if p.Version < 1 || some && p.Version != number {
			return violation(e, CodeTrustVersion, "version %d follows %d", p.Version, last.number)
		}
		number = p.Version
	}
	if n := len(b.versions); n > 0 && e.Seq <= b.versions[n-1].seq {
		if !slices.ContainsFunc(b.versions, func(v version) bool { return v.seq == e.Seq }) {
			return violation(e, CodeTrustVersion, "version %d was shown after %d, which it precedes", number, b.versions[n-1].number)
		}
		return nil
	}
	b.versions = append(b.versions, version{seq: e.Seq, number: number, file: p, unreadable: unknown})
	return nil
}
