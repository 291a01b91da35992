package hook

import (
	"bytes"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// matcher names the tools that the hook is asked about.
var matcher = strings.Join(slices.Concat([]string{shellTool}, codeTools, []string{ownPrefix + ".*"}), "|")

// timeoutS is after how many seconds the program gives up on the hook. Some
// versions then run the tool, so the hook ends itself earlier.
const timeoutS = 60

// LimitS is how many seconds a hook may take before it ends itself and blocks.
const LimitS = 50

// EntryCommand is the shell text that the program runs. Where banksman is
// missing or fails in any way, the status is 2, which blocks.
func (f Follower) EntryCommand() string {
	if f.Caller {
		return f.verb() + entryCaller
	}
	return f.verb() + entryEnd
}

const (
	entryEnd    = " hook claude || exit 2"
	entryCaller = " hook claude --executor caller || exit 2"
)

// ErrSettings is a settings file that is not in the program's form. It is left
// as it is.
var ErrSettings = errors.New("the settings are not in the expected form")

// Install returns the settings with the hook's entry in place of an older one,
// and everything else as it was. Empty settings are a new file.
func Install(settings []byte, f Follower) ([]byte, error) {
	entry := struct {
		Matcher string `json:"matcher"`
		Hooks   []any  `json:"hooks"`
	}{matcher, []any{struct {
		Type      string `json:"type"`
		Command   string `json:"command"`
		Timeout   int    `json:"timeout"`
		OnFailure string `json:"onFailure"`
	}{"command", f.EntryCommand(), timeoutS, "block"}}}
	value, err := json.Marshal(entry, json.Deterministic(true))
	if err != nil {
		return nil, fmt.Errorf("encode the hook's entry: %w", err)
	}
	return rewrite(settings, value)
}

// Uninstall returns the settings without the hook's entry.
func Uninstall(settings []byte) ([]byte, error) { return rewrite(settings, nil) }

// preToolUse takes settings apart, which may be empty: their members, those of hooks, and
// the entries of hooks.PreToolUse.
func preToolUse(settings []byte) (top, hooks object, list []jsontext.Value, err error) {
	if len(bytes.TrimSpace(settings)) == 0 {
		settings = []byte("{}")
	}
	if top, err = members(settings, "the settings"); err != nil {
		return nil, nil, nil, err
	}
	if hooks, err = members(top.get("hooks", "{}"), "hooks"); err != nil {
		return nil, nil, nil, err
	}
	list, err = elements(hooks.get("PreToolUse", "[]"))
	return top, hooks, list, err
}

// rewrite takes every entry of ours out of hooks.PreToolUse and appends one.
// Settings that need no change come back byte for byte.
func rewrite(settings []byte, entry jsontext.Value) ([]byte, error) {
	top, hooks, list, err := preToolUse(settings)
	if err != nil {
		return nil, err
	}
	kept, changed, err := without(list, entry)
	if err != nil {
		return nil, err
	}
	if !changed {
		return settings, nil
	}
	hooks = hooks.set("PreToolUse", array(kept), len(kept) == 0)
	top = top.set("hooks", hooks.value(), len(hooks) == 0)
	out := top.value()
	if err := out.Indent(jsontext.WithIndent("  ")); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	return append(out, '\n'), nil
}

// without returns the entries with ours replaced by entry, which may be none.
func without(list []jsontext.Value, entry jsontext.Value) (kept []jsontext.Value, changed bool, err error) {
	found := 0
	for _, e := range list {
		ours, rest, err := strip(e)
		switch {
		case err != nil:
			return nil, false, err
		case !ours:
			kept = append(kept, e)
		case rest == nil && same(e, entry):
			found++
		case rest != nil: // an entry that others share
			kept, changed = append(kept, rest), true
		default:
			changed = true
		}
	}
	if entry != nil {
		kept = append(kept, entry)
		changed = changed || found != 1
	}
	return kept, changed, nil
}

func same(a, b jsontext.Value) bool {
	if b == nil {
		return false
	}
	a, b = a.Clone(), b.Clone()
	return a.Canonicalize() == nil && b.Canonicalize() == nil && bytes.Equal(a, b)
}

// strip takes our hooks out of one entry; rest is nil where nothing else is in
// it.
func strip(entry jsontext.Value) (ours bool, rest jsontext.Value, err error) {
	m, err := members(entry, "an element of hooks.PreToolUse")
	if err != nil {
		return false, nil, err
	}
	list, err := elements(m.get("hooks", "[]"))
	if err != nil {
		return false, nil, err
	}
	others := slices.DeleteFunc(slices.Clone(list), isOurs)
	if len(others) == len(list) {
		return false, entry, nil
	}
	if len(others) == 0 {
		return true, nil, nil
	}
	return true, m.set("hooks", array(others), false).value(), nil
}

// isOurs recognizes a hook that an earlier install wrote, wherever banksman lay.
func isOurs(hook jsontext.Value) bool {
	var h struct {
		Command string `json:"command"`
	}
	return json.Unmarshal(hook, &h) == nil && (strings.HasSuffix(h.Command, entryEnd) || strings.HasSuffix(h.Command, entryCaller)) && strings.Contains(h.Command, "banksman")
}

// member is one member of an object whose order is kept.
type member struct {
	name  string
	value jsontext.Value
}

type object []member

// members reads an object in its order.
func members(value jsontext.Value, what string) (object, error) {
	dec := jsontext.NewDecoder(bytes.NewReader(value))
	bad := func(err error) (object, error) {
		if err == nil {
			return nil, fmt.Errorf("%w: %s: want an object", ErrSettings, what)
		}
		return nil, fmt.Errorf("%w: %s: %w", ErrSettings, what, err)
	}
	if dec.PeekKind() != '{' {
		_, err := dec.ReadToken()
		return bad(err)
	}
	if _, err := dec.ReadToken(); err != nil {
		return bad(err)
	}
	var list object
	for dec.PeekKind() != '}' {
		name, err := dec.ReadToken()
		if err != nil {
			return bad(err)
		}
		key := name.String()
		v, err := dec.ReadValue()
		if err != nil {
			return bad(err)
		}
		list = append(list, member{key, v.Clone()})
	}
	if _, err := dec.ReadToken(); err != nil {
		return bad(err)
	}
	if rest := bytes.TrimSpace(value[dec.InputOffset():]); len(rest) > 0 {
		return bad(errors.New("there is more after the object"))
	}
	return list, nil
}

func (o object) get(name, def string) jsontext.Value {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return jsontext.Value(def)
}

// set replaces a member where it stands, appends it, or drops it.
func (o object) set(name string, value jsontext.Value, drop bool) object {
	out := slices.Clone(o)
	i := slices.IndexFunc(out, func(m member) bool { return m.name == name })
	switch {
	case drop && i < 0:
	case drop:
		out = slices.Delete(out, i, i+1)
	case i < 0:
		out = append(out, member{name, value})
	default:
		out[i].value = value
	}
	return out
}

func (o object) value() jsontext.Value {
	out := []byte("{")
	for i, m := range o {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := jsontext.AppendQuote(out, m.name)
		if err == nil {
			out = name
		}
		out = append(append(out, ':'), m.value...)
	}
	return append(out, '}')
}

func elements(value jsontext.Value) ([]jsontext.Value, error) {
	var list []jsontext.Value
	if value.Kind() != '[' {
		return nil, fmt.Errorf("%w: hooks.PreToolUse, or hooks of an element of it: want an array", ErrSettings)
	}
	if err := json.Unmarshal(value, &list); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	return list, nil
}

func array(list []jsontext.Value) jsontext.Value {
	out := []byte("[")
	for i, v := range list {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, v...)
	}
	return append(out, ']')
}
