package lifecycle_test

import (
	"strconv"
	"strings"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
)

const origin = "example-7f3a"

// world is the stream of one job: what was stored, and what it makes of it.
type world struct {
	job    lifecycle.Job
	stored []events.Event
	now    time.Time
}

func newWorld() *world { return &world{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

// args are the words after a story's verb; a bare word is who does it ("as").
type args map[string]string

func parseArgs(words []string) args {
	a := args{}
	for _, word := range words {
		if key, value, ok := strings.Cut(word, "="); ok {
			a[key] = value
		} else {
			a["as"] = word
		}
	}
	return a
}

func (a args) text(key, otherwise string) string {
	if v, ok := a[key]; ok {
		return v
	}
	return otherwise
}

func (a args) num(key string, otherwise int) int {
	if n, err := strconv.Atoi(a[key]); err == nil {
		return n
	}
	return otherwise
}

// act is one thing that somebody can do to a job.
type act struct {
	verb    string
	kind    events.Kind
	by      string // unless the story says who
	payload func(w *world, a args) any
}

var acts = []act{
	{"propose", "job.proposed", "proposer", (*world).proposal},
	{"resolve", "job.resolved", "w1", func(w *world, a args) any {
		return &events.JobResolved{Proposal: w.proposalDigest(a), Program: events.FileDigest{Path: a.text("path", "/bin/make")}, Cwd: "/src"}
	}},
	{"assess", "job.assessed", "gate", func(w *world, a args) any {
		return &events.JobAssessed{Proposal: w.proposalDigest(a), Resolution: a.text("resolution", w.job.ResolutionDigest), Quorum: a.num("quorum", 1), Confirm: a["confirm"],
			Approvers: strings.FieldsFunc(a.text("approvers", ""), func(r rune) bool { return r == ',' })}
	}},
	{"allow", "job.approved", "gate", func(w *world, a args) any { return w.approval(a, "policy") }},
	{"approve", "job.approved", "p1", func(w *world, a args) any { return w.approval(a, "person") }},
	{"deny", "job.denied", "gate", func(w *world, a args) any {
		return &events.JobDenied{Proposal: w.proposalDigest(a), Basis: "person", Ruling: events.Ruling{Code: "person", Reason: "no"}}
	}},
	{"expire", "job.expired", "gate", func(w *world, a args) any {
		return &events.JobExpired{Proposal: w.proposalDigest(a), What: "request"}
	}},
	{"cancel", "job.cancelled", "gate", func(w *world, a args) any {
		return &events.JobCancelled{Started: uint64(a.num("start", w.running())), By: "p1", Reason: "changed my mind"}
	}},
	{"revoke", "job.revoked", "gate", func(w *world, a args) any {
		return &events.JobRevoked{Proposal: w.proposalDigest(a), By: "p1", Reason: "not today", Request: 1}
	}},
	{"grant", "job.approved", "gate", func(w *world, a args) any {
		p := w.approval(a, "grant").(*events.JobApproved)
		p.Grant, p.GrantUsed = a.text("grant", "g1"), uint64(a.num("used", 1))
		return p
	}},
	{"start", "job.started", "w1", (*world).start},
	{"hand_over", "job.handed_over", "proposer", func(w *world, a args) any {
		s := w.start(a).(*events.JobStarted)
		return &events.JobHandedOver{Proposal: s.Proposal, Resolution: s.Resolution, Approvals: s.Approvals, Sealed: s.Sealed}
	}},
	{"report", "job.reported", "proposer", func(w *world, a args) any {
		return &events.JobReported{HandedOver: uint64(a.num("of", int(w.job.HandedOver))), ExitCode: a.num("exit", 0)}
	}},
	{"finish", "job.finished", "w1", (*world).finish},
	{"lapse", "job.lapsed", "w2", func(w *world, a args) any {
		return &events.JobLapsed{Started: uint64(a.num("start", w.running())), SilentS: 30, Why: a.text("why", "lease")}
	}},
	{"decline", "job.declined", "w2", func(*world, args) any {
		return &events.JobDeclined{Code: "no_such_program", Reason: "not here"}
	}},
	{"dead_letter", "job.dead_lettered", "w1", func(*world, args) any {
		return &events.JobDeadLettered{Code: "program_changed", Reason: "make has changed"}
	}},
}

func findAct(verb string) (act, bool) {
	for _, a := range acts {
		if a.verb == verb {
			return a, true
		}
	}
	return act{}, false
}

func (w *world) proposal(a args) any {
	kind, id, _ := strings.Cut(a.text("by", "agent:claude"), ":")
	return &events.JobProposed{
		Argv: strings.Fields(a.text("argv", "make")), Cwd: "/src", Pool: a.text("payload_pool", a.text("pool", "default")), TimeoutS: a.num("timeout", 60),
		MaxAttempts: a.num("attempts", 1), RetrySafe: a["retry_safe"] == "yes", Executor: a["executor"],
		Proposer: events.Proposer{Kind: kind, ID: id}, ExpiresS: a.num("ttl", 3600),
	}
}

func (w *world) approval(a args, basis string) any {
	return &events.JobApproved{
		Proposal: w.proposalDigest(a), Resolution: a.text("resolution", w.job.ResolutionDigest),
		Basis: a.text("basis", basis), ValidS: a.num("valid", 600), MaxAttempts: a.num("attempts", 9),
		Confirmed: strings.Replace(a["confirmed"], "right", w.job.ResolutionDigest[:min(len(w.job.ResolutionDigest), 12)], 1),
	}
}

func (w *world) start(a args) any {
	var used []uint64
	for _, approval := range w.job.Approvals {
		used = append(used, approval.Seq)
	}
	return &events.JobStarted{
		Proposal: w.proposalDigest(a), Resolution: a.text("resolution", w.job.ResolutionDigest), Approvals: used[min(a.num("skip", 0), len(used)):],
		Sealed: uint64(a.num("sealed", int(w.job.LastApproval()))), Attempt: a.num("attempt", len(w.job.Attempts)+1), LeaseS: 30, Bound: "fd",
	}
}

func (w *world) finish(a args) any {
	p := &events.JobFinished{Started: uint64(a.num("start", w.lastStart())), Outcome: a.text("outcome", "succeeded")}
	if a["retry"] != "" {
		p.RetryAtMS = w.now.Add(time.Duration(a.num("retry", 0)) * time.Second).UnixMilli()
	}
	return p
}

func (w *world) proposalDigest(a args) string { return a.text("proposal", w.job.ProposalDigest) }

// lastStart is the sequence of the last start, 0 when there was none.
func (w *world) lastStart() int {
	if c := w.job.Current(); c != nil {
		return int(c.StartedSeq)
	}
	return 0
}

// running is lastStart while the job runs.
func (w *world) running() int {
	if w.job.Status != lifecycle.Running {
		return 0
	}
	return w.lastStart()
}

// event makes the event of an act the way that a role makes and reads it.
func (w *world) event(do act, a args) (events.Event, error) {
	actor := a.text("as", do.by)
	subject := events.For(do.kind, a.text("pool", "default"), a.text("job", "j1"), actor)
	seq := uint64(len(w.stored)) + 1
	id := events.ID{Actor: actor, Session: events.Digest([]byte(actor + a["session"]))[:20], N: seq}
	m, err := events.New(origin, subject, id, w.now, uint64(a.num("expect", int(w.job.LastSeq))), do.payload(w, a))
	if err != nil {
		return events.Event{}, err
	}
	m.Sign(origin, "ed25519:nobody", func([]byte) []byte { return make([]byte, 64) })
	return events.Open(origin, events.Stored{Seq: seq, Time: w.now, Subject: subject.String(), Header: m.Header, Data: m.Data})
}

// store appends an event and folds it.
func (w *world) store(e events.Event) error {
	w.stored = append(w.stored, e)
	var err error
	w.job, err = lifecycle.Apply(w.job, e)
	return err
}

// do is event and store for tests that know what they do.
func (w *world) do(line string) error {
	words := strings.Fields(line)
	do, ok := findAct(words[0])
	if !ok {
		panic("no act " + words[0])
	}
	e, err := w.event(do, parseArgs(words[1:]))
	if err != nil {
		panic(err)
	}
	return w.store(e)
}
