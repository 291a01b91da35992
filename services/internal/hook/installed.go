package hook

import (
	"encoding/json/v2"
	"fmt"
	"slices"
	"strings"
)

// Entry is a hook of ours in the settings of a program.
type Entry struct {
	Command string // shell text that the program runs
	Blocks  bool   // the program blocks when the hook fails
	Covers  bool   // it is asked about every tool that runs commands
}

// Installed finds the hooks of ours in settings, which may be empty.
func Installed(settings []byte) ([]Entry, error) {
	_, _, list, err := preToolUse(settings)
	if err != nil {
		return nil, err
	}
	var found []Entry
	for _, e := range list {
		var entry struct {
			Matcher string `json:"matcher"`
			Hooks   []struct {
				Command   string `json:"command"`
				OnFailure string `json:"onFailure"`
			} `json:"hooks"`
		}
		m, err := members(e, "an element of hooks.PreToolUse")
		if err != nil {
			return nil, err
		}
		each, err := elements(m.get("hooks", "[]"))
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(e, &entry); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrSettings, err)
		}
		for i, h := range each {
			if isOurs(h) {
				found = append(found, Entry{Command: entry.Hooks[i].Command, Blocks: entry.Hooks[i].OnFailure == "block", Covers: covers(entry.Matcher)})
			}
		}
	}
	return found, nil
}

// covers says whether a matcher names every tool that runs commands or code.
func covers(matcher string) bool {
	named := strings.Split(matcher, "|")
	return !slices.ContainsFunc(append([]string{shellTool}, codeTools...), func(tool string) bool { return !slices.Contains(named, tool) })
}

// Probe is an input that shows whether a hook works, and what has to come of it.
type Probe struct {
	Name  string
	Input string
	// Wants is "nothing" where the program's own rules are to apply, "deny" for a
	// denial with a reason, "block" for the status that blocks.
	Wants string
}

// Probes are a tool that is none of the hook's business, a command that the proposer
// refuses for its form, code that no worker can follow, and an input that is none.
// None of them can lead to a job.
func Probes() []Probe {
	call := func(tool, input string) string {
		return `{"hook_event_name":"PreToolUse","session_id":"banksman-doctor","cwd":"/","tool_name":"` + tool + `","tool_use_id":"","tool_input":` + input + `}`
	}
	return []Probe{
		{"a harmless tool", call("Read", `{"file_path":"/dev/null"}`), "nothing"},
		{"a command that is refused", call(shellTool, `{"command":"printf '\u001b[2J'"}`), "deny"},
		{"code that no worker can run", call("REPL", `{"code":"1"}`), "deny"},
		{"an input that is none", "{", "block"},
	}
}

// Met says whether what a hook answered is what the probe wants.
func (p Probe) Met(code int, stdout string) bool {
	switch p.Wants {
	case "nothing":
		return code == 0 && strings.TrimSpace(stdout) == ""
	case "deny":
		return code == 0 && strings.Contains(stdout, `"permissionDecision":"deny"`)
	}
	return code == 2 && strings.TrimSpace(stdout) == ""
}
