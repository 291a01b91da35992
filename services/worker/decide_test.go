package worker

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/policy"
	"github.com/banksman/banksman/services/internal/proc"
)

var (
	noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	mine = identity{actor: "worker", session: "s1", pool: "default"}
)

// approvedJob is a job that mine resolved and a person approved.
func approvedJob(change ...func(*lifecycle.Job)) lifecycle.Job {
	j := lifecycle.Job{
		ID: "job1", Pool: "default", Status: lifecycle.Approved, ProposalDigest: "pd", ResolutionDigest: "rd",
		Proposal:   &events.JobProposed{Argv: []string{"tool", "x.sh"}, Cwd: "/w", MaxAttempts: 2, TimeoutS: 60, ExpiresS: 60},
		Resolution: resolution(), ResolvedBy: "worker",
		Approvals: []lifecycle.Approval{{Actor: "p7k2", Basis: "person", Seq: 9, Expires: noon.Add(time.Hour), MaxAttempts: 2}},
		LastSeq:   9,
	}
	for _, f := range change {
		f(&j)
	}
	return j
}

func resolution(change ...func(*events.JobResolved)) *events.JobResolved {
	r := &events.JobResolved{
		Policy: "p1", Cwd: "/w", Program: events.FileDigest{Path: "/bin/tool", SHA256: "aa", SizeBytes: 1},
		Files:   []events.FileDigest{{Arg: -1, Path: "/bin/sh", SHA256: "bb"}, {Arg: 1, Path: "/w/x.sh", SHA256: "cc"}},
		EnvPass: []string{"HOME"}, SearchPath: []string{"/bin"},
	}
	for _, f := range change {
		f(r)
	}
	return r
}

func TestMayStart(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*lifecycle.Job)
		want   string // part of why not; empty when it may
	}{
		"approved":         {func(*lifecycle.Job) {}, ""},
		"another pool":     {func(j *lifecycle.Job) { j.Pool = "gpu" }, "pool gpu"},
		"tainted":          {func(j *lifecycle.Job) { j.Tainted, j.TaintCode = true, "bad_signature" }, "bad_signature"},
		"unreadable":       {func(j *lifecycle.Job) { j.Unreadable = true }, "not ready"},
		"pending":          {func(j *lifecycle.Job) { j.Status = lifecycle.Pending }, "not ready"},
		"running":          {func(j *lifecycle.Job) { j.Status = lifecycle.Running }, "not ready"},
		"cancelled":        {func(j *lifecycle.Job) { j.Status = lifecycle.Cancelled }, "not ready"},
		"expired approval": {func(j *lifecycle.Job) { j.Approvals[0].Expires = noon }, "not ready"},
		"attempts used up": {func(j *lifecycle.Job) { j.Attempts = make([]lifecycle.Attempt, 2) }, "every approved attempt"},
		"declined here":    {func(j *lifecycle.Job) { j.Declines = []lifecycle.Decline{{Actor: "worker", Session: "s1"}} }, "declined"},
		"declined earlier": {func(j *lifecycle.Job) { j.Declines = []lifecycle.Decline{{Actor: "worker", Session: "s0"}} }, ""},
		"retry due": {func(j *lifecycle.Job) {
			j.Status = lifecycle.RetryWait
			j.Attempts = []lifecycle.Attempt{{N: 1, Result: &events.JobFinished{RetryAtMS: noon.UnixMilli()}}}
		}, ""},
		"retry later": {func(j *lifecycle.Job) {
			j.Status = lifecycle.RetryWait
			j.Attempts = []lifecycle.Attempt{{N: 1, Result: &events.JobFinished{RetryAtMS: noon.UnixMilli() + 1}}}
		}, "not ready"},
	} {
		got := mayStart(approvedJob(c.change), mine, noon)
		if c.want == "" && got != "" || c.want != "" && !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestMayResolve(t *testing.T) {
	open := func(j *lifecycle.Job) { j.Status, j.Resolution = lifecycle.Proposed, nil }
	for name, c := range map[string]struct {
		change func(*lifecycle.Job)
		may    bool
	}{
		"proposed":      {func(*lifecycle.Job) {}, true},
		"pending":       {func(j *lifecycle.Job) { j.Status = lifecycle.Pending }, true},
		"denied":        {func(j *lifecycle.Job) { j.Status = lifecycle.Denied }, false},
		"approved":      {func(j *lifecycle.Job) { j.Status = lifecycle.Approved }, false},
		"resolved":      {func(j *lifecycle.Job) { j.Resolution = resolution() }, false},
		"tainted":       {func(j *lifecycle.Job) { j.Tainted = true }, false},
		"unreadable":    {func(j *lifecycle.Job) { j.Unreadable = true }, false},
		"another pool":  {func(j *lifecycle.Job) { j.Pool = "gpu" }, false},
		"declined here": {func(j *lifecycle.Job) { j.Declines = []lifecycle.Decline{{Actor: "worker", Session: "s1"}} }, false},
	} {
		if why := mayResolve(approvedJob(open, c.change), mine); (why == "") != c.may {
			t.Errorf("%s: %q", name, why)
		}
	}
}

func TestPermitted(t *testing.T) {
	byPolicy := func(j *lifecycle.Job) { j.Approvals[0].Basis = "policy" }
	byPerson := func(*lifecycle.Job) {}
	for _, c := range []struct {
		basis   func(*lifecycle.Job)
		verdict policy.Verdict
		may     bool
	}{
		{byPolicy, policy.Allow, true},
		{byPolicy, policy.Ask, false},
		{byPolicy, policy.Deny, false},
		{byPerson, policy.Allow, true},
		{byPerson, policy.Ask, true},
		{byPerson, policy.Deny, false},
	} {
		j := approvedJob(c.basis)
		fault := permitted(j, policy.Decision{Verdict: c.verdict, Reason: "because"})
		if (fault == nil) != c.may || fault != nil && (fault.code != codePolicyChanged || !strings.Contains(fault.reason, "because")) {
			t.Errorf("basis %s, verdict %s: %+v", j.Approvals[0].Basis, c.verdict, fault)
		}
	}
}

// A policy that came to want the digest in each yes stops what was approved
// without it.
func TestPermittedByDigest(t *testing.T) {
	for _, confirmed := range []bool{true, false} {
		j := approvedJob(func(j *lifecycle.Job) { j.Approvals[0].Confirmed = confirmed })
		fault := permitted(j, policy.Decision{Verdict: policy.Ask, Quorum: 1, Confirm: true})
		if (fault == nil) != confirmed || fault != nil && (fault.code != codePolicyChanged || !strings.Contains(fault.reason, "digest")) {
			t.Errorf("confirmed %v: %+v", confirmed, fault)
		}
	}
}

func TestDiffers(t *testing.T) {
	for name, c := range map[string]struct {
		now  *events.JobResolved
		code string
	}{
		"the same":              {resolution(), ""},
		"another policy only":   {resolution(func(r *events.JobResolved) { r.Policy = "p2" }), ""},
		"program bytes":         {resolution(func(r *events.JobResolved) { r.Program.SHA256 = "ab" }), codeProgramChanged},
		"program place":         {resolution(func(r *events.JobResolved) { r.Program.Path = "/opt/tool" }), codeProgramChanged},
		"directory":             {resolution(func(r *events.JobResolved) { r.Cwd = "/v" }), codeCwdChanged},
		"interpreter":           {resolution(func(r *events.JobResolved) { r.Files[0].SHA256 = "ba" }), codeFileChanged},
		"script":                {resolution(func(r *events.JobResolved) { r.Files[1].SHA256 = "ca" }), codeFileChanged},
		"script gone":           {resolution(func(r *events.JobResolved) { r.Files = r.Files[:1] }), codeFileChanged},
		"interpreter gone":      {resolution(func(r *events.JobResolved) { r.Files = r.Files[1:] }), codeFileChanged},
		"a file more":           {resolution(func(r *events.JobResolved) { r.Files = append(r.Files, events.FileDigest{Arg: 2}) }), codeFileChanged},
		"a variable more":       {resolution(func(r *events.JobResolved) { r.EnvPass = []string{"HOME", "LD_PRELOAD"} }), codeEnvironChanged},
		"a variable less":       {resolution(func(r *events.JobResolved) { r.EnvPass = []string{} }), codeEnvironChanged},
		"another search path":   {resolution(func(r *events.JobResolved) { r.SearchPath = []string{"/tmp/bin", "/bin"} }), codeEnvironChanged},
		"a file more by policy": {resolution(func(r *events.JobResolved) { r.Policy, r.Files = "p2", append(r.Files, events.FileDigest{Arg: 2}) }), codePolicyChanged},
	} {
		got := differs(resolution(), c.now)
		if c.code == "" && got != nil || c.code != "" && (got == nil || got.code != c.code || got.reason == "") {
			t.Errorf("%s: %+v, want %s", name, got, c.code)
		}
	}
}

// A resolution by a worker that did not name what it gives to jobs still counts.
func TestDiffersTakesAnOlderResolution(t *testing.T) {
	old := resolution(func(r *events.JobResolved) { r.EnvPass, r.SearchPath = nil, nil })
	if got := differs(old, resolution()); got != nil {
		t.Errorf("%+v", got)
	}
}

// Whatever is different in a resolution but for the proposal and policy that it
// was made under, a start is refused; whatever is the same is not.
func TestDiffersFindsEveryDifference(t *testing.T) {
	file := rapid.Custom(func(t *rapid.T) events.FileDigest {
		return events.FileDigest{
			Arg: rapid.IntRange(-1, 2).Draw(t, "arg"), Path: rapid.SampledFrom([]string{"/a", "/b"}).Draw(t, "path"),
			SHA256: rapid.SampledFrom([]string{"aa", "bb"}).Draw(t, "sum"), SizeBytes: rapid.Int64Range(0, 1).Draw(t, "size"),
		}
	})
	some := rapid.Custom(func(t *rapid.T) *events.JobResolved {
		return &events.JobResolved{
			Policy: rapid.SampledFrom([]string{"p1", "p2"}).Draw(t, "policy"), Program: file.Draw(t, "program"),
			Files: rapid.SliceOfNDistinct(file, 0, 2, rapid.ID).Draw(t, "files"), Cwd: rapid.SampledFrom([]string{"/w", "/v"}).Draw(t, "cwd"),
			EnvPass:    rapid.SampledFrom([][]string{{}, {"A"}, {"A", "B"}}).Draw(t, "env_pass"),
			SearchPath: rapid.SampledFrom([][]string{{"/a"}, {"/b", "/a"}}).Draw(t, "search_path"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		a, b := some.Draw(t, "approved"), some.Draw(t, "now")
		same := a.Program == b.Program && a.Cwd == b.Cwd && len(a.Files) == len(b.Files) && slices.Equal(a.EnvPass, b.EnvPass) && slices.Equal(a.SearchPath, b.SearchPath)
		inB := map[events.FileDigest]bool{}
		for _, f := range b.Files {
			inB[f] = true
		}
		for _, f := range a.Files {
			same = same && inB[f]
		}
		if got := differs(a, b); (got == nil) != same {
			t.Fatalf("same %v, found %+v", same, got)
		}
	})
}

func TestOnlyTheResolverDeadLetters(t *testing.T) {
	for _, c := range []struct {
		actor, code string
		dead        bool
	}{
		{"worker", codeProgramChanged, true},
		{"worker", codePolicyChanged, true},
		{"worker", proc.CodeTooLarge, false},
		{"other", codeProgramChanged, false},
		{"other", codePolicyChanged, false},
	} {
		payload := refuse(approvedJob(), identity{actor: c.actor}, change{c.code, "why"})
		if _, dead := payload.(*events.JobDeadLettered); dead != c.dead {
			t.Errorf("%s about %s says %T", c.actor, c.code, payload)
		}
	}
}

func TestGoneIsAChangeToTheResolver(t *testing.T) {
	for code, want := range map[string]string{
		proc.CodeNoDir: codeCwdChanged, proc.CodeNoProgram: codeProgramChanged, proc.CodeNotExecutable: codeProgramChanged,
		proc.CodeNoInterpreter: codeFileChanged, proc.CodeSystem: proc.CodeSystem,
	} {
		if got := gone(change{code, "why"}); got.code != want || got.reason != "why" {
			t.Errorf("%s became %+v", code, got)
		}
	}
}

func TestClaimIsAcceptedByTheFold(t *testing.T) {
	j := approvedJob()
	started := claim(j, "p2", 12, 15)
	e := events.Event{
		Seq: 13, Time: noon, Subject: events.For("job.started", "default", "job1", "worker"), Kind: "job.started", Version: 1,
		ID: events.ID{Actor: "worker", Session: "s1", N: 4}, Expect: j.LastSeq, Payload: started,
	}
	after, err := lifecycle.Apply(j, e)
	if err != nil || after.Status != lifecycle.Running {
		t.Fatalf("status %q: %v", after.Status, err)
	}
	if started.Bound != proc.BoundChecked || started.Attempt != 1 || started.Sealed != 12 || started.LeaseS != 15 {
		t.Errorf("%+v", started)
	}
	if a := holds(after, "worker", "s1", 1); a == nil || a.StartedSeq != 13 {
		t.Errorf("holds %+v", a)
	}
	for _, other := range []*lifecycle.Attempt{holds(after, "other", "s1", 1), holds(after, "worker", "s2", 1), holds(after, "worker", "s1", 2)} {
		if other != nil {
			t.Errorf("somebody else holds %+v", other)
		}
	}
}

func TestFence(t *testing.T) {
	attempt := func(r *events.JobFinished) func(*lifecycle.Job) {
		return func(j *lifecycle.Job) { j.Attempts = []lifecycle.Attempt{{N: 1, StartedSeq: 13, Result: r}} }
	}
	in := func(s lifecycle.Status) func(*lifecycle.Job) { return func(j *lifecycle.Job) { j.Status = s } }
	for name, c := range map[string]struct {
		j    lifecycle.Job
		want fence
	}{
		"running":           {approvedJob(attempt(nil), in(lifecycle.Running)), fenceOpen},
		"lost":              {approvedJob(attempt(nil), in(lifecycle.Lost)), fenceLate},
		"reported":          {approvedJob(attempt(&events.JobFinished{}), in(lifecycle.Succeeded)), fenceStored},
		"reported late":     {approvedJob(attempt(&events.JobFinished{}), in(lifecycle.Lost)), fenceStored},
		"cancelled":         {approvedJob(attempt(nil), in(lifecycle.Cancelled)), fenceStored},
		"lapsed, retry":     {approvedJob(attempt(nil), in(lifecycle.RetryWait)), fenceShut},
		"never started":     {approvedJob(), fenceShut},
		"a later attempt":   {approvedJob(func(j *lifecycle.Job) { j.Attempts = []lifecycle.Attempt{{StartedSeq: 13}, {StartedSeq: 20}} }, in(lifecycle.Running)), fenceShut},
		"somebody's finish": {approvedJob(func(j *lifecycle.Job) { j.Attempts = []lifecycle.Attempt{{StartedSeq: 14}} }, in(lifecycle.Running)), fenceShut},
	} {
		if got := fenceOf(c.j, 13); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

func TestSealCovers(t *testing.T) {
	for _, c := range []struct {
		seal    seal
		through uint64
		want    string
	}{
		{seal{through: 9, dispatch: "open"}, 9, ""},
		{seal{through: 10, dispatch: "open"}, 9, ""},
		{seal{through: 8, dispatch: "open"}, 9, "waiting for seal"},
		{seal{}, 9, "waiting for seal"},
		{seal{through: 9, dispatch: "closed"}, 9, "dispatch closed by the auditor"},
		{seal{through: 9}, 9, "dispatch closed by the auditor"},
	} {
		if got := c.seal.covers(c.through); got != c.want {
			t.Errorf("%+v covers %d: %q", c.seal, c.through, got)
		}
	}
}
