package front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/events/lifecycle"
	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/hook"
	"github.com/banksman/banksman/services/internal/view"
)

func (a *app) hookCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "hook", Short: "Let an agent's program ask before it uses a tool", GroupID: "agents", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	install := &cobra.Command{Use: "install", Short: "Write the hook into an agent's settings", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	uninstall := &cobra.Command{Use: "uninstall", Short: "Take the hook out of an agent's settings", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	install.AddCommand(a.hookInstallClaude())
	uninstall.AddCommand(a.hookUninstallClaude())
	cmd.AddCommand(a.hookClaude(), install, uninstall)
	return cmd
}

// exitBlocks is the status that makes the program block the tool.
const exitBlocks = 2

// hookLimit is how long a hook takes at most, and hookWait how much of it goes
// into waiting for a decision.
const (
	hookLimit = hook.LimitS * time.Second
	hookWait  = 40 * time.Second
)

func (a *app) hookClaude() *cobra.Command {
	var wait time.Duration
	var executor string
	cmd := &cobra.Command{
		Use: "claude", Short: "Answer a PreToolUse hook of Claude Code; exits 2, which blocks, on every failure", Args: cobra.NoArgs,
		Long: "Answer a PreToolUse hook of Claude Code, read from standard input. A shell command is proposed;\nonce it is allowed, the tool's input becomes 'banksman run --attach JOB', so that a worker runs what\nwas approved. Exits 2, which blocks the tool, on every failure.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := []byte(nil), knownExecutor(executor)
			if err == nil {
				text, err = a.answerInTime(cmd.Context(), min(wait, hookWait), executor)
			}
			if err == nil {
				_, err = a.out.Write(text)
			}
			if err != nil {
				return &exit{code: exitBlocks, err: err}
			}
			return nil
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", hookWait, "longest wait for the decision, at most 40s")
	executorFlag(cmd, &executor)
	return cmd
}

// executorFlag is for programs that do not let a hook rewrite the input of a tool.
func executorFlag(cmd *cobra.Command, executor *string) {
	cmd.Flags().StringVar(executor, "executor", "worker", "worker, or caller where the program cannot take another command from a hook: it then executes what was approved itself")
}

func knownExecutor(executor string) error {
	if executor != "worker" && executor != events.ExecutorCaller {
		return usage("choose worker or caller", "--executor %q: there is no such executor", executor)
	}
	return nil
}

// answerInTime gives up when the hook's time is over: standard input may never
// end, and a program that times a hook out may run the tool. The goroutine that
// is then left ends with the process.
func (a *app) answerInTime(ctx context.Context, wait time.Duration, executor string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, hookLimit)
	defer cancel()
	type outcome struct {
		text []byte
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		var answer hook.Answer
		if answer, o.err = a.answerClaude(ctx, wait, executor); o.err == nil {
			o.text, o.err = answer.Text()
		}
		done <- o
	}()
	select {
	case o := <-done:
		return o.text, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("answer the hook: %w", ctx.Err())
	}
}

// maxHookInput bounds what a hook reads.
const maxHookInput = 8 << 20

func (a *app) answerClaude(ctx context.Context, wait time.Duration, executor string) (hook.Answer, error) {
	data, err := io.ReadAll(io.LimitReader(a.in, maxHookInput+1))
	if err != nil {
		return hook.Answer{}, fmt.Errorf("read the hook's input: %w", err)
	}
	if len(data) > maxHookInput {
		return hook.Answer{}, fmt.Errorf("read the hook's input: more than %d bytes", maxHookInput)
	}
	call, err := hook.Read(data)
	if err != nil {
		return hook.Answer{}, err
	}
	f, err := a.follower()
	if err != nil {
		return hook.Answer{}, err
	}
	switch call.Way(f) {
	case hook.Pass:
		return hook.Answer{}, nil
	case hook.Allow:
		return hook.Allowed("it only proposes, or follows a job"), nil
	case hook.Gate:
		return a.gateCall(ctx, call, f, wait, executor)
	}
	return hook.Refused(call), nil
}

// follower makes commands that find the same banksman and the same site.
func (a *app) follower() (hook.Follower, error) {
	program, err := os.Executable()
	if err != nil {
		return hook.Follower{}, fmt.Errorf("find the path of banksman: %w", err)
	}
	f := hook.Follower{Program: program}
	if a.dir != "" {
		if f.Dir, err = filepath.Abs(a.dir); err != nil {
			return f, fmt.Errorf("find the folder %s: %w", a.dir, err)
		}
	}
	return f, nil
}

// gateCall proposes a call, or finds the job of the same call that was pending,
// and waits for the decision.
func (a *app) gateCall(ctx context.Context, call hook.Call, f hook.Follower, wait time.Duration, executor string) (hook.Answer, error) {
	p, err := call.Proposal()
	if err != nil {
		return hook.Answer{}, err
	}
	p.Executor = executor
	key, err := call.Key()
	if err != nil {
		return hook.Answer{}, err
	}
	c, err := a.proposer()
	if err != nil {
		return hook.Answer{}, err
	}
	j, err := a.owedJob(ctx, c, key)
	if errors.Is(err, errNotOwed) {
		j, err = c.Propose(ctx, p)
	}
	if answer, taken := notTaken(err); !taken {
		return answer, nil
	}
	if err != nil {
		return hook.Answer{}, err
	}
	if j, err = awaitDecision(ctx, c, j, wait); err != nil {
		return hook.Answer{}, err
	}
	if j.Executor == events.ExecutorCaller && j.Status == lifecycle.Approved {
		return a.takeCall(ctx, c, j.Job.Job)
	}
	answer, pending := hook.Decide(call, f, j)
	if pending {
		a.owe(key, j.Job.Job)
	}
	return answer, nil
}

// takeCall takes a job over for the program, which then uses the tool as it is.
func (a *app) takeCall(ctx context.Context, c *agentapi.Client, job string) (hook.Answer, error) {
	_, err := c.Take(ctx, job)
	if answer, taken := notTaken(err); !taken {
		return answer, nil
	}
	if err != nil {
		return hook.Answer{}, err
	}
	return hook.Allowed("approved as job " + job + "; run it as it is, once"), nil
}

// notTaken turns a proposal that was refused for its form into a denial, which
// the agent can mend; other failures stay failures.
func notTaken(err error) (hook.Answer, bool) {
	var e *agentapi.Error
	if errors.As(err, &e) && e.Status >= http.StatusBadRequest && e.Status < http.StatusInternalServerError && e.Status != http.StatusUnauthorized {
		return hook.NotTaken(e), false
	}
	return hook.Answer{}, true
}

// awaitDecision waits until a job is decided or the wait is over.
func awaitDecision(ctx context.Context, c *agentapi.Client, j view.Detail, wait time.Duration) (view.Detail, error) {
	end := time.Now().Add(wait)
	for j.Status.Undecided() {
		left := time.Until(end)
		if left <= 0 {
			break
		}
		next, err := c.Job(ctx, j.Job.Job, j.LastSeq, max(left, time.Millisecond))
		if err != nil {
			return j, err
		}
		j = next
	}
	return j, nil
}
