package proposer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/asks"
	"github.com/banksman/banksman/services/internal/redact"
)

// instead is what whoever proposes a secret does in its place.
const instead = "name a secret that the worker holds, as in --env PASSWORD=secret:NAME, or let the command read a file; if it is no secret, a person may let exactly this proposal pass once: banksman waive %.16s --reason TEXT"

// codeSecret is the code of a refusal that a person may waive.
const codeSecret = "secret"

// secrets refuses a proposal that shows one: a proposal is stored for ever and
// shown to people, so a secret has no place in it. The refusal says where and by
// which rule, never what.
func secrets(d *redact.Detector, p *events.JobProposed) error {
	where := suspect(d, p)
	if where == "" {
		return nil
	}
	content, err := contentOf(p)
	if err != nil {
		return err
	}
	e := refuse(codeSecret, fmt.Sprintf(instead, content), "%s", where).(*agentapi.Error)
	e.Content, e.Where = content, where
	return e
}

// contentOf is the digest of a proposal without a waiver and with its reason in full,
// which the log knows it by when it is refused.
func contentOf(p *events.JobProposed) (string, error) {
	bare := *p
	bare.Waived = 0
	data, err := events.Encode(bare)
	return events.Digest(data), err
}

// suspect names the first part that looks like a secret, and the rule.
func suspect(d *redact.Detector, p *events.JobProposed) string {
	shown := func(place, rule string) string {
		return fmt.Sprintf("%s looks like it holds a secret (%s)", place, rule)
	}
	if i, rule := d.Argv(p.Argv); rule != "" {
		return shown(fmt.Sprintf("argument %d", i), rule)
	}
	for place, text := range places(p) {
		if rule := d.Text(text); rule != "" {
			return shown(place, rule)
		}
	}
	for kind, m := range map[string]map[string]string{"environment variable": p.Env, "label": p.Labels} {
		for i, name := range slices.Sorted(maps.Keys(m)) {
			if rule := d.Pair(name, m[name]); rule != "" {
				return shown(fmt.Sprintf("the value of %s %d", kind, i), rule)
			}
		}
	}
	return ""
}

// waived lets a proposal pass that was refused as holding a secret, where a person
// has said that it holds none. The proposal then names that word, and its id comes
// from it, so that it makes one job however often it is sent.
func (d *door) waived(ctx context.Context, p *events.JobProposed, refusal error) error {
	var e *agentapi.Error
	if !errors.As(refusal, &e) || e.Code != codeSecret {
		return refusal
	}
	reader := asks.Reader{Bus: d.env.Bus, Standing: d.env.Standing}
	w, _, err := reader.Waiver(ctx, e.Content, p.Proposer, time.Now())
	if err != nil {
		return err
	}
	if w == nil {
		return refusal
	}
	p.Waived = w.Seq
	return nil
}
