package proposer

import (
	"fmt"
	"maps"
	"slices"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/redact"
)

// instead is what whoever proposes a secret does in its place.
const instead = "name a secret that the worker holds, as in --env PASSWORD=secret:NAME, or let the command read a file"

// secrets refuses a proposal that shows one: a proposal is stored for ever and
// shown to people, so a secret has no place in it. The refusal says where and by
// which rule, never what.
func secrets(d *redact.Detector, p *events.JobProposed) error {
	shown := func(place, rule string) error {
		return refuse("secret", instead, "%s looks like it holds a secret (%s)", place, rule)
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
	return nil
}
