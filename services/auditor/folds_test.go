package auditor

import (
	"slices"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle/grant"
	"github.com/banksman/banksman/events/lifecycle/loop"
)

// TestOtherFoldsAreHeldToTheirTables: what the folds of projects and grants refuse is a
// violation with a code of its own, and a right history is none. The index is committed
// after every event, so that what it keeps is read again.
func TestOtherFoldsAreHeldToTheirTables(t *testing.T) {
	project := func(verb string) events.Subject {
		return events.For(events.Kind("loop."+verb), "demo", "demo", "supervisor")
	}
	given := events.GrantGiven{Scope: events.GrantScope{Program: "git", Roots: []string{"/w"}}, ValidS: 60, Uses: 2, Reason: "a test"}
	claim := events.LoopClaimed{Host: "h", WorkDir: "/w", LeaseS: 60}
	grantOf := func(verb, actor string) events.Subject {
		return events.For(events.Kind("grant."+verb), events.SiteScope, "g1", actor)
	}
	type say func(s events.Subject, payload any) uint64
	use := func(tell say, f *forge, seq uint64, n int, job string) uint64 {
		return tell(grantOf("used", "gate"), events.GrantUsed{Given: seq, Use: n, Job: job, Proposal: "p", Resolution: "r"})
	}
	approve := func(tell say, job string, used uint64) {
		tell(events.For("job.approved", "default", job, "gate"), events.JobApproved{Basis: "grant", Grant: "g1", GrantUsed: used, Proposal: "p", Resolution: "r"})
	}
	for name, c := range map[string]struct {
		do   func(f *forge, tell say)
		want []string
	}{
		"a project that is claimed and given back": {func(f *forge, tell say) {
			seq := tell(project("claimed"), claim)
			tell(project("released"), events.LoopReleased{Claim: seq, Reason: "x"})
			tell(project("claimed"), claim)
		}, nil},
		"given back by who does not hold it": {func(f *forge, tell say) {
			seq := tell(project("claimed"), claim)
			tell(project("released"), events.LoopReleased{Claim: seq + 7, Reason: "x"})
		}, []string{loop.CodeFence}},
		"given back twice": {func(f *forge, tell say) {
			seq := tell(project("claimed"), claim)
			tell(project("released"), events.LoopReleased{Claim: seq, Reason: "x"})
			tell(project("released"), events.LoopReleased{Claim: seq, Reason: "x"})
		}, []string{loop.CodeFence}},
		"claimed without a folder": {func(f *forge, tell say) { tell(project("claimed"), events.LoopClaimed{LeaseS: 1}) }, []string{loop.CodePayload}},
		"signed for another place": {func(f *forge, tell say) {
			tell(project("claimed"), claim)
			f.last[events.Filter("loop", "demo")] = 1
			tell(project("claimed"), claim)
		}, []string{loop.CodePosition}},
		"a grant and its uses": {func(f *forge, tell say) {
			seq := tell(grantOf("given", "p1"), given)
			use(tell, f, seq, 1, "a")
			use(tell, f, seq, 2, "b")
		}, nil},
		"one use too many": {func(f *forge, tell say) {
			seq := tell(grantOf("given", "p1"), given)
			for i, job := range []string{"a", "b", "c"} {
				use(tell, f, seq, i+1, job)
			}
		}, []string{grant.CodeIllegal}},
		"a use for the same job": {func(f *forge, tell say) {
			seq := tell(grantOf("given", "p1"), given)
			use(tell, f, seq, 1, "a")
			use(tell, f, seq, 2, "a")
		}, []string{grant.CodeTwice}},
		"a use that came too late": {func(f *forge, tell say) {
			seq := tell(grantOf("given", "p1"), given)
			f.at = f.at.Add(time.Hour)
			use(tell, f, seq, 1, "a")
		}, []string{grant.CodeTooLate}},
		"a use after it was taken back": {func(f *forge, tell say) {
			seq := tell(grantOf("given", "p1"), given)
			tell(grantOf("revoked", "p1"), events.GrantRevoked{Reason: "x"})
			use(tell, f, seq, 1, "a")
		}, []string{grant.CodeIllegal}},
		"a use of nothing": {func(f *forge, tell say) { use(tell, f, 5, 1, "a") }, []string{grant.CodeIllegal}},
		"an approval without its use": {func(f *forge, tell say) {
			tell(grantOf("given", "p1"), given)
			approve(tell, "a", 2)
		}, []string{codeNoUse}},
		"an approval by another job's use": {func(f *forge, tell say) {
			seq := tell(grantOf("given", "p1"), given)
			approve(tell, "b", use(tell, f, seq, 1, "a"))
		}, []string{codeNoUse}},
		"an approval by its use": {func(f *forge, tell say) {
			seq := tell(grantOf("given", "p1"), given)
			approve(tell, "a", use(tell, f, seq, 1, "a"))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			f := newForge(t)
			l := newTestLedger(t, f)
			var codes []string
			c.do(f, func(s events.Subject, payload any) uint64 {
				st := f.take(l, f.message(s, payload))
				found, _ := l.news()
				for _, u := range found {
					if s.Family == "job" && u.Code != codeNoUse {
						continue // these jobs have no history of their own
					}
					codes = append(codes, u.Code)
				}
				commit(t, l, f)
				return st.Seq
			})
			if !slices.Equal(codes, c.want) {
				t.Errorf("violations %q, want %q", codes, c.want)
			}
		})
	}
}
