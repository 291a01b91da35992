package policy

import (
	"encoding/json/v2"
	"fmt"
	"slices"
)

// ChangeKind says how a policy differs from another one. The strings never change.
type ChangeKind string

// The kinds of changes.
const (
	// Added means that only the new policy has the rule.
	Added ChangeKind = "added"
	// Removed means that only the old policy has the rule.
	Removed ChangeKind = "removed"
	// Changed means that a key of the rule has another value, or that the mode has.
	Changed ChangeKind = "changed"
	// Moved means that the rule stands elsewhere among the others, which decides where
	// more than one of them matches.
	Moved ChangeKind = "moved"
)

// Change is one difference between two policies. Comments and line ends are none.
type Change struct {
	// Kind says how they differ.
	Kind ChangeKind `json:"kind"`
	// Rule is the id of the rule, "" for the policy as a whole.
	Rule string `json:"rule,omitempty"`
	// Key is the key that changed.
	Key string `json:"key,omitempty"`
	// Old and New are its values as they are written, "" where there is none.
	Old string `json:"old,omitempty"`
	New string `json:"new,omitempty"`
}

// String returns the change in one line.
func (c Change) String() string {
	name := "rule " + c.Rule
	if c.Rule == "" {
		name = "policy"
	}
	switch {
	case c.Key == "":
		return fmt.Sprintf("%-7s %s", c.Kind, name)
	case c.Old == "":
		return fmt.Sprintf("%-7s %s: %s = %s", c.Kind, name, c.Key, c.New)
	case c.New == "":
		return fmt.Sprintf("%-7s %s: %s, which was %s, is gone", c.Kind, name, c.Key, c.Old)
	}
	return fmt.Sprintf("%-7s %s: %s = %s, which was %s", c.Kind, name, c.Key, c.New, c.Old)
}

// Diff returns how the rules of the policy newer differ from those of older, in the
// order of newer, with the removed rules last.
func Diff(older, newer *Policy) []Change {
	older, newer = orNone(older), orNone(newer)
	var all []Change
	if older.shadow != newer.shadow {
		all = append(all, Change{Kind: Changed, Key: "mode", Old: older.mode(), New: newer.mode()})
	}
	before := map[string]*rule{}
	for _, r := range older.rules {
		before[r.id] = r
	}
	after := map[string]bool{}
	for _, r := range newer.rules {
		after[r.id] = true
	}
	stay := unmoved(older.rules, newer.rules)
	for _, r := range newer.rules {
		was, known := before[r.id]
		if !known {
			all = append(all, Change{Kind: Added, Rule: r.id, Key: "decision", New: r.decision.String()})
			continue
		}
		if !stay[r.id] {
			all = append(all, Change{Kind: Moved, Rule: r.id})
		}
		all = append(all, keyChanges(was, r)...)
	}
	for _, r := range older.rules {
		if !after[r.id] {
			all = append(all, Change{Kind: Removed, Rule: r.id})
		}
	}
	return all
}

func orNone(p *Policy) *Policy {
	if p == nil {
		return &Policy{}
	}
	return p
}

func (p *Policy) mode() string {
	if p.shadow {
		return "shadow"
	}
	return "enforce"
}

func keyChanges(older, newer *rule) []Change {
	var all []Change
	for _, key := range ruleKeys {
		was, is := written(older.values[key]), written(newer.values[key])
		if was != is {
			all = append(all, Change{Kind: Changed, Rule: newer.id, Key: key, Old: was, New: is})
		}
	}
	return all
}

// written shows a value; the JSON of what a policy can hold reads like its TOML.
func written(v any) string {
	if v == nil {
		return ""
	}
	text, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}

// unmoved returns the rules that kept their order: the longest series that both hold.
func unmoved(older, newer []*rule) map[string]bool {
	place := map[string]int{}
	for i, r := range older {
		place[r.id] = i
	}
	var places []int // of the rules of newer that older has, in the order of newer
	for _, r := range newer {
		if i, ok := place[r.id]; ok {
			places = append(places, i)
		}
	}
	// ends[k] is the index in places of the smallest end of a rising series of k+1.
	var ends []int
	previous := make([]int, len(places))
	for i, p := range places {
		k, _ := slices.BinarySearchFunc(ends, p, func(end, p int) int { return places[end] - p })
		previous[i] = -1
		if k > 0 {
			previous[i] = ends[k-1]
		}
		if k == len(ends) {
			ends = append(ends, i)
		} else {
			ends[k] = i
		}
	}
	stay := map[string]bool{}
	if len(ends) > 0 {
		for i := ends[len(ends)-1]; i >= 0; i = previous[i] {
			stay[older[places[i]].id] = true
		}
	}
	return stay
}
