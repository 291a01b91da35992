package asks

import (
	"context"
	"fmt"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/trust"
)

// Bus is the part of the bus that is asked.
type Bus interface {
	Last(ctx context.Context, filter string) (events.Stored, bool, error)
	Read(ctx context.Context, from uint64, filter string, limit int) ([]events.Stored, error)
}

// Standing is what is in force; *standing.Standing is the one.
type Standing interface {
	Refresh(ctx context.Context) error
	Book() *trust.Book
}

// Reader reads what was said.
type Reader struct {
	Bus      Bus
	Standing Standing
}

// pageEvents is how many events are asked for at once. Nobody has a reason to
// say more than that about one job, and who does is read page by page.
const pageEvents = 64

// each opens every believable event under an id, in order. Last is the sequence
// that the next one has to follow.
func (r Reader) each(ctx context.Context, id string, visit func(events.Event)) (last uint64, err error) {
	filter := events.Filter("ask", id)
	for next := uint64(1); ; {
		page, err := r.Bus.Read(ctx, next, filter, pageEvents)
		if err != nil {
			return 0, fmt.Errorf("read what was asked about %s: %w", id, err)
		}
		if len(page) == 0 {
			return last, nil
		}
		if err := r.Standing.Refresh(ctx); err != nil {
			return 0, err
		}
		for _, st := range page {
			if e, err := r.Standing.Book().Open(st); err == nil {
				visit(e)
			}
			last, next = st.Seq, st.Seq+1
		}
	}
}

// Requests are the requests about a job by those who may make them, in order.
func (r Reader) Requests(ctx context.Context, j lifecycle.Job) (list []lifecycle.Request, last uint64, err error) {
	last, err = r.each(ctx, j.ID, func(e events.Event) {
		if q, ok := lifecycle.Asked(j, e); ok {
			list = append(list, q)
		}
	})
	return list, last, err
}

// Comment is a remark about a job.
type Comment struct {
	By   string    `json:"by"`
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// Comments are the remarks about a job, in order.
func (r Reader) Comments(ctx context.Context, job string) (list []Comment, last uint64, err error) {
	last, err = r.each(ctx, job, func(e events.Event) {
		if p, ok := e.Payload.(*events.AskCommented); ok {
			list = append(list, Comment{By: e.Subject.Actor, At: e.Time.UTC(), Text: p.Text})
		}
	})
	return list, last, err
}

// Bar is a denial that sticks.
type Bar struct {
	Content string
	By      string
	Job     string // the job that was denied
	Reason  string
	Seq     uint64
	At      time.Time
}

// Bar returns the bar in force for a content, nil when there is none. Proposer
// is whom it bars; last is the sequence that a new bar, or the lifting of this
// one, has to follow.
func (r Reader) Bar(ctx context.Context, content string, proposer events.Proposer) (b *Bar, last uint64, err error) {
	// Hardly any content was ever denied, so the usual answer costs one question.
	if _, found, err := r.Bus.Last(ctx, events.Filter("ask", content)); err != nil || !found {
		return nil, 0, err
	}
	last, err = r.each(ctx, content, func(e events.Event) {
		switch p := e.Payload.(type) {
		case *events.AskBarred:
			b = &Bar{Content: content, By: e.Subject.Actor, Job: p.Job, Reason: p.Reason, Seq: e.Seq, At: e.Time}
		case *events.AskUnbarred:
			own := proposer == events.Proposer{Kind: "person", ID: e.Subject.Actor}
			if b != nil && p.Barred == b.Seq && !own {
				b = nil
			}
		}
	})
	return b, last, err
}

// Waiver is a person's word that what looks like a secret in a proposal is none.
type Waiver struct {
	By     string
	Reason string
	Seq    uint64
	Until  time.Time
}

// Waiver returns the first waiver that counts at a moment for a proposal of this
// digest, nil when there is none; last is the sequence that a new one has to
// follow. Nobody waives for oneself.
func (r Reader) Waiver(ctx context.Context, content string, proposer events.Proposer, now time.Time) (w *Waiver, last uint64, err error) {
	last, err = r.each(ctx, content, func(e events.Event) {
		p, ok := e.Payload.(*events.AskWaived)
		if !ok || w != nil || p.Proposer != proposer || proposer == (events.Proposer{Kind: "person", ID: e.Subject.Actor}) {
			return
		}
		if until := e.Time.Add(time.Duration(p.ValidS) * time.Second); now.Before(until) {
			w = &Waiver{By: e.Subject.Actor, Reason: p.Reason, Seq: e.Seq, Until: until}
		}
	})
	return w, last, err
}

// ContentOf is the content of a job's proposal.
func ContentOf(j lifecycle.Job) string {
	return events.Content(j.Proposal.Proposer, j.Proposal.Argv, j.Proposal.Cwd)
}
