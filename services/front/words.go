package front

import (
	"context"
	"slices"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/host"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/texts"
)

// fill puts the words of people, which are kept beside the stream, back where they are
// shown.
func (a *app) fill(ctx context.Context, c *bus.Conn, places ...*string) error {
	if !slices.ContainsFunc(places, func(p *string) bool { return events.LooksLikeText(*p) }) {
		return nil
	}
	l, s, err := a.site()
	if err != nil {
		return err
	}
	return texts.Reader{Bus: c, Standing: host.NewStanding(c, s, l)}.Fill(ctx, places...)
}
