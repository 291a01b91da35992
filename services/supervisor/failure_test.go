package supervisor

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// What agents have really printed, and whether it says that the log-in failed.
var recorded = map[string]struct {
	exit int
	want string
}{
	"claude-401": {1, failureAuth}, "claude-old-401": {1, failureAuth}, "claude-403": {1, failureAuth}, "claude-old-403": {1, failureAuth},
	"claude-ok": {0, ""}, "claude-429": {1, ""}, "claude-500": {1, ""},
	"codex-401": {1, failureAuth}, "codex-429": {1, ""}, "codex-ok": {0, ""},
	"gemini-key": {144, failureAuth}, "gemini-429": {144, ""},
}

func TestFailureOfRecordedAgents(t *testing.T) {
	for name, r := range recorded {
		text, err := os.ReadFile("testdata/" + name + ".jsonl")
		must(t, err)
		for _, size := range []int{1, 7, len(text)} {
			w := &witness{}
			for rest := text; len(rest) > 0; rest = rest[min(size, len(rest)):] {
				if _, err := w.Write(rest[:min(size, len(rest))]); err != nil {
					t.Fatal(err)
				}
			}
			if got := w.failure(r.exit); got != r.want {
				t.Errorf("%s in pieces of %d: %q, want %q", name, size, got, r.want)
			}
		}
	}
}

// An agent that works on the subject, or shows such a line, has not failed.
func TestTalkAboutFailuresIsNone(t *testing.T) {
	claude, err := os.ReadFile("testdata/claude-401.jsonl")
	must(t, err)
	lines := strings.Split(strings.TrimSpace(string(claude)), "\n")
	for name, text := range map[string]string{
		"shown, then more":   string(claude) + "done\n",
		"indented in a list": "- " + lines[len(lines)-1] + "\n",
		"prose":              "Invalid API key: error 401 Unauthorized, authentication_failed\n",
		"prose of codex":     "unexpected status 401 Unauthorized: Incorrect API key provided\n",
		"not an error":       `{"type":"result","is_error":false,"api_error_status":401}` + "\n",
		"403 of a model":     `{"type":"result","is_error":true,"api_error_status":403}` + "\n",
		"model says it": `{"type":"assistant","error":"authentication_failed","message":{"model":"claude-opus-5"}}` + "\n" +
			`{"type":"result","is_error":true,"api_error_status":403}` + "\n",
		"codex that went on": `{"type":"error","message":"unexpected status 401 Unauthorized"}` + "\n" + `{"type":"turn.completed"}` + "\n",
		"empty":              "",
		"too long":           `{"type":"result","is_error":true,"api_error_status":401,"x":"` + strings.Repeat("y", maxLineBytes) + `"}` + "\n",
	} {
		w := &witness{}
		w.Write([]byte(text))
		if got := w.failure(1); got != "" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func FuzzFailure(f *testing.F) {
	for name := range recorded {
		text, err := os.ReadFile("testdata/" + name + ".jsonl")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, 3, 1)
	}
	f.Fuzz(func(t *testing.T, text []byte, size, exit int) {
		whole, parts := &witness{}, &witness{}
		whole.Write(text)
		size = max(1, size%64)
		for rest := text; len(rest) > 0; rest = rest[min(size, len(rest)):] {
			parts.Write(rest[:min(size, len(rest))])
		}
		a, b := whole.failure(exit), parts.failure(exit)
		if a != b || !bytes.Equal(whole.last, parts.last) {
			t.Errorf("whole %q, in pieces %q", a, b)
		}
	})
}
