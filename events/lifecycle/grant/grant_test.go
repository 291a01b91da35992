package grant_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/grant"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// log makes events of one grant, one after the other.
type log struct {
	now  time.Time
	seq  uint64
	last uint64
	list []events.Event
}

func (l *log) add(kind events.Kind, actor string, payload any) events.Event {
	l.seq += 3 // others write in between
	e := events.Event{Seq: l.seq, Time: l.now, Subject: events.For(kind, events.SiteScope, "g1", actor), Kind: kind, Version: 1, Expect: l.last, Payload: payload}
	l.last = l.seq
	l.list = append(l.list, e)
	return e
}

func given(uses int) *log {
	l := &log{now: noon}
	l.add("grant.given", "p7k2", &events.GrantGiven{Scope: events.GrantScope{Program: "git", Roots: []string{"/src"}}, ValidS: 60, Uses: uses, Reason: "a release"})
	return l
}

func (l *log) use(n int, job string) events.Event {
	return l.add("grant.used", "gate", &events.GrantUsed{Given: 3, Use: n, Job: job, Proposal: "d1", Resolution: "d2"})
}

func code(err error) string {
	var r *grant.Refusal
	if !errors.As(err, &r) {
		return ""
	}
	return r.Code
}

func TestUsedUpToItsCount(t *testing.T) {
	l := given(2)
	l.use(1, "j1")
	l.use(2, "j2")
	g, refused := grant.Fold(l.list)
	if len(refused) > 0 || g.Status != grant.Spent || len(g.Uses) != 2 || g.Usable(noon) || !g.Standing() || g.GivenBy != "p7k2" {
		t.Fatalf("%+v, refused %v", g, refused)
	}
	if u, ok := g.UsedFor("j2"); !ok || u.Seq != l.seq {
		t.Errorf("use of j2: %+v %t", u, ok)
	}
	l.use(3, "j3")
	if _, refused = grant.Fold(l.list); len(refused) != 1 || code(refused[0]) != grant.CodeIllegal {
		t.Errorf("a use beyond its count: %v", refused)
	}
}

func TestRefusedUses(t *testing.T) {
	for name, c := range map[string]struct {
		want string
		deed func(*log)
	}{
		"after its time": {grant.CodeTooLate, func(l *log) { l.now = noon.Add(time.Minute); l.use(1, "j1") }},
		"the job again":  {grant.CodeTwice, func(l *log) { l.use(1, "j1"); l.use(2, "j1") }},
		"a count ahead":  {grant.CodePayload, func(l *log) { l.use(2, "j1") }},
		"no digests":     {grant.CodePayload, func(l *log) { l.add("grant.used", "gate", &events.GrantUsed{Given: 3, Use: 1, Job: "j1"}) }},
		"after a revoke": {grant.CodeIllegal, func(l *log) {
			l.add("grant.revoked", "p9x1", &events.GrantRevoked{Reason: "enough"})
			l.use(1, "j1")
		}},
		"held back":           {grant.CodePosition, func(l *log) { l.use(1, "j1"); l.last = 3; l.use(2, "j2") }},
		"given twice":         {grant.CodeIllegal, func(l *log) { l.add("grant.given", "p7k2", l.list[0].Payload) }},
		"another's payload":   {grant.CodePayload, func(l *log) { l.add("grant.used", "gate", &events.GrantRevoked{}) }},
		"a kind of no family": {grant.CodeOther, func(l *log) { l.add("job.expired", "gate", &events.JobExpired{}) }},
	} {
		t.Run(name, func(t *testing.T) {
			l := given(5)
			c.deed(l)
			if _, refused := grant.Fold(l.list); len(refused) != 1 || code(refused[0]) != c.want {
				t.Errorf("%v, want %s", refused, c.want)
			}
		})
	}
}

func TestUnboundedGrantsAreNone(t *testing.T) {
	for name, p := range map[string]events.GrantGiven{
		"for ever":   {Scope: events.GrantScope{Program: "git", Roots: []string{"/src"}}, ValidS: events.MaxGrantS + 1, Uses: 1},
		"no time":    {Scope: events.GrantScope{Program: "git", Roots: []string{"/src"}}, Uses: 1},
		"no count":   {Scope: events.GrantScope{Program: "git", Roots: []string{"/src"}}, ValidS: 1},
		"no program": {Scope: events.GrantScope{Roots: []string{"/src"}}, ValidS: 1, Uses: 1},
		"anywhere":   {Scope: events.GrantScope{Program: "git"}, ValidS: 1, Uses: 1},
	} {
		l := &log{now: noon}
		l.add("grant.given", "p7k2", &p)
		if g, refused := grant.Fold(l.list); len(refused) != 1 || g.Status != grant.None {
			t.Errorf("%s: %+v %v", name, g, refused)
		}
	}
}

// Whatever is stored in whatever order, a grant never has more uses than it was
// given, none after its end or its revocation, and Apply never panics.
func TestNeverMoreThanGiven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := given(rapid.IntRange(1, 4).Draw(t, "uses"))
		for range rapid.IntRange(0, 12).Draw(t, "events") {
			l.now = l.now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "wait")) * time.Second)
			if rapid.IntRange(0, 9).Draw(t, "what") == 0 {
				l.add("grant.revoked", "p7k2", &events.GrantRevoked{})
				continue
			}
			if rapid.Bool().Draw(t, "slow") {
				l.last = rapid.Uint64Range(0, l.seq).Draw(t, "expect")
			}
			l.use(rapid.IntRange(0, 5).Draw(t, "n"), rapid.SampledFrom([]string{"", "j1", "j2", "j3", "j4", "j5"}).Draw(t, "job"))
		}
		g, _ := grant.Fold(l.list)
		if len(g.Uses) > g.Given.Uses {
			t.Fatalf("%d uses of %d", len(g.Uses), g.Given.Uses)
		}
		for i, u := range g.Uses {
			if !u.At.Before(g.Expires()) || !g.RevokedAt.IsZero() && u.At.After(g.RevokedAt) {
				t.Fatalf("use %d at %s", i, u.At)
			}
			if slices.IndexFunc(g.Uses, func(o grant.Use) bool { return o.Job == u.Job }) != i {
				t.Fatalf("job %s twice", u.Job)
			}
		}
	})
}
