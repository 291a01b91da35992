package lab

import (
	"context"
	"fmt"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/jobs"
	"github.com/banksman/banksman/services/internal/keys"
	"github.com/banksman/banksman/services/internal/trust"
)

// Observer reads a site's stream as an outsider does, who knows the root's
// public key and has the reader's log-in, and folds what it finds believable.
type Observer struct {
	site *Site
	conn *bus.Conn
	book *trust.Book
	seen []events.ID // of every event, by sequence from 1

	// Jobs are all jobs of the stream, folded, by id.
	Jobs map[string]lifecycle.Job
	// Faults are events that nobody should have stored, and gaps.
	Faults []string
}

// Observe connects an observer to a site whose bus runs.
func (s *Site) Observe() *Observer {
	s.t.Helper()
	login, err := keys.LoadLogin(s.layout().LoginKey("reader"))
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(s.t.Context(), Patience)
	defer cancel()
	origin := s.Setting("site", "origin")
	conn, err := bus.Connect(ctx, bus.Config{
		URL: s.Setting("site", "bus_url"), CAFile: s.layout().CA(), Actor: "reader", Role: events.RoleReader,
		Origin: origin, Login: login, Name: "observer",
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(conn.Close)
	book := trust.New(origin, keys.PublicKey(s.Setting("site", "root_key")))
	return &Observer{site: s, conn: conn, book: book, Jobs: map[string]lifecycle.Job{}}
}

// readFor bounds one look at a bus that may be away.
const readFor = 2 * time.Second

// Read takes in what the stream has stored since the last time. It returns
// false when the bus is away.
func (o *Observer) Read() bool {
	o.site.t.Helper()
	ctx, cancel := context.WithTimeout(o.site.t.Context(), readFor)
	defer cancel()
	for {
		page, err := o.conn.Read(ctx, uint64(len(o.seen))+1, events.PrefixStored+".>", 500)
		if err != nil {
			if ctx.Err() == nil {
				o.site.t.Fatalf("read the stream: %v", err)
			}
			return false
		}
		if len(page) == 0 {
			return true
		}
		for _, st := range page {
			o.take(st)
		}
	}
}

// take folds one event.
func (o *Observer) take(st events.Stored) {
	for missing := uint64(len(o.seen)) + 1; missing < st.Seq; missing++ {
		o.fault("event %d is missing", missing)
		o.seen = append(o.seen, events.ID{})
	}
	e, err := o.book.Open(st)
	o.seen = append(o.seen, e.ID)
	if err != nil {
		o.fault("event %d, %s: %v", st.Seq, st.Subject, err)
	}
	switch p := e.Payload.(type) {
	case *events.AuditViolationFound:
		o.fault("the auditor says of event %d: %s: %s", p.Seq, p.Code, p.Detail)
	case *events.AuditGapFound:
		o.fault("the auditor misses events %d to %d", p.From, p.To)
	}
	if s, bad := events.ParseSubject(st.Subject); bad == nil && s.Family == "job" {
		j, finding := jobs.ApplyOpened(o.Jobs[s.ID], e, st.Seq, err)
		o.Jobs[s.ID] = j
		if finding != nil {
			o.fault("event %d moves job %s illegally: %s: %s", st.Seq, s.ID, finding.Code, finding.Detail)
		}
	}
}

func (o *Observer) fault(format string, args ...any) {
	o.Faults = append(o.Faults, fmt.Sprintf(format, args...))
}

// Named returns the jobs of a name.
func (o *Observer) Named(name string) []lifecycle.Job {
	var out []lifecycle.Job
	for _, j := range o.Jobs {
		if nameOf(j) == name {
			out = append(out, j)
		}
	}
	return out
}

// Job returns the one job of a name, the zero job while there is none.
func (o *Observer) Job(name string) lifecycle.Job {
	o.site.t.Helper()
	all := o.Named(name)
	switch len(all) {
	case 0:
		return lifecycle.Job{}
	case 1:
		return all[0]
	}
	o.site.t.Fatalf("%d jobs have the name %s", len(all), name)
	return lifecycle.Job{}
}

func nameOf(j lifecycle.Job) string {
	if j.Proposal == nil || len(j.Proposal.Argv) < 2 {
		return ""
	}
	return j.Proposal.Argv[1]
}

// Await waits until the job of a name has a status.
func (o *Observer) Await(name string, want lifecycle.Status) lifecycle.Job {
	o.site.t.Helper()
	o.Eventually(fmt.Sprintf("job %s to be %s", name, want), func() bool { return o.Job(name).Status == want })
	return o.Job(name)
}

// AwaitFinal waits until so many jobs are in a final state.
func (o *Observer) AwaitFinal(n int) {
	o.site.t.Helper()
	o.Eventually(fmt.Sprintf("%d jobs in a final state", n), func() bool { return o.Final() >= n })
}

// Final is how many jobs are in a final state.
func (o *Observer) Final() int {
	n := 0
	for _, j := range o.Jobs {
		if j.Status.Final() {
			n++
		}
	}
	return n
}

// Eventually waits until the stream says something. On giving up it names the
// jobs that are not in a final state.
func (o *Observer) Eventually(what string, holds func() bool) {
	o.site.t.Helper()
	if Within(2*Patience, func() bool { return o.Read() && holds() }) {
		return
	}
	for _, j := range o.Jobs {
		if !j.Status.Final() {
			o.site.t.Logf("job %s (%s) is %s, unresolved %v, %d approvals, %d attempts, last event %d at %s",
				nameOf(j), j.ID, j.Status, j.Unresolved, len(j.Approvals), len(j.Attempts), j.LastSeq, j.UpdatedAt.Format(time.TimeOnly))
		}
	}
	o.site.t.Fatalf("gave up waiting: %s; faults so far: %q", what, o.Faults)
}
