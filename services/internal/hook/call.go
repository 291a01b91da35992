package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/banksman/banksman/services/internal/agentapi"
)

// Call is a tool that an agent is about to use.
type Call struct {
	Session string // of the agent's program
	Cwd     string
	Tool    string
	ID      string // of this use of the tool

	input map[string]jsontext.Value
}

// ErrInput is input that is not what a PreToolUse hook receives.
var ErrInput = errors.New("the input is not that of a PreToolUse hook")

// Read reads what the program writes to the hook's standard input. Members that
// are unknown are ignored: versions add some.
func Read(data []byte) (Call, error) {
	var in struct {
		Event   string                    `json:"hook_event_name"`
		Session string                    `json:"session_id"`
		Cwd     string                    `json:"cwd"`
		Tool    string                    `json:"tool_name"`
		ID      string                    `json:"tool_use_id"`
		Input   map[string]jsontext.Value `json:"tool_input"`
	}
	if err := json.Unmarshal(data, &in); err != nil {
		return Call{}, fmt.Errorf("%w: %w", ErrInput, err)
	}
	switch {
	case in.Event != "PreToolUse":
		return Call{}, fmt.Errorf("%w: hook_event_name is %.40q", ErrInput, in.Event)
	case in.Tool == "" || in.Input == nil:
		return Call{}, fmt.Errorf("%w: tool_name or tool_input is missing", ErrInput)
	case in.Session == "" || !filepath.IsAbs(in.Cwd):
		return Call{}, fmt.Errorf("%w: session_id is missing, or cwd is no absolute path", ErrInput)
	}
	return Call{Session: in.Session, Cwd: in.Cwd, Tool: in.Tool, ID: in.ID, input: in.Input}, nil
}

// Way is how a call is treated.
type Way int

// The ways.
const (
	Refuse Way = iota // deny it; the zero value lets nothing through
	Pass              // say nothing: the program's own rules apply
	Allow             // allow it as it is
	Gate              // propose it
)

// shellTool is the tool whose input is one shell command.
const shellTool = "Bash"

// codeTools run commands or code and cannot be followed by a worker.
var codeTools = []string{"PowerShell", "Monitor", "REPL"}

// ownTools are the tools of banksman's MCP server under the name that install
// guides give it. They only propose and look.
var ownTools = []string{"propose_command", "assess_command", "wait_for_decision", "get_job", "list_my_jobs", "cancel_job"}

// ownPrefix is how the program names them.
const ownPrefix = "mcp__banksman__"

// Way says how the call is treated.
func (c Call) Way(f Follower) Way {
	own, isOwn := strings.CutPrefix(c.Tool, ownPrefix)
	switch {
	case c.Tool == shellTool:
		if text, err := c.command(); err == nil && f.follows(text) {
			return Allow
		}
		return Gate
	case slices.Contains(codeTools, c.Tool):
		return Refuse
	case isOwn && slices.Contains(ownTools, own):
		return Allow
	}
	return Pass
}

// command is the shell text of a call.
func (c Call) command() (string, error) {
	var text string
	value, ok := c.input["command"]
	if !ok || value.Kind() != '"' {
		return "", fmt.Errorf("%w: tool_input.command is missing or no text", ErrInput)
	}
	if err := json.Unmarshal(value, &text); err != nil {
		return "", fmt.Errorf("%w: tool_input.command: %w", ErrInput, err)
	}
	if strings.TrimSpace(text) == "" {
		return "", fmt.Errorf("%w: tool_input.command is empty", ErrInput)
	}
	return text, nil
}

// Proposal is what the call asks for: the shell text as the program would run
// it. The use's id is the idempotency key, so that a hook that is started again
// for the same use finds its job.
func (c Call) Proposal() (agentapi.Proposal, error) {
	text, err := c.command()
	if err != nil {
		return agentapi.Proposal{}, err
	}
	p := agentapi.Proposal{Argv: []string{"bash", "-c", text}, Cwd: c.Cwd, Labels: map[string]string{"hook": "claude"}}
	if c.ID != "" {
		p.IdempotencyKey = "claude-" + digest(c.Session, c.ID)
	}
	var about string
	if json.Unmarshal(c.input["description"], &about) == nil {
		p.Reason = about
	}
	var timeoutMS int64
	if json.Unmarshal(c.input["timeout"], &timeoutMS) == nil && timeoutMS > 0 {
		p.TimeoutS = int(min((timeoutMS+999)/1000, maxTimeoutS))
	}
	return p, nil
}

// maxTimeoutS is the longest run time that the proposer takes.
const maxTimeoutS = 604800

// Key names the content of a call within its session: a repeated call has the
// same key and another id.
func (c Call) Key() (string, error) {
	text, err := c.command()
	return digest(c.Session, c.Cwd, text), err
}

func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Follower makes the command that follows a job.
type Follower struct {
	Program string // absolute path of banksman
	Dir     string // site's folder; empty to leave it to the environment
	Caller  bool   // the program executes what was approved itself
}

// jobID is the form of a job's id.
var jobID = regexp.MustCompile(`^[0-9a-z][0-9a-z-]{7,63}$`)

// Command follows a job.
func (f Follower) Command(job string) string { return f.verb() + " run --attach " + job }

// verb begins every command of ours.
func (f Follower) verb() string {
	if f.Dir == "" {
		return quote(f.Program)
	}
	return quote(f.Program) + " --dir " + quote(f.Dir)
}

// follows says that a shell text is exactly a command that follows a job.
func (f Follower) follows(text string) bool {
	job := text[strings.LastIndexByte(text, ' ')+1:]
	return jobID.MatchString(job) && text == f.Command(job)
}

// quote makes one shell word of a text.
func quote(s string) string {
	plain := strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+", r)
	}) < 0
	if plain && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
