package grant

import (
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/banksman/banksman/events"
)

// Grant is what the events of one id say.
type Grant struct {
	ID     string
	Status Status

	Given    *events.GrantGiven
	GivenBy  string // actor token of the person
	GivenSeq uint64
	GivenAt  time.Time
	Uses     []Use

	RevokedBy string
	RevokedAt time.Time
	Reason    string // why it was revoked

	LastSeq    uint64 // last event about the id, refused ones included
	Unreadable bool   // an event of a version that this reader does not know
}

// Use is one job that was approved by it.
type Use struct {
	Seq        uint64
	At         time.Time
	Job        string
	Proposal   string
	Resolution string
}

// Expires is when its time is over.
func (g Grant) Expires() time.Time {
	if g.Given == nil {
		return time.Time{}
	}
	return g.GivenAt.Add(time.Duration(g.Given.ValidS) * time.Second)
}

// Usable says whether it may be used at a moment of stream time.
func (g Grant) Usable(at time.Time) bool {
	return g.Status == Live && !g.Unreadable && at.Before(g.Expires())
}

// Standing says that what was approved by it may still start: nobody has
// revoked it.
func (g Grant) Standing() bool { return !g.Unreadable && (g.Status == Live || g.Status == Spent) }

// UsedFor returns the use that a job has taken.
func (g Grant) UsedFor(job string) (Use, bool) {
	i := slices.IndexFunc(g.Uses, func(u Use) bool { return u.Job == job })
	if i < 0 {
		return Use{}, false
	}
	return g.Uses[i], true
}

// Refusal is why an event changes nothing.
type Refusal struct {
	Code string // stable, see the constants
	From Status
	Kind events.Kind
	Why  string
}

func (r *Refusal) Error() string {
	return fmt.Sprintf("%s in status %q refused (%s): %s", r.Kind, r.From, r.Code, r.Why)
}

// Codes of refusals.
const (
	CodeIllegal  = "illegal_transition"
	CodeOther    = "other_grant"
	CodeOrder    = "wrong_order"
	CodePosition = "wrong_position"
	CodeTooLate  = "too_late"
	CodeTwice    = "used_twice"
	CodePayload  = "payload"
)

func (g Grant) refuse(e events.Event, code, format string, args ...any) error {
	return &Refusal{Code: code, From: g.Status, Kind: e.Kind, Why: fmt.Sprintf(format, args...)}
}

// Skip passes over an event of the grant that may not be believed.
func (g Grant) Skip(seq uint64) Grant {
	g.LastSeq = max(g.LastSeq, seq)
	return g
}

// Apply returns the grant after the event. On a *Refusal only its position has
// moved.
func Apply(g Grant, e events.Event) (Grant, error) {
	if e.Kind.Family() != "grant" || g.ID != "" && e.Subject.ID != g.ID {
		return g, g.refuse(e, CodeOther, "the event is not about grant %s", g.ID)
	}
	if e.Seq <= g.LastSeq {
		return g, g.refuse(e, CodeOrder, "sequence %d was applied already", e.Seq)
	}
	after, when, err := g.after(e)
	if err == nil {
		if to, ok := next(g.Status, e.Kind, when); ok {
			after.Status, after.LastSeq = to, e.Seq
			return after, nil
		}
		err = g.refuse(e, CodeIllegal, "no such move")
	}
	return g.Skip(e.Seq), err
}

// after fills a copy of the grant.
func (g Grant) after(e events.Event) (out Grant, when string, err error) {
	d, known := events.Find(e.Kind, max(1, e.Version))
	if !known || reflect.TypeOf(e.Payload) != reflect.PointerTo(d.Type) {
		return g, "", g.refuse(e, CodePayload, "payload %T does not belong to the kind", e.Payload)
	}
	if e.Expect != g.LastSeq {
		return g, "", g.refuse(e, CodePosition, "it was signed to follow event %d, the grant's last is %d", e.Expect, g.LastSeq)
	}
	switch p := e.Payload.(type) {
	case *events.GrantGiven:
		if p.ValidS < 1 || p.ValidS > events.MaxGrantS || p.Uses < 1 || p.Uses > events.MaxGrantUses || p.Scope.Program == "" || len(p.Scope.Roots) == 0 {
			return g, "", g.refuse(e, CodePayload, "valid_s, uses, program or roots is not acceptable")
		}
		g.ID, g.Given, g.GivenBy, g.GivenSeq, g.GivenAt = e.Subject.ID, p, e.Subject.Actor, e.Seq, e.Time
	case *events.GrantUsed:
		when, err = g.use(e, p)
		g.Uses = append(slices.Clone(g.Uses), Use{Seq: e.Seq, At: e.Time, Job: p.Job, Proposal: p.Proposal, Resolution: p.Resolution})
	case *events.GrantRevoked:
		g.RevokedBy, g.RevokedAt, g.Reason = e.Subject.Actor, e.Time, p.Reason
	}
	return g, when, err
}

// use judges one use.
func (g Grant) use(e events.Event, p *events.GrantUsed) (when string, err error) {
	if g.Status != Live {
		return "", g.refuse(e, CodeIllegal, "it may not be used")
	}
	if p.Given != g.GivenSeq || p.Use != len(g.Uses)+1 || p.Job == "" || p.Proposal == "" || p.Resolution == "" {
		return "", g.refuse(e, CodePayload, "given, use, job or digests are not acceptable")
	}
	if !e.Time.Before(g.Expires()) {
		return "", g.refuse(e, CodeTooLate, "it ran out at %s", g.Expires().UTC().Format(time.RFC3339))
	}
	if _, used := g.UsedFor(p.Job); used {
		return "", g.refuse(e, CodeTwice, "job %s has used it", p.Job)
	}
	if p.Use == g.Given.Uses {
		return caseLast, nil
	}
	return "", nil
}

// Fold applies events of one grant in order and reports every refusal.
func Fold(list []events.Event) (Grant, []error) {
	var g Grant
	var refused []error
	for _, e := range list {
		var err error
		if g, err = Apply(g, e); err != nil {
			refused = append(refused, err)
		}
	}
	return g, refused
}
