// Package agentapi is the proposer's door as both sides see it: HTTP with JSON
// over a unix socket, opened by a bearer token.
//
// # What it guarantees
//
// It is the only door that an agent needs and the only one it gets: propose,
// assess, and look at own jobs. Nothing behind it can decide.
//
// # Who owns what
//
// The proposer owns the socket; a [Client] owns its connections.
//
// # What can go wrong
//
// Every refusal is an [Error] with a stable code and what to do next.
package agentapi

import (
	"bytes"
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/localsock"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
)

// Proposal is what an agent asks for. Zero values take the proposer's
// defaults.
type Proposal struct {
	Argv           []string          `json:"argv"`
	Cwd            string            `json:"cwd"`
	Env            map[string]string `json:"env,omitempty"`
	Pool           string            `json:"pool,omitempty"`
	Executor       string            `json:"executor,omitempty"` // worker, or caller for who proposes it
	TimeoutS       int               `json:"timeout_s,omitempty"`
	MaxAttempts    int               `json:"max_attempts,omitempty"`
	RetrySafe      bool              `json:"retry_safe,omitempty"`
	Reason         string            `json:"reason,omitempty"`
	IdempotencyKey string            `json:"idempotency_key,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"`
	ExpiresS       int               `json:"expires_s,omitempty"`
	// Follows is the job that this one takes the place of.
	Follows events.Follows `json:"follows,omitzero"`
}

// Cancellation asks for the end of an own job.
type Cancellation struct {
	Reason string `json:"reason,omitempty"`
}

// Report is the caller's word on a job that was handed over to it.
type Report struct {
	ExitCode int `json:"exit_code"`
}

// Chunk is a piece of a job's output.
type Chunk struct {
	N      int    `json:"n"`
	Stream string `json:"stream"` // stdout or stderr
	AtMS   int64  `json:"at_ms"`  // since the start of the attempt
	Data   []byte `json:"data"`   // base64 in JSON
}

// Error is a refusal, and the error object of every --json verb.
type Error struct {
	Code    string `json:"code"`    // stable
	Message string `json:"message"` // what was tried, on what, and why it failed
	Next    string `json:"next,omitempty"`
	Status  int    `json:"-"` // HTTP status
	// Content is the digest of a proposal that was refused as holding a secret, and
	// Where the part and the rule; a person may waive exactly this refusal.
	Content string `json:"content,omitempty"`
	Where   string `json:"where,omitempty"`
	// RetryAfterS is in how many seconds it may be tried again, where that is
	// known.
	RetryAfterS int `json:"retry_after_s,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Envelope is how an Error travels.
type Envelope struct {
	Error *Error `json:"error"`
}

// Client speaks to the proposer.
type Client struct {
	socket string
	token  string
	http   http.Client
}

// NewClient makes a client for a socket and a token.
func NewClient(socket, token string) *Client {
	return &Client{socket: socket, token: token, http: http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return localsock.Dial(ctx, socket) },
		// A client waits for many jobs at once, and there is no other host.
		MaxIdleConnsPerHost: idleConns,
	}}}
}

// idleConns is how many connections a client keeps for its next requests.
const idleConns = 64

// Propose stores a proposal.
func (c *Client) Propose(ctx context.Context, p Proposal) (view.Detail, error) {
	return call[view.Detail](ctx, c, http.MethodPost, "/v1/jobs", p)
}

// Assess asks what policy would say and stores nothing.
func (c *Client) Assess(ctx context.Context, p Proposal) (query.Assessment, error) {
	return call[query.Assessment](ctx, c, http.MethodPost, "/v1/assess", p)
}

// DryRun asks what would become of a proposal, starts nothing and stores nothing.
func (c *Client) DryRun(ctx context.Context, p Proposal) (query.DryRun, error) {
	return call[query.DryRun](ctx, c, http.MethodPost, "/v1/dry-run", p)
}

// Job returns an own job. With wait it returns when the job has moved past the
// sequence after, or when wait is over.
func (c *Client) Job(ctx context.Context, id string, after uint64, wait time.Duration) (view.Detail, error) {
	q := url.Values{"after": {strconv.FormatUint(after, 10)}, "wait_ms": {strconv.FormatInt(wait.Milliseconds(), 10)}}
	return call[view.Detail](ctx, c, http.MethodGet, "/v1/jobs/"+url.PathEscape(id)+"?"+q.Encode(), nil)
}

// Cancel asks for the end of an own job and returns it, ended or as it is when
// that takes long.
func (c *Client) Cancel(ctx context.Context, id, reason string) (view.Detail, error) {
	return call[view.Detail](ctx, c, http.MethodDelete, "/v1/jobs/"+url.PathEscape(id), Cancellation{Reason: reason})
}

// Take hands an own approved job with the executor "caller" over, once: from there
// on the caller may execute it.
func (c *Client) Take(ctx context.Context, id string) (view.Detail, error) {
	return call[view.Detail](ctx, c, http.MethodPost, "/v1/jobs/"+url.PathEscape(id)+"/take", struct{}{})
}

// Report says what became of a job that was taken.
func (c *Client) Report(ctx context.Context, id string, r Report) (view.Detail, error) {
	return call[view.Detail](ctx, c, http.MethodPost, "/v1/jobs/"+url.PathEscape(id)+"/report", r)
}

// Output hands over the chunks of an attempt from number from on, in order,
// and follows them until the attempt has ended. It returns the number of the
// next chunk.
func (c *Client) Output(ctx context.Context, id string, attempt, from int, each func(Chunk) error) (int, error) {
	q := url.Values{"attempt": {strconv.Itoa(attempt)}, "from": {strconv.Itoa(from)}}
	resp, err := c.do(ctx, http.MethodGet, "/v1/jobs/"+url.PathEscape(id)+"/output?"+q.Encode(), nil)
	if err != nil {
		return from, err
	}
	defer resp.Body.Close()
	dec := jsontext.NewDecoder(resp.Body)
	for {
		var chunk Chunk
		if err := json.UnmarshalDecode(dec, &chunk); errors.Is(err, io.EOF) {
			return from, nil
		} else if err != nil {
			return from, fmt.Errorf("read the output of job %s: %w", id, err)
		}
		from = chunk.N + 1
		if err := each(chunk); err != nil {
			return from, err
		}
	}
}

func call[T any](ctx context.Context, c *Client, method, path string, body any) (T, error) {
	var out T
	resp, err := c.do(ctx, method, path, body)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	if err := json.UnmarshalRead(resp.Body, &out); err != nil {
		return out, fmt.Errorf("read the proposer's answer: %w", err)
	}
	return out, nil
}

// do sends a request and turns a refusal into an *Error.
func (c *Client) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var reader io.Reader
	if body != nil {
		data, err := json.Marshal(body, json.Deterministic(true))
		if err != nil {
			return nil, &Error{Code: "invalid_text", Message: "proposal refused: an argument, the directory or a value is not valid UTF-8", Next: "send text in UTF-8"}
		}
		reader = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://proposer"+path, reader)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, &Error{Code: "proposer_away", Message: fmt.Sprintf("reach the proposer on %s: %v", c.socket, bareURL(err)),
			Next: "start it with 'banksman up', or name its folder with --dir"}
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	var e Envelope
	if err := json.UnmarshalRead(resp.Body, &e); err != nil || e.Error == nil {
		return nil, fmt.Errorf("the proposer answered %s without a reason", resp.Status)
	}
	e.Error.Status = resp.StatusCode
	return nil, e.Error
}

func bareURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
