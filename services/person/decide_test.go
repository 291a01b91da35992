package person

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/keys"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// pending is a job that waits for persons; change says what is different.
func pending(change ...func(*lifecycle.Job)) lifecycle.Job {
	j := lifecycle.Job{
		ID: "j1", Pool: "default", Status: lifecycle.Pending, ProposalDigest: "pd", ProposedAt: noon, Quorum: 2, LastSeq: 7,
		Proposal:   &events.JobProposed{Argv: []string{"make"}, Pool: "default", MaxAttempts: 3, ExpiresS: 600, Proposer: events.Proposer{Kind: "agent", ID: "local"}},
		Resolution: &events.JobResolved{UnsafeSharedUser: true}, ResolutionDigest: "rd", Assessment: &events.JobAssessed{Resolution: "rd"},
	}
	for _, f := range change {
		f(&j)
	}
	return j
}

func codeOf(err error) string {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	return ""
}

func TestApproveAndDeny(t *testing.T) {
	by := func(kind, id string) func(*lifecycle.Job) {
		return func(j *lifecycle.Job) {
			p := *j.Proposal
			p.Proposer, j.Proposal = events.Proposer{Kind: kind, ID: id}, &p
		}
	}
	status := func(s lifecycle.Status) func(*lifecycle.Job) { return func(j *lifecycle.Job) { j.Status = s } }
	for what, c := range map[string]struct {
		job     lifecycle.Job
		after   time.Duration
		approve string // code of the refusal, empty for yes
		deny    string
		text    string // in the refusal of the approval
	}{
		"pending":             {pending(), 0, "", "", ""},
		"not assessed yet":    {pending(status(lifecycle.Proposed)), 0, "", "", ""},
		"approved by another": {pending(approvedBy("p2")), 0, "", "", ""},
		"approved by me":      {pending(approvedBy("p1")), 0, CodeTwice, "", "1 of 2"},
		"my own":              {pending(by("person", "p1")), 0, CodeSelfApproval, "", "yourself"},
		"an agent of my name": {pending(by("agent", "p1")), 0, "", "", ""},
		"of another person":   {pending(by("person", "p2")), 0, "", "", ""},
		"unresolved": {pending(func(j *lifecycle.Job) {
			j.Resolution, j.Declines = nil, []lifecycle.Decline{{Actor: "worker", Reason: "make is missing"}}
		}), 0, CodeUnresolved, "", "worker declined: make is missing"},
		"tainted":      {pending(func(j *lifecycle.Job) { j.Tainted, j.TaintCode, j.TaintSeq = true, "bad_signature", 6 }), 0, CodeTainted, "", "event 6 of it breaks a rule (bad_signature)"},
		"unreadable":   {pending(func(j *lifecycle.Job) { j.Unreadable = true }), 0, CodeTainted, "", "newer version"},
		"unbelievable": {lifecycle.Job{ID: "j1"}, 0, CodeTainted, CodeTainted, "cannot be believed"},
		"decided":      {pending(status(lifecycle.Approved)), 0, CodeDecided, CodeDecided, "it is approved"},
		"denied":       {pending(status(lifecycle.Denied)), 0, CodeDecided, CodeDecided, "it is denied"},
		"ended":        {pending(status(lifecycle.Succeeded)), 0, CodeDecided, CodeDecided, "it is succeeded"},
		"last second":  {pending(), 599 * time.Second, "", "", ""},
		"expired":      {pending(), 600 * time.Second, CodeExpired, CodeExpired, "2026-03-01T12:10:00Z"},
	} {
		t.Run(what, func(t *testing.T) {
			cfg := Config{ActorName: "p1", ApprovalValidS: 60}
			yes, err := approve(&cfg, c.job, "p1", "po", noon.Add(c.after))
			if codeOf(err) != c.approve || (err == nil) != (c.approve == "") || err != nil && !strings.Contains(err.Error(), c.text) {
				t.Errorf("approve: %v, want code %q and %q", err, c.approve, c.text)
			}
			if err == nil && (yes.Proposal != "pd" || yes.Resolution != "rd" || yes.Policy != "po" || yes.Basis != "person" || yes.ValidS != 60 || yes.MaxAttempts != 3 || !yes.UnsafeSharedUser) {
				t.Errorf("%+v", yes)
			}
			no, err := deny(c.job, "not today", noon.Add(c.after))
			if codeOf(err) != c.deny || (err == nil) != (c.deny == "") {
				t.Errorf("deny: %v, want code %q", err, c.deny)
			}
			if err == nil && (no.Proposal != "pd" || no.Basis != "person" || no.Ruling != (events.Ruling{Code: "person", Reason: "not today"})) {
				t.Errorf("%+v", no)
			}
		})
	}
}

func approvedBy(actor string) func(*lifecycle.Job) {
	return func(j *lifecycle.Job) { j.Approvals = []lifecycle.Approval{{Actor: actor, At: noon}} }
}

func TestDenialNeedsAReason(t *testing.T) {
	for _, reason := range []string{"", " \n\t"} {
		if _, err := deny(pending(), reason, noon); codeOf(err) != CodeNoReason {
			t.Errorf("%q: %v", reason, err)
		}
	}
}

func TestAddAndRevokeActor(t *testing.T) {
	key := func() string {
		s, err := keys.GenerateSigner()
		if err != nil {
			t.Fatal(err)
		}
		return string(s.Public())
	}
	file := &events.TrustPublished{Version: 1, Actors: []events.Actor{{Actor: "gate", Roles: []events.Role{events.RoleGate}, Login: "UA", Sign: key()}}}
	for what, c := range map[string]struct {
		actor events.Actor
		code  string
	}{
		"a name that is none":  {events.Actor{Actor: "Some One", Roles: []events.Role{events.RolePerson}}, CodeBadActor},
		"a name that is taken": {events.Actor{Actor: "gate", Roles: []events.Role{events.RoleGate}}, CodeActorExists},
		"a pool that is none":  {events.Actor{Actor: "w", Roles: []events.Role{events.RoleWorker}, Pools: []string{"x y"}}, CodeBadActor},
		"no role":              {events.Actor{Actor: "w"}, CodeBadActor},
		"the root's role":      {events.Actor{Actor: "w", Roles: []events.Role{events.RoleRoot}}, CodeBadActor},
		"an unknown role":      {events.Actor{Actor: "w", Roles: []events.Role{"king"}}, CodeBadActor},
		"a weak key":           {events.Actor{Actor: "w", Roles: []events.Role{events.RoleWorker}, Sign: string(keys.NewPublicKey(make([]byte, 32)))}, CodeBadActor},
		"another's key":        {events.Actor{Actor: "w", Roles: []events.Role{events.RoleWorker}, Sign: file.Actors[0].Sign}, CodeBadActor},
		"another's log-in":     {events.Actor{Actor: "w", Roles: []events.Role{events.RoleWorker}, Login: "UA"}, CodeBadActor},
	} {
		if err := AddActor(file, c.actor); codeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", what, err, c.code)
		}
	}
	weak := string(keys.NewPublicKey(make([]byte, 32)))
	if err := RotateActor(file, "gate", NewKeys{Sign: weak}); codeOf(err) != CodeBadActor || file.Actors[0].Sign == weak {
		t.Errorf("a rotation to a weak key: %v", err)
	}
	if len(file.Actors) != 1 {
		t.Fatalf("%+v", file.Actors)
	}
	if err := AddActor(file, events.Actor{Actor: "w", Roles: []events.Role{events.RoleWorker}, Sign: key(), Pools: []string{"gpu"}}); err != nil || len(file.Actors) != 2 {
		t.Error(err)
	}
	if err := RevokeActor(file, "nobody"); codeOf(err) != CodeUnknownActor {
		t.Error(err)
	}
	if err := RevokeActor(file, "gate"); err != nil || len(file.Actors) != 1 || file.Actors[0].Actor != "w" {
		t.Errorf("%v, %+v", err, file.Actors)
	}
}

func TestConfig(t *testing.T) {
	for want, c := range map[string]Config{
		"actor": {ApprovalValidS: 60}, "approval_valid_s": {ActorName: "p1"}, "": {ActorName: "p1", ApprovalValidS: 1},
	} {
		if err := c.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it about %q", err, want)
		}
	}
}
