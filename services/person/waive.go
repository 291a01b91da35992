package person

import (
	"context"
	"strings"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/texts"
)

// Codes of refusals about waivers.
const (
	CodeNoRefusal = "unknown_refusal"
	CodeAmbiguous = "ambiguous"
	CodeOwnWaiver = "own_waiver"
)

// Refused is a refusal that a person may waive.
type Refused struct {
	Content  string          `json:"content"`
	Proposer events.Proposer `json:"proposer"`
	Where    string          `json:"where"`
	Seq      uint64          `json:"refused"`
}

// Waive says that what looked like a secret in a refused proposal is none: exactly
// this proposal, which a prefix of its digest names, passes once within so many
// seconds. A waiver that counts already is not said again.
func (d *Desk) Waive(ctx context.Context, prefix, reason string, valid_s int) (Refused, error) {
	if err := fit("waive "+prefix, reason); err != nil {
		return Refused{}, err
	}
	if valid_s < 1 || valid_s > maxWaiver_s {
		return Refused{}, refuse(CodeBadText, "", "waive %s: it must count for 1 to %d s", prefix, maxWaiver_s)
	}
	found, err := d.refused(ctx, prefix)
	if err != nil {
		return found, err
	}
	if found.Proposer == (events.Proposer{Kind: "person", ID: d.Config.ActorName}) {
		return found, refuse(CodeOwnWaiver, "ask another person", "waive %.16s: you proposed it yourself", found.Content)
	}
	keep := texts.Once(ctx, d.Bus, reason)
	return found, d.say(ctx, func() (words, error) {
		w, last, err := d.asks().Waiver(ctx, found.Content, found.Proposer, time.Now())
		if err != nil || w != nil {
			return words{}, err
		}
		ref, err := keep()
		if err != nil {
			return words{}, err
		}
		payload := events.AskWaived{Refused: found.Seq, Proposer: found.Proposer, Reason: ref, ValidS: valid_s}
		return words{events.For("ask.waived", events.SiteScope, found.Content, d.Config.ActorName), last, payload}, nil
	})
}

// maxWaiver_s bounds how long a waiver counts.
const maxWaiver_s = 86400

// refused finds the newest refusal whose content's digest begins with a prefix.
func (d *Desk) refused(ctx context.Context, prefix string) (Refused, error) {
	if len(prefix) < events.MinDigestDigits {
		return Refused{}, refuse(CodeNoRefusal, "take the digest from 'banksman ls --refused' or from the refusal itself", "waive %q: at least %d digits are needed", prefix, events.MinDigestDigits)
	}
	var found Refused
	several := false
	err := d.asks().Refused(ctx, func(e events.Event, p *events.ProposalRefused) {
		if !events.NamesDigest(p.Content, prefix) {
			return
		}
		several = several || found.Content != "" && found.Content != p.Content
		found = Refused{Content: p.Content, Proposer: p.Proposer, Where: p.Where, Seq: e.Seq}
	})
	switch {
	case err != nil:
		return Refused{}, err
	case found.Content == "":
		return Refused{}, refuse(CodeNoRefusal, "list them with 'banksman ls --refused'; let it be proposed again if it is not on record", "waive %s: no refusal of a secret has this digest", strings.ToLower(prefix))
	case several:
		return Refused{}, refuse(CodeAmbiguous, "give more digits", "waive %s: several refusals begin so", prefix)
	}
	return found, nil
}
