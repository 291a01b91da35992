package supervisor

import (
	"bytes"
	"encoding/json"
	"strings"
)

// failureAuth is a round whose agent's provider refused its log-in.
const failureAuth = "auth"

// maxLineBytes bounds a line that is looked at; a longer one is passed over.
const maxLineBytes = 1 << 20

// witness watches an agent's standard output for how the agent itself says
// that it ended. It remembers the last line and one word from before.
type witness struct {
	line    []byte
	tooLong bool
	last    []byte // the last line that was not empty
	refused bool   // the agent has said that its log-in failed
}

// Write never fails.
func (w *witness) Write(p []byte) (int, error) {
	n := len(p)
	for {
		part, rest, ended := bytes.Cut(p, []byte("\n"))
		if len(w.line)+len(part) > maxLineBytes {
			w.tooLong = true
		} else {
			w.line = append(w.line, part...)
		}
		if !ended {
			return n, nil
		}
		w.end()
		p = rest
	}
}

// end takes the line that is complete.
func (w *witness) end() {
	line := bytes.TrimSpace(w.line)
	switch {
	case w.tooLong:
		w.last = w.last[:0]
	case len(line) > 0:
		w.last = append(w.last[:0], line...)
		w.refused = w.refused || saysRefused(line)
	}
	w.line, w.tooLong = w.line[:0], false
}

// failure classifies the round. Only the exact shapes in which an agent
// reports its own end count; what it talks about does not.
func (w *witness) failure(exitCode int) string {
	w.end()
	if !bytes.HasPrefix(w.last, []byte("{")) {
		return ""
	}
	var said struct {
		Type   string `json:"type"`
		Status string `json:"status"`
		// Claude Code.
		IsError   bool `json:"is_error"`
		APIStatus int  `json:"api_error_status"`
		// Codex and Gemini CLI.
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	if json.Unmarshal(w.last, &said) != nil {
		return ""
	}
	claude := said.Type == "result" && said.IsError && (said.APIStatus == 401 || said.APIStatus == 403 && w.refused)
	codex := said.Type == "turn.failed" && exitCode != 0 && strings.HasPrefix(said.Error.Message, "unexpected status 401 Unauthorized")
	gemini := said.Type == "result" && said.Status == "error" && exitCode != 0 && geminiRefused(said.Error.Message)
	if claude || codex || gemini {
		return failureAuth
	}
	return ""
}

// saysRefused says whether a line is Claude Code's own word, not the model's,
// that the provider refused the log-in.
func saysRefused(line []byte) bool {
	if !bytes.Contains(line, []byte(`"authentication_failed"`)) {
		return false
	}
	var said struct {
		Type    string `json:"type"`
		Error   string `json:"error"`
		Message struct {
			Model string `json:"model"`
		} `json:"message"`
	}
	return json.Unmarshal(line, &said) == nil && said.Type == "assistant" &&
		said.Error == "authentication_failed" && said.Message.Model == "<synthetic>"
}

// geminiRefused reads "[API Error: {...}]".
func geminiRefused(message string) bool {
	text, ok := strings.CutPrefix(message, "[API Error: ")
	text, closed := strings.CutSuffix(text, "]")
	var said struct {
		Error struct {
			Code    int    `json:"code"`
			Status  string `json:"status"`
			Details []struct {
				Reason string `json:"reason"`
			} `json:"details"`
		} `json:"error"`
	}
	if !ok || !closed || json.Unmarshal([]byte(text), &said) != nil {
		return false
	}
	if said.Error.Code == 401 && said.Error.Status == "UNAUTHENTICATED" {
		return true
	}
	for _, d := range said.Error.Details {
		if d.Reason == "API_KEY_INVALID" {
			return true
		}
	}
	return false
}
