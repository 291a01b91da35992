package person

import (
	"context"
	"fmt"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/texts"
)

// CodeNoText is the code of an order to erase what is not there.
const CodeNoText = "unknown_text"

// Erase orders that a kept text be deleted for good. The auditor deletes it once the
// order is under a signed head. Ordering it again changes nothing.
func (d *Desk) Erase(ctx context.Context, digest, reason, basis string) error {
	if err := fit("erase a text", reason); err != nil {
		return err
	}
	subject := events.For("text.erased", events.SiteScope, digest, d.Config.ActorName)
	if err := subject.Valid(); err != nil {
		return refuse(CodeNoText, "list the texts of a job with 'banksman text ls JOB'", "erase text %s: that is no digest", digest)
	}
	return d.say(ctx, func() (words, error) {
		erased, err := texts.Reader{Bus: d.Bus, Standing: d.Standing}.Erased(ctx, digest)
		if err != nil || erased {
			return words{}, err
		}
		if _, found, err := d.Bus.Text(ctx, digest); err != nil {
			return words{}, err
		} else if !found {
			return words{}, refuse(CodeNoText, "list the texts of a job with 'banksman text ls JOB'", "erase text %s: none is kept under this digest", digest)
		}
		last, _, err := d.Bus.Last(ctx, subject.Filter())
		if err != nil {
			return words{}, fmt.Errorf("read what was ordered about text %s: %w", digest, err)
		}
		return words{subject, last.Seq, events.TextErased{Reason: reason, Basis: basis}}, nil
	})
}
