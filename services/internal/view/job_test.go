package view_test

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/view"
)

func clock(s int) time.Time { return time.Date(2026, 3, 1, 12, 0, s, 0, time.FixedZone("east", 3600)) }

// proposed is a job that nobody has looked at yet.
func proposed() lifecycle.Job {
	return lifecycle.Job{
		ID: "0199", Pool: "default", Status: lifecycle.Proposed, ProposalDigest: "pd", ProposedSeq: 3, ProposedAt: clock(0), LastSeq: 3, UpdatedAt: clock(0),
		Proposal: &events.JobProposed{
			Argv: []string{"make", "a\x1b"}, Cwd: "/src", Pool: "default", Env: map[string]string{"A": "1"}, TimeoutS: 60, MaxAttempts: 2, ExpiresS: 600,
			Reason: "it is time", Labels: map[string]string{"team": "x"}, Proposer: events.Proposer{Kind: "agent", ID: "local"},
		},
	}
}

// ran is a job that was approved by a person and ran twice.
func ran() lifecycle.Job {
	j := proposed()
	j.Status, j.LastSeq, j.UpdatedAt = lifecycle.Failed, 12, clock(9)
	j.Resolution = &events.JobResolved{Program: events.FileDigest{Path: "/usr/bin/make", SHA256: "aa", SizeBytes: 5}, Cwd: "/real/src", UnsafeSharedUser: true}
	j.ResolutionDigest, j.ResolvedBy = "rd", "worker"
	j.Assessment, j.Quorum = &events.JobAssessed{Proposal: "pd", Resolution: "rd", Policy: "po", Quorum: 1, Ruling: events.Ruling{Rule: "r1", Code: "rule", Reason: "ask"}}, 1
	j.Approvals = []lifecycle.Approval{{Actor: "p7k2", Basis: "person", Seq: 6, At: clock(3), Expires: clock(50), MaxAttempts: 2, UnsafeSharedUser: true}}
	j.Declines = []lifecycle.Decline{{Actor: "other", Session: "s", Code: "no_such_program", Reason: "make is missing", At: clock(1)}}
	j.Attempts = []lifecycle.Attempt{
		{N: 1, Worker: "worker", Session: "s", StartedSeq: 8, StartedAt: clock(4), Started: events.JobStarted{Bound: "fd"}, EndedAt: clock(5), EndedSeq: 9, Lapsed: true},
		{N: 2, Worker: "worker", Session: "s", StartedSeq: 10, StartedAt: clock(6), Started: events.JobStarted{Bound: "checked"}, EndedAt: clock(9), EndedSeq: 12, Result: &events.JobFinished{
			Outcome: "failed", ExitCode: 3, DurationMS: 1500, UserMS: 20, SystemMS: 1, MaxRSSBytes: 4096, Stdout: events.Output{Bytes: 2, StoredBytes: 2, SHA256: "bb", Chunks: 1}, Means: []string{"TERM"},
		}},
	}
	return j
}

func TestShape(t *testing.T) {
	denied := proposed()
	denied.Status, denied.Denial, denied.DeniedBy, denied.Ending = lifecycle.Denied, &events.JobDenied{Ruling: events.Ruling{Code: "person", Reason: "not today"}}, "p7k2", "not today"
	allowed := proposed()
	allowed.Status, allowed.Approvals = lifecycle.Approved, []lifecycle.Approval{{Actor: "gate", Basis: "policy", Seq: 5, At: clock(1), Expires: clock(9), Ruling: events.Ruling{Rule: "r2", Code: "rule", Reason: "allowed"}}}
	tainted := proposed()
	tainted.Status, tainted.Unresolved, tainted.Tainted, tainted.TaintCode, tainted.Unreadable = lifecycle.Pending, true, true, "bad_signature", true
	for name, v := range map[string]any{
		"job_proposed": view.Of(proposed()), "job_ran": view.Of(ran()), "detail_ran": view.DetailOf(ran()), "detail_denied": view.DetailOf(denied),
		"detail_allowed": view.DetailOf(allowed), "detail_tainted": view.DetailOf(tainted), "detail_nothing": view.DetailOf(lifecycle.Job{}),
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, v) })
	}
}

// golden compares with what shipped. Scripts read these shapes: members are
// added, none is renamed or taken away.
func golden(t *testing.T, name string, v any) {
	t.Helper()
	got, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name+".json")
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
		t.Error(diff)
	}
}

var _ = flag.Bool("update", false, "write the golden files")

func TestRunningAttemptHasNoEnd(t *testing.T) {
	j := ran()
	j.Status, j.Attempts = lifecycle.Running, j.Attempts[:1]
	j.Attempts[0].EndedAt, j.Attempts[0].Lapsed = time.Time{}, false
	d := view.DetailOf(j)
	if !d.Attempts[0].Ended.IsZero() || d.Result != nil || d.Worker != "worker" || d.ExitCode != nil {
		t.Errorf("%+v", d)
	}
}
