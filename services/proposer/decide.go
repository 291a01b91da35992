package proposer

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/redact"
)

// refuse makes the answer to a proposal that is not stored.
func refuse(code, next, format string, args ...any) error {
	return &agentapi.Error{Code: code, Message: "proposal refused: " + fmt.Sprintf(format, args...), Next: next, Status: http.StatusUnprocessableEntity}
}

// admit checks a proposal's form and makes its payload. The error is an
// *agentapi.Error that never repeats the content.
func admit(c *Config, d *redact.Detector, p agentapi.Proposal, from events.Proposer) (events.JobProposed, error) {
	out := events.JobProposed{
		Argv: p.Argv, Cwd: p.Cwd, Env: p.Env, Pool: orDefault(p.Pool, c.Pool), TimeoutS: orDefault(p.TimeoutS, c.TimeoutS),
		MaxAttempts: orDefault(p.MaxAttempts, 1), RetrySafe: p.RetrySafe, Reason: p.Reason, IdempotencyKey: p.IdempotencyKey,
		Labels: p.Labels, Executor: p.Executor, Proposer: from, ExpiresS: orDefault(p.ExpiresS, c.ExpiresS), Follows: p.Follows,
	}
	if out.Executor == executorWorker {
		out.Executor = ""
	}
	for _, check := range []func(*Config, *events.JobProposed) error{bounds, names, unfit} {
		if err := check(c, &out); err != nil {
			return out, err
		}
	}
	return out, secrets(d, &out)
}

// executorWorker is what a proposal says that means the default.
const executorWorker = "worker"

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

// bounds refuses what is too large or out of range.
func bounds(c *Config, p *events.JobProposed) error {
	if len(p.Argv) == 0 || strings.TrimSpace(p.Argv[0]) == "" {
		return refuse("no_command", "name the command after --", "there is no command")
	}
	if len(p.Argv) > c.MaxArgs {
		return refuse("too_long", "put long input into a file", "%d arguments, at most %d are taken", len(p.Argv), c.MaxArgs)
	}
	data, err := events.Encode(p)
	if err != nil {
		return refuse("invalid_text", "send text in UTF-8", "it cannot be encoded")
	}
	if len(data) > c.MaxBytes {
		return refuse("too_long", "put long input into a file", "%d bytes, at most %d are taken", len(data), c.MaxBytes)
	}
	if p.TimeoutS < 1 || p.TimeoutS > 604800 || p.ExpiresS < 1 || p.ExpiresS > 2592000 {
		return refuse("out_of_range", "", "timeout_s must be 1 to 604800 and expires_s 1 to 2592000")
	}
	if p.MaxAttempts < 1 || p.MaxAttempts > c.MaxAttempts {
		return refuse("out_of_range", "", "max_attempts must be 1 to %d", c.MaxAttempts)
	}
	return nil
}

// names refuses what cannot be a path, a pool or a variable.
func names(_ *Config, p *events.JobProposed) error {
	if err := events.CheckName("pool", p.Pool); err != nil {
		return refuse("bad_name", "", "%v", err)
	}
	if p.Executor != "" && p.Executor != events.ExecutorCaller {
		return refuse("bad_executor", "name worker or caller", "the executor is neither worker nor caller")
	}
	if p.Executor != "" && (p.MaxAttempts != 1 || p.RetrySafe) {
		return refuse("bad_executor", "leave max_attempts and retry_safe out", "what the caller executes is handed over once")
	}
	if !filepath.IsAbs(p.Cwd) {
		return refuse("bad_cwd", "name an absolute folder", "the working directory is not an absolute path")
	}
	if f := p.Follows; f != (events.Follows{}) {
		if f.As != "retry" && f.As != "edit" || events.For("job.proposed", p.Pool, f.Job, p.Pool).Valid() != nil {
			return refuse("bad_follows", "name a job, and retry or edit", "what it follows is no job, or not as a retry or an edit")
		}
	}
	for name := range p.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.HasPrefix(name, "BANKSMAN_") {
			return refuse("bad_env", "", "an environment variable's name is empty, holds '=' or begins with BANKSMAN_")
		}
	}
	return nil
}

// unfit refuses what deceives a reader or a terminal. Line feeds and tabs are
// ordinary in arguments of scripts.
func unfit(_ *Config, p *events.JobProposed) error {
	for place, text := range places(p) {
		if !utf8.ValidString(text) {
			return refuse("invalid_text", "send text in UTF-8", "%s is not valid UTF-8", place)
		}
		if _, whole := events.ParseText(text); whole || place == "the reason" && events.LooksLikeText(text) {
			return refuse("reserved_text", "say it in other words", "%s reads like a reference to a kept text", place)
		}
		i := strings.IndexFunc(text, deceives)
		if i >= 0 {
			r, _ := utf8.DecodeRuneInString(text[i:])
			return refuse("control_character", "remove the character", "%s holds the character %U at byte %d", place, r, i)
		}
	}
	return nil
}

func deceives(r rune) bool {
	if r == '\n' || r == '\t' {
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' || r == '\uFEFF' || r >= 0xE0000 && r <= 0xE007F
}

// places yields every text of a proposal with a name for it, in fixed order.
func places(p *events.JobProposed) func(func(string, string) bool) {
	return func(yield func(string, string) bool) {
		for i, a := range p.Argv {
			if !yield(fmt.Sprintf("argument %d", i), a) {
				return
			}
		}
		for _, t := range [][2]string{{"the working directory", p.Cwd}, {"the reason", p.Reason}, {"the idempotency key", p.IdempotencyKey}} {
			if !yield(t[0], t[1]) {
				return
			}
		}
		for kind, m := range map[string]map[string]string{"environment variable": p.Env, "label": p.Labels} {
			for i, k := range slices.Sorted(maps.Keys(m)) {
				if !yield(fmt.Sprintf("the name of %s %d", kind, i), k) || !yield(fmt.Sprintf("the value of %s %d", kind, i), m[k]) {
					return
				}
			}
		}
	}
}

// jobID names a job: by its key or by the waiver that it needs, so that a
// repetition finds it, else by time.
func jobID(origin string, p *events.JobProposed) (string, error) {
	parts := []string{origin, p.Proposer.String(), p.IdempotencyKey}
	if p.IdempotencyKey == "" && p.Waived > 0 {
		parts = append(parts, "waiver", strconv.FormatUint(p.Waived, 10))
	} else if p.IdempotencyKey == "" {
		id, err := uuid.NewV7()
		if err != nil {
			return "", fmt.Errorf("make a job id: %w", err)
		}
		return id.String(), nil
	}
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(h.Sum(nil)))[:26], nil
}
