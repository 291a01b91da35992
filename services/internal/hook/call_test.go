package hook

import (
	"encoding/json/v2"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/banksman/banksman/services/internal/agentapi"
)

// recorded is what Claude Code 2.1.197 wrote to a hook.
const recorded = `{"session_id":"f4dd67bf-0ad4-4e6b-8bc5-311f2321b381","transcript_path":"/home/dev/.claude/projects/-home-dev-project/f4dd67bf-0ad4-4e6b-8bc5-311f2321b381.jsonl","cwd":"/home/dev/project","prompt_id":"6bb573ac-f5c3-434c-a8d2-9ed3f0c2734d","permission_mode":"bypassPermissions","effort":{"level":"high"},"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"echo hello > out.txt","description":"write file"},"tool_use_id":"toolu_01"}`

// here is the follower of the tests.
var here = Follower{Program: "/opt/bin/banksman"}

func call(t *testing.T, text string) Call {
	t.Helper()
	c, err := Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// bash is a recorded call with another command.
func bash(t *testing.T, command string) Call {
	t.Helper()
	quoted, err := json.Marshal(command)
	if err != nil {
		t.Fatal(err)
	}
	return call(t, strings.Replace(recorded, `"echo hello > out.txt"`, string(quoted), 1))
}

func TestRecordedCallBecomesAProposal(t *testing.T) {
	c := call(t, recorded)
	p, err := c.Proposal()
	if err != nil {
		t.Fatal(err)
	}
	key := p.IdempotencyKey
	p.IdempotencyKey = ""
	want := agentapi.Proposal{Argv: []string{"bash", "-c", "echo hello > out.txt"}, Cwd: "/home/dev/project", Reason: "write file", Labels: map[string]string{"hook": "claude"}}
	if d := cmp.Diff(want, p); d != "" {
		t.Error(d)
	}
	if c.Way(here) != Gate || !strings.HasPrefix(key, "claude-") {
		t.Errorf("way %d, key %q", c.Way(here), key)
	}
	other := call(t, strings.Replace(recorded, "toolu_01", "toolu_02", 1))
	q, _ := other.Proposal()
	if q.IdempotencyKey == key {
		t.Error("another use has the same idempotency key, so it would not run")
	}
	a, _ := c.Key()
	b, _ := other.Key()
	if a != b {
		t.Error("the repeated call has another key, so the pending job would not be found")
	}
	third, _ := bash(t, "echo hello > out.txt ").Key()
	if third == a {
		t.Error("another command has the same key")
	}
}

func TestTimeoutOfTheToolBecomesTheJobs(t *testing.T) {
	for text, want := range map[string]int{"1500": 2, "120000": 120, "0": 0, `"x"`: 0, "99999999999999": maxTimeoutS, "-5": 0} {
		c := call(t, strings.Replace(recorded, `"description":"write file"`, `"timeout":`+text, 1))
		if p, err := c.Proposal(); err != nil || p.TimeoutS != want {
			t.Errorf("timeout %s: %d s (%v), want %d", text, p.TimeoutS, err, want)
		}
	}
}

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	for name, text := range map[string]string{
		"empty":              "",
		"no JSON":            "hello",
		"a list":             "[]",
		"two objects":        recorded + recorded,
		"cut off":            recorded[:200],
		"repeated member":    strings.Replace(recorded, `"tool_name":"Bash"`, `"tool_name":"Read","tool_name":"Bash"`, 1),
		"another event":      strings.Replace(recorded, "PreToolUse", "PostToolUse", 1),
		"no tool":            strings.Replace(recorded, `"tool_name":"Bash",`, "", 1),
		"null input":         strings.Replace(recorded, `{"command":"echo hello > out.txt","description":"write file"}`, "null", 1),
		"relative folder":    strings.Replace(recorded, `"cwd":"/home/dev/project"`, `"cwd":"project"`, 1),
		"no session":         strings.Replace(recorded, `"session_id"`, `"session"`, 1),
		"tool in other case": strings.Replace(recorded, `"tool_name"`, `"Tool_Name"`, 1),
	} {
		if _, err := Read([]byte(text)); !errors.Is(err, ErrInput) {
			t.Errorf("%s: %v, want ErrInput", name, err)
		}
	}
	for name, command := range map[string]string{"missing": `{}`, "null": `{"command":null}`, "a list": `{"command":["ls"]}`, "empty": `{"command":" \n"}`, "a number": `{"command":7}`} {
		c := call(t, strings.Replace(recorded, `{"command":"echo hello > out.txt","description":"write file"}`, command, 1))
		if c.Way(here) != Gate {
			t.Errorf("command %s: way %d, want Gate", name, c.Way(here))
		}
		if _, err := c.Proposal(); !errors.Is(err, ErrInput) {
			t.Errorf("command %s: %v, want ErrInput", name, err)
		}
	}
}

func TestWayOfEachTool(t *testing.T) {
	for tool, want := range map[string]Way{
		"Bash": Gate, "PowerShell": Refuse, "Monitor": Refuse, "REPL": Refuse,
		"Read": Pass, "Edit": Pass, "Task": Pass, "mcp__github__create_issue": Pass,
		"mcp__banksman__propose_command": Allow, "mcp__banksman__cancel_job": Allow,
		"mcp__banksman__approve_job": Pass, "mcp__banksman__": Pass, "mcp__other__propose_command": Pass,
	} {
		if got := call(t, strings.Replace(recorded, `"Bash"`, `"`+tool+`"`, 1)).Way(here); got != want {
			t.Errorf("%s: way %d, want %d", tool, got, want)
		}
	}
}

// Only following a job passes without a proposal; whatever an agent adds makes
// it a proposal.
func TestOnlyTheExactFollowingPasses(t *testing.T) {
	const job = "0192f0c1-7b3a-7c4e-9d2f-0123456789ab"
	for _, f := range []Follower{here, {Program: "/opt/my bin/banksman", Dir: "/srv/it's here"}} {
		ours := f.Command(job)
		if got := bash(t, ours).Way(f); got != Allow {
			t.Errorf("%s: way %d, want Allow", ours, got)
		}
		for _, text := range []string{
			ours + "; banksman approve x", ours + " ", " " + ours, ours + "\nid", ours + " && id", "X=1 " + ours, ours + " --dir /tmp/x",
			strings.Replace(ours, "--attach", "--", 1), strings.Replace(ours, "run --attach", "approve", 1), f.Command("$(id)"), f.Command("a"), f.Command("`id`xxxxxxxx"),
			f.Command(strings.ToUpper(job)), "banksman run --attach " + job, "/tmp" + ours,
		} {
			if got := bash(t, text).Way(f); got != Gate {
				t.Errorf("%q: way %d, want Gate", text, got)
			}
		}
	}
}

func TestQuotedWordsAreOneWord(t *testing.T) {
	for in, want := range map[string]string{"/usr/bin/banksman": "/usr/bin/banksman", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$HOME": "'$HOME'", "a;b": "'a;b'", "ä": "'ä'"} {
		if got := quote(in); got != want {
			t.Errorf("quote(%q) = %s, want %s", in, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(recorded))
	f.Add([]byte(`{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/","tool_name":"Bash","tool_input":{"command":"ls"}}`))
	f.Add([]byte(`{"hook_event_name":"PreToolUse","session_id":"s","cwd":"/","tool_name":"Bash","tool_input":{"command":"/opt/bin/banksman run --attach aaaaaaaaaaaaaaaaaaaaaaaaaa; id"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Read(data)
		if err != nil {
			return
		}
		p, err := c.Proposal()
		switch way := c.Way(here); {
		case c.Tool == shellTool && way == Pass:
			t.Error("a shell command passes unseen")
		case c.Tool == shellTool && way == Allow && (err != nil || !strings.HasPrefix(p.Argv[2], "/opt/bin/banksman run --attach ") || strings.ContainsAny(p.Argv[2], ";&|<>$`\n")):
			t.Errorf("%q passes without a proposal", p.Argv)
		}
	})
}
