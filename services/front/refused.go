package front

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
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
}

// listRefused lists the newest refusals, newest first.
func (a *app) listRefused(ctx context.Context, limit int) error {
	c, l, s, err := a.reader(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	st := host.NewStanding(c, s, l)
	if err := st.Refresh(ctx); err != nil {
		return err
	}
	kept := []refusedView{}
	filter := events.PrefixStored + ".proposal." + events.SiteScope + ".*.refused.*"
	for next := uint64(1); ; {
		page, err := c.Read(ctx, next, filter, 256)
		if err != nil {
			return err
		}
		if len(page) == 0 {
			break
		}
		for _, stored := range page {
			next = stored.Seq + 1
			e, err := st.Book().Open(stored)
			if p, ok := e.Payload.(*events.ProposalRefused); ok && err == nil {
				kept = append(kept, viewRefused(e, p))
			}
		}
		kept = kept[max(0, len(kept)-limit):] // memory stays bounded by the limit
	}
	list := make([]refusedView, 0, len(kept))
	for i := range kept {
		list = append(list, kept[len(kept)-1-i])
	}
	return a.print(map[string][]refusedView{"refused": list}, func(w io.Writer) { refusedTable(w, list) })
}

func viewRefused(e events.Event, p *events.ProposalRefused) refusedView {
	v := refusedView{At: e.Time.UTC(), Code: p.Code, Digest: p.Digest, Count: p.Count, WindowS: p.WindowS, Proposer: "unknown"}
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
		rows = append(rows, []string{v.At.Format(time.RFC3339), view.Printable(v.Proposer), view.Printable(v.Code), count, v.Digest[:min(len(v.Digest), 16)]})
	}
	table(w, []string{"WHEN", "PROPOSER", "CODE", "COUNT", "DIGEST"}, rows)
}
