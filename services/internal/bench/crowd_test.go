package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/index"
	"github.com/banksman/banksman/services/internal/lab"
	"github.com/banksman/banksman/services/internal/site"
)

// Sizes of the crowd behind the verbs, and how often each verb is tried on either site.
const (
	crowd      = 100_000
	soakCrowd  = 1_000_000
	handful    = 300 // jobs of the other site, so that its lists are as long
	crowdCalls = 21
	mostSlower = 1.2 // times that of the other site
)

// crowdSize is how many finished jobs there are; BANKSMAN_BENCH_JOBS names another number.
func crowdSize(t *testing.T) int {
	t.Helper()
	text := os.Getenv("BANKSMAN_BENCH_JOBS")
	if text == "" {
		return crowd
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("BANKSMAN_BENCH_JOBS: %v", err)
	}
	return n
}

// crowded measures verbs and the start of the roles on a site that many finished jobs
// lie behind, beside one with a handful.
func (r *run) crowded() {
	r.t.Run("crowd", func(t *testing.T) {
		n := crowdSize(t)
		for _, c := range compareCrowd(t, r.site, n) {
			r.add(figure{
				What: fmt.Sprintf("%s, %d finished jobs behind", c.what, n), Value: inMS(c.full), Unit: milliseconds, Floor: inMS(c.few), Of: fmt.Sprintf("with %d", handful),
				Ratio: c.ratio(), Goal: fmt.Sprintf("<= %.1f", mostSlower), Met: c.ratio() <= mostSlower,
			})
		}
	})
}

// TestCrowd holds the same comparison against its goal, with a million finished jobs.
func TestCrowd(t *testing.T) {
	if os.Getenv("BANKSMAN_SOAK") == "" {
		t.Skip("make soak runs it; package index tries the same with fewer jobs")
	}
	bin, err := lab.BuildPlain(t.TempDir(), "cmd/banksman")
	if err != nil {
		t.Fatal(err)
	}
	site := func(t *testing.T) *lab.Site { return lab.NewSite(t, bin) }
	for _, c := range compareCrowd(t, site, soakCrowd) {
		t.Logf("%s: %v, %v with few jobs", c.what, c.full, c.few)
		if c.ratio() > mostSlower {
			t.Errorf("%s costs %v with %d finished jobs and %v with %d", c.what, c.full, soakCrowd, c.few, handful)
		}
	}
}

// compared is the processor time that one question costs on two sites.
type compared struct {
	what      string
	full, few time.Duration
}

func (c compared) ratio() float64 { return float64(c.full) / float64(c.few) }

// compareCrowd fills the index of one of two sites and asks both the same. The time is
// that of the processors, of the verb and of the roles together, since the clock on the wall
// counts what else the machine does.
func compareCrowd(t *testing.T, make func(*testing.T) *lab.Site, n int) []compared {
	t.Helper()
	full, few := make(t), make(t)
	for _, s := range []*lab.Site{full, few} {
		p := s.Up("--without", "worker")
		s.Must(0, "propose", "--", "/bin/echo", "waits") // for the inbox
		sealed(t, s, 1)
		if code := p.Stop(); code != 0 {
			t.Fatalf("up ended with %d", code)
		}
	}
	one := fill(t, site.Layout{Dir: full.Dir}.AuditIndex(), n)
	fill(t, site.Layout{Dir: few.Dir}.AuditIndex(), handful)
	fullUp, fullStart := started(t, full)
	fewUp, fewStart := started(t, few)
	out := []compared{{"start of up", fullStart, fewStart}}
	for _, verb := range [][]string{{"inbox"}, {"ls", "--status", "succeeded"}, {"ls"}, {"show", one}, {"status"}} {
		c := compared{what: fmt.Sprintf("banksman %v", verb)}
		// Turn by turn, so that both see the same machine.
		var a, b spread
		for range crowdCalls {
			a = append(a, costs(t, full, fullUp, verb))
			b = append(b, costs(t, few, fewUp, verb))
		}
		slices.Sort(a)
		slices.Sort(b)
		c.full, c.few = a.at(0.5), b.at(0.5)
		out = append(out, c)
	}
	return out
}

// started starts the roles and says what they have cost until they were ready, the best of
// three times.
func started(t *testing.T, s *lab.Site) (p *lab.Process, best time.Duration) {
	t.Helper()
	for i := range 3 {
		p = s.Up("--without", "worker")
		if took := exactCPU(t, p.Pid()); i == 0 || took < best {
			best = took
		}
		if i < 2 {
			p.Stop()
		}
	}
	return p, best
}

// costs runs a verb and says what it and the roles have spent.
func costs(t *testing.T, s *lab.Site, up *lab.Process, verb []string) time.Duration {
	t.Helper()
	before := exactCPU(t, up.Pid())
	cmd := s.Command(t.Context(), verb...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", verb, err, out)
	}
	return exactCPU(t, up.Pid()) - before + cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
}

// fill puts finished jobs into an index, through the package that roles use, and leaves
// its position where it was. It returns the id of one of them.
func fill(t *testing.T, path string, n int) string {
	t.Helper()
	x, err := index.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if why := x.Anew(); why != "" {
		t.Fatalf("the index of the site is not believed: %s", why)
	}
	at, err := x.Position()
	if err != nil {
		t.Fatal(err)
	}
	const batch = 5000
	var jobs []lifecycle.Job
	for i := range n {
		jobs = append(jobs, finishedJob(i))
		if len(jobs) == batch || i == n-1 {
			if err := x.Apply(index.Batch{Jobs: jobs, To: at}); err != nil {
				t.Fatal(err)
			}
			jobs = jobs[:0]
		}
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the index of %d jobs has %d MB in %s", n, info.Size()>>20, filepath.Base(path))
	return finishedJob(0).ID
}

// finishedJob is what the index holds of a job that succeeded. Its id is as good as random, so
// that it falls anywhere among the others.
func finishedJob(i int) lifecycle.Job {
	seq := uint64(1000 + 6*i)
	at := time.Unix(1_700_000_000+int64(i), 0).UTC()
	id := fmt.Sprintf("%08x-crowd", uint32(i)*2654435761)
	return lifecycle.Job{
		ID: id, Pool: "default", Status: lifecycle.Succeeded, ProposedSeq: seq, ProposedAt: at, LastSeq: seq + 5, UpdatedAt: at,
		ProposalDigest: events.Digest([]byte(id)),
		Proposal: &events.JobProposed{
			Argv: []string{"/bin/echo", id}, Cwd: "/", Pool: "default", TimeoutS: 60, MaxAttempts: 1, ExpiresS: 3600,
			Proposer: events.Proposer{Kind: "agent", ID: "local"},
		},
		Resolution: &events.JobResolved{Cwd: "/", Program: events.FileDigest{Path: "/usr/bin/echo", SHA256: events.Digest(nil), SizeBytes: 1}},
		Approvals:  []lifecycle.Approval{{Actor: "gate", Basis: "policy", Seq: seq + 2, At: at, Expires: at.Add(time.Hour), MaxAttempts: 1}},
		Attempts: []lifecycle.Attempt{{
			N: 1, Worker: "worker", Session: "0123456789abcdef0123", StartedSeq: seq + 4, StartedAt: at, EndedAt: at, EndedSeq: seq + 5,
			Result: &events.JobFinished{Started: seq + 4},
		}},
	}
}
