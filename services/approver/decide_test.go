package approver

import (
	"strings"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/policy"
)

const rules = `version = 1
[[rule]]
id = "never"
program = "rm"
decision = "deny"
reason = "it deletes"
instead = "move it"
[[rule]]
id = "free"
program = "true"
decision = "allow"
[[rule]]
id = "two"
program = "deploy"
decision = "ask"
quorum = 2
reason = "it is live"
[[rule]]
id = "asked"
program = "make"
decision = "ask"
`

func parsed(t *testing.T, text string) *policy.Policy {
	t.Helper()
	p, err := policy.Parse("test", []byte(text), policy.Env{DataDir: "/var/lib/banksman", Homes: []string{"/root"}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// job is a proposal at noon; the others are what happened since.
func job(argv ...string) lifecycle.Job {
	return lifecycle.Job{
		ID: "j1", Pool: "default", Status: lifecycle.Proposed, ProposalDigest: "pd", ProposedAt: noon, LastSeq: 4,
		Proposal: &events.JobProposed{Argv: argv, Cwd: "/src", Pool: "default", TimeoutS: 60, MaxAttempts: 3, ExpiresS: 600, Proposer: events.Proposer{Kind: "agent", ID: "local"}},
	}
}

func resolved(j lifecycle.Job, path string) lifecycle.Job {
	j.Resolution, j.ResolutionDigest = &events.JobResolved{Program: events.FileDigest{Path: path}, Cwd: "/src", UnsafeSharedUser: true}, "rd"
	return j
}

func assessed1(j lifecycle.Job, resolution string) lifecycle.Job {
	j.Status, j.Assessment = lifecycle.Pending, &events.JobAssessed{Resolution: resolution}
	return j
}

func TestDecide(t *testing.T) {
	declined := job("make")
	declined.Declines = []lifecycle.Decline{{Actor: "worker", Code: "no_such_program", Reason: "make is missing"}}
	for what, c := range map[string]struct {
		job   lifecycle.Job
		after time.Duration
		want  verdict
		code  string // of the ruling
		text  string // in its reason
	}{
		"denied without a worker":           {job("rm", "x"), 0, verdict{kind: "job.denied"}, "rule", "it deletes"},
		"unlisted is denied":                {job("curl"), 0, verdict{kind: "job.denied"}, "unlisted", "curl"},
		"waits for a worker":                {job("make"), time.Second, verdict{again: 4 * time.Second}, "", ""},
		"also where it would be allowed":    {job("true"), time.Second, verdict{again: 4 * time.Second}, "", ""},
		"a clock behind waits no longer":    {job("make"), -time.Hour, verdict{again: 5 * time.Second}, "", ""},
		"is unresolved after that":          {job("make"), 5 * time.Second, verdict{kind: "job.assessed"}, "unresolved", "pool default"},
		"never allowed unresolved":          {job("true"), time.Hour, verdict{kind: "job.assessed"}, "unresolved", "pool default"},
		"unresolved says who declined":      {declined, 5 * time.Second, verdict{kind: "job.assessed"}, "unresolved", "worker: make is missing"},
		"once":                              {assessed1(job("make"), ""), time.Minute, verdict{}, "", ""},
		"a stricter policy binds waiting":   {assessed1(job("rm"), ""), time.Minute, verdict{kind: "job.denied"}, "rule", "it deletes"},
		"late resolution is assessed again": {resolved(assessed1(job("make"), ""), "/usr/bin/make"), time.Minute, verdict{kind: "job.assessed"}, "rule", "asked"},
		"late resolution may be allowed":    {resolved(assessed1(job("true"), ""), "/usr/bin/true"), time.Minute, verdict{kind: "job.approved"}, "rule", "free"},
		"people have it":                    {resolved(assessed1(job("make"), "rd"), "/usr/bin/make"), time.Minute, verdict{}, "", ""},
		"allowed":                           {resolved(job("true"), "/usr/bin/true"), 0, verdict{kind: "job.approved"}, "rule", "free"},
		"allowed by name, another program":  {resolved(job("true"), "/src/true"), 0, verdict{kind: "job.denied"}, "", ""},
		"denied by what it really is":       {resolved(job("make"), "/usr/bin/rm"), 0, verdict{kind: "job.denied"}, "rule", "it deletes"},
		"two persons":                       {resolved(job("deploy"), "/usr/bin/deploy"), 0, verdict{kind: "job.assessed"}, "rule", "it is live"},
		"inside banksman's own folder":      {resolved(job("true"), "/var/lib/banksman/true"), 0, verdict{kind: "job.denied"}, string(policy.CodeInDataDir), ""},
		"tainted is left alone":             {with(resolved(job("true"), "/usr/bin/true"), func(j *lifecycle.Job) { j.Tainted = true }), 0, verdict{}, "", ""},
		"unreadable is left alone":          {with(job("rm"), func(j *lifecycle.Job) { j.Unreadable = true }), 0, verdict{}, "", ""},
		"decided is left alone":             {with(job("rm"), func(j *lifecycle.Job) { j.Status = lifecycle.Approved }), 0, verdict{}, "", ""},
	} {
		t.Run(what, func(t *testing.T) {
			cfg, p := DefaultConfig(), parsed(t, rules)
			got := decide(&cfg, c.job, p, noon.Add(c.after))
			if got.kind != c.want.kind || got.again != c.want.again || (got.payload == nil) != (c.want.kind == "") {
				t.Fatalf("%+v, want %+v", got, c.want)
			}
			r, digests := rulingOf(got.payload)
			if c.code != "" && r.Code != c.code || !strings.Contains(r.Reason, c.text) {
				t.Errorf("ruling %+v, want code %q and %q", r, c.code, c.text)
			}
			want := map[events.Kind]string{"job.denied": "pd  " + p.Digest(), "job.approved": "pd rd " + p.Digest(), "job.assessed": "pd " + c.job.ResolutionDigest + " " + p.Digest()}
			if digests != want[got.kind] {
				t.Errorf("it names %q, want %q", digests, want[got.kind])
			}
		})
	}
}

func with(j lifecycle.Job, f func(*lifecycle.Job)) lifecycle.Job { f(&j); return j }

func rulingOf(payload any) (events.Ruling, string) {
	switch p := payload.(type) {
	case *events.JobApproved:
		return p.Ruling, p.Proposal + " " + p.Resolution + " " + p.Policy
	case *events.JobDenied:
		return p.Ruling, p.Proposal + "  " + p.Policy
	case *events.JobAssessed:
		return p.Ruling, p.Proposal + " " + p.Resolution + " " + p.Policy
	}
	return events.Ruling{}, ""
}

func TestDecisionsAreComplete(t *testing.T) {
	cfg, p := DefaultConfig(), parsed(t, rules)
	yes := decide(&cfg, resolved(job("true"), "/usr/bin/true"), p, noon).payload.(*events.JobApproved)
	if yes.Basis != "policy" || yes.ValidS != cfg.ApprovalValidS || yes.MaxAttempts != 3 || !yes.UnsafeSharedUser || yes.Ruling.Rule != "free" {
		t.Errorf("%+v", yes)
	}
	no := decide(&cfg, job("rm"), p, noon).payload.(*events.JobDenied)
	if no.Basis != "policy" || no.Ruling != (events.Ruling{Rule: "never", Code: "rule", Reason: "it deletes", Instead: "move it"}) {
		t.Errorf("%+v", no)
	}
	two := decide(&cfg, resolved(job("deploy"), "/usr/bin/deploy"), p, noon).payload.(*events.JobAssessed)
	one := decide(&cfg, resolved(job("make"), "/usr/bin/make"), p, noon).payload.(*events.JobAssessed)
	if two.Quorum != 2 || one.Quorum != 1 {
		t.Errorf("quorums %d and %d, want 2 and 1", two.Quorum, one.Quorum)
	}
}

func TestWithoutPolicyEverythingIsDenied(t *testing.T) {
	cfg := DefaultConfig()
	if got := decide(&cfg, job("true"), nil, noon); got.kind != "job.denied" {
		t.Errorf("%+v", got)
	}
}

func TestExpire(t *testing.T) {
	approved := job("true")
	approved.Status, approved.Approvals = lifecycle.Approved, []lifecycle.Approval{{Expires: noon.Add(time.Hour)}, {Expires: noon.Add(time.Minute)}}
	for what, c := range map[string]struct {
		job   lifecycle.Job
		after time.Duration
		want  string
	}{
		"request in time":        {job("true"), 599 * time.Second, ""},
		"request":                {job("true"), 600 * time.Second, "request"},
		"pending request":        {assessed1(job("make"), ""), 600 * time.Second, "request"},
		"tainted request":        {with(job("true"), func(j *lifecycle.Job) { j.Tainted = true }), time.Hour, "request"},
		"approval in time":       {approved, 59 * time.Second, ""},
		"the earliest approval":  {approved, time.Minute, "approval"},
		"waiting for a retry":    {with(approved, func(j *lifecycle.Job) { j.Status = lifecycle.RetryWait }), time.Minute, "approval"},
		"running":                {with(approved, func(j *lifecycle.Job) { j.Status = lifecycle.Running }), time.Hour, ""},
		"ended":                  {with(approved, func(j *lifecycle.Job) { j.Status = lifecycle.Failed }), time.Hour, ""},
		"nothing believable yet": {lifecycle.Job{ID: "j1"}, time.Hour, ""},
	} {
		t.Run(what, func(t *testing.T) {
			got := expire(c.job, noon.Add(c.after))
			p, _ := got.payload.(*events.JobExpired)
			if (p == nil) != (c.want == "") || p != nil && (p.What != c.want || p.Proposal != "pd" || got.kind != "job.expired") {
				t.Errorf("%+v, want %q", got, c.want)
			}
		})
	}
}

func TestConfig(t *testing.T) {
	for want, spoil := range map[string]func(*Config){
		"actor":            func(c *Config) { c.ActorName = "The Gate" },
		"resolve_wait_ms":  func(c *Config) { c.ResolveWaitMS = 99 },
		"approval_valid_s": func(c *Config) { c.ApprovalValidS = 0 },
		"expire_every_s":   func(c *Config) { c.ExpireEveryS = 0 },
		"":                 func(*Config) {},
	} {
		c := DefaultConfig()
		spoil(&c)
		if err := c.Validate(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want it about %q", err, want)
		}
	}
}
