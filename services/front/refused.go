package front

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/asks"
	"github.com/banksman/banksman/services/internal/view"
)

// refusedView is a refusal, or a sum of them, as it was recorded.
type refusedView struct {
	At       time.Time `json:"at"`
	Proposer string    `json:"proposer"`
	Code     string    `json:"code"`
	Digest   string    `json:"digest,omitempty"`
	Count    int       `json:"count"`
	WindowS  int       `json:"window_s,omitzero"`
	Content  string    `json:"content,omitempty"` // what a waiver names
	Where    string    `json:"where,omitempty"`
}

// listRefused lists the newest refusals, newest first.
func (a *app) listRefused(ctx context.Context, limit int) error {
	c, l, s, err := a.reader(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	kept := []refusedView{}
	err = asks.Reader{Bus: c, Standing: host.NewStanding(c, s, l)}.Refused(ctx, func(e events.Event, p *events.ProposalRefused) {
		kept = append(kept, viewRefused(e, p))
		if len(kept) >= 2*max(limit, 1) { // memory stays bounded by the limit
			kept = append(kept[:0], kept[len(kept)-limit:]...)
		}
	})
	if err != nil {
		return err
	}
	kept = kept[max(0, len(kept)-limit):]
	list := make([]refusedView, 0, len(kept))
	for i := range kept {
		list = append(list, kept[len(kept)-1-i])
	}
	return a.print(map[string][]refusedView{"refused": list}, func(w io.Writer) { refusedTable(w, list) })
}

func viewRefused(e events.Event, p *events.ProposalRefused) refusedView {
	v := refusedView{At: e.Time.UTC(), Code: p.Code, Digest: p.Digest, Count: p.Count, WindowS: p.WindowS, Content: p.Content, Where: p.Where, Proposer: "unknown"}
	if p.Proposer != (events.Proposer{}) {
		v.Proposer = p.Proposer.String()
	}
	return v
}

func refusedTable(w io.Writer, list []refusedView) {
	if len(list) == 0 {
		fmt.Fprintln(w, "nothing was refused")
		return
	}
	var rows [][]string
	for _, v := range list {
		count := fmt.Sprint(v.Count)
		if v.WindowS > 0 {
			count += fmt.Sprintf(" in %d s", v.WindowS)
		}
		digest := v.Digest
		if v.Content != "" {
			digest = v.Content // what 'banksman waive' wants
		}
		rows = append(rows, []string{v.At.Format(time.RFC3339), view.Printable(v.Proposer), view.Printable(v.Code), count, digest[:min(len(digest), 16)], view.Printable(v.Where)})
	}
	table(w, []string{"WHEN", "PROPOSER", "CODE", "COUNT", "DIGEST", "WHERE"}, rows)
}
