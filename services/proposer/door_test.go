package proposer

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/lab/stage"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestProposeStoresWhatWasAsked(t *testing.T) {
	y := newYard(t, stage.Options{})
	p := proposal(func(p *agentapi.Proposal) { p.Argv = []string{"make", "a b", ""}; p.Env = map[string]string{"A": "1"} })
	for token, want := range map[string]events.Proposer{"agent.local": local, "person." + stage.Person: {Kind: "person", ID: stage.Person}} {
		got, err := y.as(token).Propose(y.Context(), p)
		if err != nil || got.Status != lifecycle.Proposed || got.Existing || got.Proposer != want.String() {
			t.Fatalf("%+v, %v", got, err)
		}
		j := y.Job(got.Job.Job)
		if j.Tainted || j.Proposal.Proposer != want || !slices.Equal(j.Proposal.Argv, p.Argv) || j.Proposal.Env["A"] != "1" {
			t.Errorf("%+v", j.Proposal)
		}
	}
}

func TestTokens(t *testing.T) {
	y := newYard(t, stage.Options{})
	token := y.tokens["agent.local"]
	stage.Must(t, os.WriteFile(filepath.Join(y.Layout.Tokens(), "agent.empty"), nil, 0o600))
	stage.Must(t, os.WriteFile(filepath.Join(y.Layout.Tokens(), "king.arthur"), []byte("excalibur"), 0o600))
	for what, authorization := range map[string]string{
		"none": "", "unknown": "Bearer bmt_nothing", "empty": "Bearer ", "no scheme": token, "another scheme": "Basic " + token,
		"half": "Bearer " + token[:20], "more": "Bearer " + token + "x", "a kind that is none": "Bearer excalibur",
	} {
		for _, path := range []string{"POST /v1/jobs", "POST /v1/assess", "GET /v1/jobs/x", "GET /v1/jobs/x/output"} {
			method, path, _ := strings.Cut(path, " ")
			status, e, text := y.raw(method, path, authorization, strings.NewReader(`{"argv":["true"],"cwd":"/"}`))
			if status != 401 || e.Code != "bad_token" || e.Next == "" || strings.Contains(text, token[:20]) {
				t.Errorf("%s at %s: %d %s", what, path, status, text)
			}
		}
	}
	// A token counts from when it is there until it is gone, and a file that
	// nobody can read keeps nobody out.
	y.enter("agent.new", "bmt_"+strings.Repeat("n", 43))
	stage.Must(t, os.Chmod(filepath.Join(y.Layout.Tokens(), "agent.empty"), 0o644))
	if _, err := y.as("agent.new").Propose(y.Context(), proposal()); err != nil {
		t.Error(err)
	}
	remove(t, filepath.Join(y.Layout.Tokens(), "agent.new"))
	if _, err := y.as("agent.new").Propose(y.Context(), proposal()); err == nil {
		t.Error("a token that is gone still counts")
	}
}

// What cannot be read is refused with a code and without an echo, and nothing
// of it is stored.
func TestRequestsThatAreNone(t *testing.T) {
	y := newYard(t, stage.Options{})
	secret := shown["GitHub token"]
	for what, c := range map[string]struct {
		body   string
		status int
		code   string
		text   string
	}{
		"4 MB":                         {`{"cwd":"/","argv":["x","` + strings.Repeat("y", 4<<20) + `"]}`, 413, "too_long", "bytes"},
		"nothing":                      {"", 400, "bad_request", "no valid JSON"},
		"no JSON":                      {"{" + secret, 400, "bad_request", "no valid JSON"},
		"a list":                       {"[]", 400, "bad_request", ""},
		"no UTF-8":                     {"{\"cwd\":\"/\",\"argv\":[\"\xff\"]}", 400, "bad_request", "no valid JSON"},
		"a lone surrogate":             {`{"cwd":"/","argv":["\ud800"]}`, 400, "bad_request", "no valid JSON"},
		"a member twice":               {`{"cwd":"/","cwd":"/","argv":["true"]}`, 400, "bad_request", ""},
		"a member nobody knows":        {`{"cwd":"/","agrv":["true"]}`, 400, "bad_request", `no member "agrv"`},
		"a secret for a member":        {`{"` + secret + `":1}`, 400, "bad_request", "another shape"},
		"a text for the arguments":     {`{"cwd":"/","argv":"true"}`, 400, "bad_request", `member "argv" has another type`},
		"a number among the arguments": {`{"cwd":"/","argv":["true",1]}`, 400, "bad_request", `"argv"`},
		"more than JSON":               {`{"cwd":"/","argv":["true"]} x`, 400, "bad_request", ""},
		"deep":                         {strings.Repeat("[", 100_000), 400, "bad_request", ""},
		"NUL":                          {`{"cwd":"/","argv":["\u0000"]}`, 422, "control_character", "argument 0"},
		"a secret":                     {`{"cwd":"/","argv":["x","` + secret + `"]}`, 422, "secret", "argument 1"},
	} {
		status, e, text := y.raw("POST", "/v1/jobs", "Bearer "+y.tokens["agent.local"], strings.NewReader(c.body))
		if status != c.status || e.Code != c.code || !strings.Contains(e.Message, c.text) {
			t.Errorf("%s: %d %.200s, want %d %s %q", what, status, text, c.status, c.code, c.text)
		}
		if strings.Contains(text, secret) || len(text) > 1000 {
			t.Errorf("%s: the answer repeats it: %.200s", what, text)
		}
	}
	if got := y.Last("bm.job.>"); got != 0 {
		t.Errorf("event %d was stored", got)
	}
	stage.Must(t, y.stop())
	if strings.Contains(y.log.String(), secret) {
		t.Error("the log repeats it")
	}
}

func TestOneKeyIsOneJob(t *testing.T) {
	y := newYard(t, stage.Options{})
	p := proposal(func(p *agentapi.Proposal) { p.IdempotencyKey = "k" })
	const callers = 160
	answers := make([]view.Detail, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			var err error
			if answers[i], err = y.local().Propose(y.Context(), p); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	first, again := answers[0].Job.Job, 0
	for _, a := range answers {
		if a.Job.Job != first {
			t.Errorf("jobs %s and %s", first, a.Job.Job)
		}
		if a.Existing {
			again++
		}
	}
	if n := y.Count("job.proposed", first); n != 1 || again != callers-1 {
		t.Errorf("stored %d times, %d answers say that it was there", n, again)
	}
	if j := y.Job(first); j.Tainted {
		t.Errorf("%+v", j)
	}

	other := proposal(func(p *agentapi.Proposal) { p.IdempotencyKey, p.Cwd = "k", "/other" })
	_, err := y.local().Propose(y.Context(), other)
	if e := refused(t, err, "idempotency_conflict", 409); !strings.Contains(e.Message, first) || strings.Contains(e.Message, "/other") {
		t.Error(e.Message)
	}
	if got, err := y.as("agent.other").Propose(y.Context(), other); err != nil || got.Job.Job == first || got.Existing {
		t.Errorf("another agent's key: %+v, %v", got, err)
	}
}

func TestOwnJobsOnly(t *testing.T) {
	y := newYard(t, stage.Options{})
	mine, err := y.local().Propose(y.Context(), proposal())
	stage.Must(t, err)
	id := mine.Job.Job
	if got, err := y.local().Job(y.Context(), id, 0, 0); err != nil || got.Job.Job != id {
		t.Errorf("%+v, %v", got, err)
	}
	none := func(agentapi.Chunk) error { t.Error("output was shown"); return nil }
	for _, c := range []struct{ token, id string }{
		{"agent.other", id}, {"person." + stage.Person, id}, {"agent.local", "nothing"}, {"agent.local", "*"}, {"agent.local", ">"}, {"agent.local", id + ".>"},
		{"agent.local", "a b"}, {"agent.local", "."},
	} {
		_, err := y.as(c.token).Job(y.Context(), c.id, 0, time.Minute)
		if c.id != "." { // a dot never arrives as an id
			refused(t, err, "unknown_job", 404)
			_, err = y.as(c.token).Output(y.Context(), c.id, 1, 0, none)
			refused(t, err, "unknown_job", 404)
		} else if err == nil {
			t.Error("a dot is a job")
		}
	}
	if _, err := y.local().Propose(y.Context(), proposal()); err != nil {
		t.Errorf("the door is shut after all this: %v", err)
	}
}

func TestNumbersOfQuestions(t *testing.T) {
	y := newYard(t, stage.Options{})
	mine, err := y.local().Propose(y.Context(), proposal())
	stage.Must(t, err)
	for _, q := range []string{"?after=x", "?after=-1", "?wait_ms=1e3", "/output?attempt=x", "/output?from=-1"} {
		if status, e, text := y.raw("GET", "/v1/jobs/"+mine.Job.Job+q, "Bearer "+y.tokens["agent.local"], nil); status != 400 || e.Code != "bad_request" {
			t.Errorf("%s: %d %s", q, status, text)
		}
	}
	// More than the longest wait is the longest wait, not none.
	ctx, cancel := context.WithTimeout(y.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := y.local().Job(ctx, mine.Job.Job, mine.LastSeq, 1<<62); ctx.Err() == nil {
		t.Errorf("it did not wait: %v", err)
	}
}

func TestWaitingForAJobToMove(t *testing.T) {
	y := newYard(t, stage.Options{})
	mine, err := y.local().Propose(y.Context(), proposal())
	stage.Must(t, err)
	id := mine.Job.Job
	if got, err := y.local().Job(y.Context(), id, 0, time.Minute); err != nil || got.LastSeq != mine.LastSeq {
		t.Errorf("what has moved already: %+v, %v", got, err)
	}
	answers := make(chan view.Detail)
	for range 3 {
		go func() {
			got, err := y.local().Job(y.Context(), id, mine.LastSeq, 40*time.Second)
			if err != nil {
				t.Error(err)
			}
			answers <- got
		}()
	}
	seq := y.Resolve(id, "/usr/bin/make")
	for range 3 {
		if got := <-answers; got.LastSeq != seq || got.Resolution == nil {
			t.Errorf("%+v", got)
		}
	}
	if got, err := y.local().Job(y.Context(), id, seq, time.Millisecond); err != nil || got.LastSeq != seq {
		t.Errorf("after the wait is over: %+v, %v", got, err)
	}
}

func TestApprovedSaysWhatItWaitsFor(t *testing.T) {
	y := newYard(t, stage.Options{})
	mine, err := y.local().Propose(y.Context(), proposal())
	stage.Must(t, err)
	id := mine.Job.Job
	y.Resolve(id, "/usr/bin/make")
	j := y.Job(id)
	y.Say("gate", "job.approved", "default", id, j.LastSeq, &events.JobApproved{
		Proposal: j.ProposalDigest, Resolution: j.ResolutionDigest, Policy: "policy", Basis: "policy", ValidS: 60, MaxAttempts: 1, Ruling: events.Ruling{Code: "rule", Reason: "a test"},
	})
	if got, err := y.local().Job(y.Context(), id, 0, 0); err != nil || !strings.Contains(got.Waiting, "the auditor does not answer") {
		t.Errorf("%q, %v", got.Waiting, err)
	}
	y.auditor()
	if got, err := y.local().Job(y.Context(), id, 0, 0); err != nil || !strings.HasPrefix(got.Waiting, "seal since 2") || strings.Contains(got.Waiting, "answer") {
		t.Errorf("%q, %v", got.Waiting, err)
	}
}

func TestOutputIsFollowedInOrder(t *testing.T) {
	y := newYard(t, stage.Options{})
	mine, err := y.local().Propose(y.Context(), proposal())
	stage.Must(t, err)
	id := mine.Job.Job
	started := y.start(id)
	y.prints(id, 1, "stdout", "one")
	y.prints(id, 2, "stderr", "two")
	seen, done := make(chan agentapi.Chunk, 16), make(chan error, 1)
	go func() {
		next, err := y.local().Output(y.Context(), id, 1, 0, func(c agentapi.Chunk) error { seen <- c; return nil })
		if next != 5 {
			t.Errorf("the next chunk is %d", next)
		}
		done <- err
	}()
	wants := func(n int, stream, text string) {
		t.Helper()
		select {
		case c := <-seen:
			if c.N != n || c.Stream != stream || string(c.Data) != text || c.AtMS != int64(n) {
				t.Errorf("%+v, want %d %s %s", c, n, stream, text)
			}
		case <-time.After(stage.Patience):
			t.Fatalf("chunk %d did not come", n)
		}
	}
	wants(1, "stdout", "one")
	wants(2, "stderr", "two")
	y.prints(id, 3, "stdout", "\x00\xff") // while it is followed
	wants(3, "stdout", "\x00\xff")
	y.prints(id, 4, "stdout", "last")
	y.Say("worker", "job.finished", "default", id, started, &events.JobFinished{Started: started, Outcome: "succeeded"})
	wants(4, "stdout", "last")
	if err := <-done; err != nil {
		t.Error(err)
	}
	var rest []int
	if next, err := y.local().Output(y.Context(), id, 1, 3, func(c agentapi.Chunk) error { rest = append(rest, c.N); return nil }); err != nil || next != 5 || !slices.Equal(rest, []int{3, 4}) {
		t.Errorf("from 3: %v, next %d, %v", rest, next, err)
	}
	if next, err := y.local().Output(y.Context(), id, 2, 0, func(agentapi.Chunk) error { return nil }); err != nil || next != 0 {
		t.Errorf("of an attempt that never was: %d, %v", next, err)
	}
}

// A proposer that goes ends what waits, and never makes half an output look
// like a whole one.
func TestDrainingWhileRequestsWait(t *testing.T) {
	y := newYard(t, stage.Options{})
	waiting, err := y.local().Propose(y.Context(), proposal())
	stage.Must(t, err)
	running, err := y.local().Propose(y.Context(), proposal())
	stage.Must(t, err)
	y.start(running.Job.Job)
	y.prints(running.Job.Job, 1, "stdout", "x")
	type result struct {
		what string
		err  error
	}
	results, streaming := make(chan result, 2), make(chan struct{})
	go func() {
		got, err := y.local().Job(y.Context(), waiting.Job.Job, waiting.LastSeq, 50*time.Second)
		if err == nil && got.LastSeq != waiting.LastSeq {
			err = fmt.Errorf("moved to %d", got.LastSeq)
		}
		results <- result{"job", err}
	}()
	go func() {
		_, err := y.local().Output(y.Context(), running.Job.Job, 1, 0, func(agentapi.Chunk) error { close(streaming); return nil })
		results <- result{"output", err}
	}()
	<-streaming
	stage.Must(t, y.stop())
	for range 2 {
		r := <-results
		if r.what == "output" && r.err == nil {
			t.Error("the output looks complete")
		}
		if r.what == "job" && r.err != nil {
			refused(t, r.err, "proposer_away", 0) // it had not arrived yet
		}
	}
	_, err = y.local().Propose(y.Context(), proposal())
	if e := refused(t, err, "proposer_away", 0); !strings.Contains(e.Message, y.Layout.ProposerSocket()) {
		t.Error(e)
	}
}

func TestDeniedAtOnce(t *testing.T) {
	y := newYard(t, stage.Options{})
	asked := make(chan query.AssessRequest, 1)
	y.gate("deny", func(q query.AssessRequest) { asked <- q })
	go func() {
		q := <-asked
		jobs, err := y.Conn("reader").Read(y.Context(), 1, "bm.job.>", 1)
		if err != nil || len(jobs) != 1 || q.Proposer != "agent:local" || !slices.Equal(q.EnvNames, []string{"A", "B"}) {
			t.Errorf("%+v, %v", q, err)
			return
		}
		s, err := events.ParseSubject(jobs[0].Subject)
		stage.Must(t, err)
		y.Say("gate", "job.denied", "default", s.ID, jobs[0].Seq, &events.JobDenied{Proposal: events.Digest(jobs[0].Data), Basis: "policy", Ruling: events.Ruling{Rule: "r", Code: "rule", Reason: "a test"}})
	}()
	got, err := y.local().Propose(y.Context(), proposal(func(p *agentapi.Proposal) { p.Env = map[string]string{"B": "x1", "A": "x2"} }))
	if err != nil || got.Status != lifecycle.Denied || got.Ruling.Reason != "a test" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestNotDeniedIsAnsweredAtOnce(t *testing.T) {
	y := newYard(t, stage.Options{})
	y.gate("ask", nil)
	if got, err := y.local().Propose(y.Context(), proposal()); err != nil || got.Status != lifecycle.Proposed {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAssess(t *testing.T) {
	y := newYard(t, stage.Options{})
	if _, err := y.local().Assess(y.Context(), proposal()); err == nil || !strings.Contains(err.Error(), "ask the gate") {
		t.Errorf("without a gate: %v", err)
	}
	y.gate("ask", nil)
	if got, err := y.local().Assess(y.Context(), proposal()); err != nil || got.Verdict != "ask" || got.Rule != "r" {
		t.Errorf("%+v, %v", got, err)
	}
	_, err := y.local().Assess(y.Context(), proposal(argument("\x1b")))
	refused(t, err, "control_character", 422)
	if y.Last("bm.job.>") != 0 {
		t.Error("an assessment was stored")
	}
}

// Above 80 % of the stream's bound no proposals are taken; what was begun still
// ends.
func TestNearlyFullStream(t *testing.T) {
	y := newYard(t, stage.Options{MaxBytes: 96 << 10})
	y.auditor()
	big := proposal(argument(strings.Repeat("so it is ", 1200)))
	var first view.Detail
	for i := 0; ; i++ {
		got, err := y.local().Propose(y.Context(), big)
		if err != nil {
			e := refused(t, err, "stream_full", 507)
			state, err := y.Conn("auditor").StreamState(y.Context())
			stage.Must(t, err)
			if i == 0 || e.Next == "" || int64(state.Bytes) < state.MaxBytes/2 {
				t.Errorf("refused after %d with %d of %d bytes: %s", i, state.Bytes, state.MaxBytes, e.Message)
			}
			break
		}
		first = got
		if i > 20 {
			t.Fatal("it is never full")
		}
	}
	y.Say(stage.Person, "job.denied", "default", first.Job.Job, first.LastSeq, &events.JobDenied{Proposal: first.ProposalDigest, Basis: "person", Ruling: events.Ruling{Code: "person", Reason: "no"}})
}
