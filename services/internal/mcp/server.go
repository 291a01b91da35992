package mcp

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/banksman/banksman/services/internal/agentapi"
)

// instructions are what an agent reads before its first call.
const instructions = "banksman decides which commands may run and runs them itself. " +
	"Propose a command, wait for the decision, then read the job for its output. " +
	"A denial carries the reason and often what to do instead; proposing the same again does not help. " +
	"Only policy and people approve: no tool here does."

// Server is the set of tools over one token.
type Server struct {
	door *agentapi.Client
	cwd  string
	sdk  *sdk.Server
}

// New makes a server whose proposals run in cwd where they name no folder.
func New(door *agentapi.Client, version, cwd string) *Server {
	s := &Server{door: door, cwd: cwd}
	s.sdk = sdk.NewServer(&sdk.Implementation{Name: "banksman", Version: version}, &sdk.ServerOptions{Instructions: instructions})
	add(s, "propose_command", "Ask for a command to be run. Returns the job; wait_for_decision then says whether it may run.", proposeSchema, false, s.propose)
	add(s, "assess_command", "Say what policy would decide about a command. Stores nothing and runs nothing.", proposeSchema, true, s.assess)
	add(s, "wait_for_decision", "Wait until a job is decided, at most 45 seconds. Call it again while the answer says pending.", waitSchema, true, s.wait)
	add(s, "get_job", "Show one of your jobs: its state, who decided and why, and once it has ended its exit code and output.", jobSchema, true, s.get)
	add(s, "cancel_job", "Ask for the end of one of your jobs: a waiting one ends, a running one is stopped.", cancelSchema, false, s.cancel)
	add(s, "list_my_jobs", "List your jobs, newest first.", listSchema, true, s.list)
	return s
}

// maxLine bounds a message of a client. Proposals are far smaller.
const maxLine = 4 << 20

// Serve answers one client over a pair of streams until it closes in or the
// context ends.
func (s *Server) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser) error {
	err := s.sdk.Run(ctx, &sdk.IOTransport{Reader: in, Writer: out, MaxLineLength: maxLine})
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve the agent over standard input and output: %w", err)
	}
	return nil
}

// add registers a tool. Arguments are decoded here and not by the SDK, so that
// what is wrong with them is refused with a code too.
func add[In any](s *Server, name, about, schema string, reads bool, do func(context.Context, In) (any, error)) {
	open := false
	t := &sdk.Tool{
		Name: name, Description: about, InputSchema: rawSchema(schema),
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: reads, OpenWorldHint: &open},
	}
	s.sdk.AddTool(t, func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		in, err := arguments[In](req.Params.Arguments)
		if err != nil {
			return failed(err), nil
		}
		answer, err := do(ctx, in)
		if err != nil {
			return failed(err), nil
		}
		return result(answer, false), nil
	})
}

// arguments reads the arguments of a call; a member that nobody defined is
// refused, and so is null in place of a value.
func arguments[In any](data []byte) (In, error) {
	var in In
	if len(data) == 0 || string(data) == "null" { // clients say so when there are none
		data = []byte("{}")
	}
	err := json.Unmarshal(data, &in, json.RejectUnknownMembers(true), json.WithUnmarshalers(noNull))
	if err == nil {
		return in, nil
	}
	at := "they are no valid JSON object"
	if e := (*json.SemanticError)(nil); errors.As(err, &e) {
		at = fmt.Sprintf("see %q", clip(string(e.JSONPointer), 100))
	}
	return in, &agentapi.Error{Code: "bad_request", Message: "read the arguments of the tool: " + at, Next: "send the members that the tool's schema names, none of them null"}
}

// errNull is a null where the schema names a type.
var errNull = errors.New("null is no value")

// noNull refuses null everywhere.
var noNull = json.UnmarshalFromFunc(func(dec *jsontext.Decoder, _ any) error {
	if dec.PeekKind() == 'n' {
		return errNull
	}
	return errors.ErrUnsupported
})

// failed is a tool error: the error object as text.
func failed(err error) *sdk.CallToolResult {
	var e *agentapi.Error
	switch {
	case errors.As(err, &e):
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		e = &agentapi.Error{Code: "timed_out", Message: err.Error(), Next: "ask again"}
	default:
		e = &agentapi.Error{Code: "failed", Message: err.Error()}
	}
	return result(agentapi.Envelope{Error: e}, true)
}

func result(v any, isError bool) *sdk.CallToolResult {
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.AllowInvalidUTF8(true))
	if err != nil {
		text, isError = []byte(`{"error":{"code":"failed","message":"the answer cannot be encoded"}}`), true
	}
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(text)}}, IsError: isError}
}
