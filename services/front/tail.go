package front

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/banksman/banksman/services/internal/agentapi"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/query"
	"github.com/banksman/banksman/services/internal/view"
)

// sheets are where the two streams of a job's output go.
type sheets struct {
	stdout, stderr io.Writer
	displays       []*display
	chunks         int       // that were put
	objects        io.Writer // for programs, in the place of both; nil otherwise
}

// sheets makes output safe where it ends at a screen, unless it is asked for raw.
func (a *app) sheets(raw bool) *sheets {
	s := &sheets{stdout: a.out, stderr: a.err}
	if a.json {
		s.objects = a.out
	}
	for _, w := range []*io.Writer{&s.stdout, &s.stderr} {
		if !raw && terminal(*w) {
			d := &display{w: *w}
			s.displays, *w = append(s.displays, d), d
		}
	}
	return s
}

// put writes one chunk.
func (s *sheets) put(c agentapi.Chunk) error {
	s.chunks++
	if s.objects != nil {
		line, err := json.Marshal(c)
		if err != nil {
			return fmt.Errorf("encode output: %w", err)
		}
		_, err = fmt.Fprintf(s.objects, "%s\n", line)
		return err
	}
	w := s.stdout
	if c.Stream == "stderr" {
		w = s.stderr
	}
	_, err := w.Write(c.Data)
	return err
}

// end writes what was held back.
func (s *sheets) end() error {
	for _, d := range s.displays {
		if err := d.flush(); err != nil {
			return err
		}
	}
	return nil
}

// notKept is how many of the chunks that were stored are no longer there.
func notKept(stored, seen int) int { return max(0, stored-seen) }

// missing says how much of an output that has ended is no longer kept.
func (a *app) missing(of string, stored, seen int) {
	if n := notKept(stored, seen); n > 0 {
		a.say("%s: %d of %d chunks of its output are no longer kept; see output_max_bytes and output_max_age_s in [bus]. Their digest is in the log", of, n, stored)
	}
}

// missingOf says it of one attempt.
func (a *app) missingOf(j view.Detail, attempt, seen int) {
	if attempt > 0 && attempt <= len(j.Attempts) {
		a.missing(fmt.Sprintf("job %s, attempt %d", j.Job.Job, attempt), j.Attempts[attempt-1].Chunks, seen)
	}
}

func (a *app) tailCommand() *cobra.Command {
	var attempt int
	var raw bool
	cmd := &cobra.Command{
		Use: "tail JOB", Short: "Print a job's output as it comes, until the job has ended", GroupID: "decide", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, j, err := a.jobOf(cmd.Context(), args[0], attempt)
			if err != nil {
				return err
			}
			defer c.Close()
			s := a.sheets(raw)
			if err := a.tail(cmd.Context(), c, j, attempt, s.put); err != nil {
				return err
			}
			return s.end()
		},
	}
	outputFlags(cmd, &attempt, &raw)
	return cmd
}

func outputFlags(cmd *cobra.Command, attempt *int, raw *bool) {
	cmd.Flags().IntVar(attempt, "attempt", 0, "output of this attempt alone (default: the last one and those that follow)")
	rawFlag(cmd, raw)
}

// rawFlag is of every verb that shows what a program wrote.
func rawFlag(cmd *cobra.Command, raw *bool) {
	cmd.Flags().BoolVar(raw, "raw", false, "do not make the output safe for a terminal")
}

// jobOf finds the job whose output is asked for.
func (a *app) jobOf(ctx context.Context, id string, attempt int) (*bus.Conn, view.Detail, error) {
	if attempt < 0 {
		return nil, view.Detail{}, usage("", "--attempt %d: attempts count from 1", attempt)
	}
	c, _, _, err := a.reader(ctx)
	if err != nil {
		return nil, view.Detail{}, err
	}
	j, err := lookUp(ctx, c, id)
	if err == nil && attempt > len(j.Attempts) {
		err = usage("see 'banksman show "+j.Job.Job+"'", "job %s has had %d attempts, not %d", j.Job.Job, len(j.Attempts), attempt)
	}
	if err != nil {
		c.Close()
		return nil, j, err
	}
	return c, j, nil
}

// lookUp reads a job without its output.
func lookUp(ctx context.Context, c *bus.Conn, id string) (view.Detail, error) {
	var j view.Detail
	err := c.Ask(ctx, query.Get, query.GetRequest{Job: id}, &j)
	return j, err
}

// tail hands over output until the job, or the one attempt that was asked for,
// has ended.
func (a *app) tail(ctx context.Context, c *bus.Conn, j view.Detail, only int, put func(agentapi.Chunk) error) error {
	current, next := only, 0
	if current == 0 {
		current = max(len(j.Attempts), 1)
	}
	tick := time.NewTicker(tailEvery)
	defer tick.Stop()
	seen := 0
	for said := ""; ; {
		if state := waitsFor(j); len(j.Attempts) < current && state != said && !j.Status.Final() {
			said = state
			a.say("job %s %s", j.Job.Job, state)
		}
		err := c.ReadOutput(ctx, j.Pool, j.Job.Job, current, next, func(n int, stream string, atMS int64, data []byte) error {
			next, seen = n+1, seen+1
			return put(agentapi.Chunk{N: n, Stream: stream, AtMS: atMS, Data: data})
		})
		// The state was read first: what had ended then was stored before.
		ended := len(j.Attempts) > current || len(j.Attempts) == current && j.Attempts[current-1].Outcome != ""
		switch {
		case err != nil, only > 0 && ended, len(j.Attempts) <= current && j.Status.Final():
			if err == nil {
				a.missingOf(j, current, seen)
			}
			return unlessOver(ctx, err)
		case ended && len(j.Attempts) > current:
			a.missingOf(j, current, seen)
			current, next, seen = current+1, 0, 0
			a.say("job %s: attempt %d", j.Job.Job, current)
			continue
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if j, err = lookUp(ctx, c, j.Job.Job); err != nil {
			return unlessOver(ctx, err)
		}
	}
}

// waitsFor says in words what a job that does not run waits for.
func waitsFor(j view.Detail) string {
	if j.Waiting != "" {
		return fmt.Sprintf("is %s, waiting for %s", j.Status, j.Waiting)
	}
	return fmt.Sprintf("is %s", j.Status)
}

// unlessOver drops an error of a reader that was told to stop.
func unlessOver(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

func (a *app) replayCommand() *cobra.Command {
	var attempt int
	var raw bool
	var speed float64
	cmd := &cobra.Command{
		Use: "replay JOB", Short: "Play a job's output again, with the pauses that it had", GroupID: "decide", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !(speed > 0 && speed <= 1e6) {
				return usage("", "--speed %g: want more than 0, at most 1000000", speed)
			}
			c, j, err := a.jobOf(cmd.Context(), args[0], attempt)
			if err != nil {
				return err
			}
			defer c.Close()
			if attempt == 0 {
				attempt = len(j.Attempts)
			}
			s := a.sheets(raw)
			if err := replay(cmd.Context(), c, j, attempt, speed, s.put); err != nil {
				return err
			}
			if cmd.Context().Err() == nil {
				a.missingOf(j, attempt, s.chunks)
			}
			return s.end()
		},
	}
	outputFlags(cmd, &attempt, &raw)
	cmd.Flags().Float64Var(&speed, "speed", 1, "how many times faster than it was")
	return cmd
}

// replay hands over the stored output of an attempt, each chunk at its time.
func replay(ctx context.Context, c *bus.Conn, j view.Detail, attempt int, speed float64, put func(agentapi.Chunk) error) error {
	began := time.Now()
	err := c.ReadOutput(ctx, j.Pool, j.Job.Job, attempt, 0, func(n int, stream string, atMS int64, data []byte) error {
		due := began.Add(time.Duration(float64(atMS) / speed * float64(time.Millisecond)))
		timer := time.NewTimer(time.Until(due))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		return put(agentapi.Chunk{N: n, Stream: stream, AtMS: atMS, Data: data})
	})
	return unlessOver(ctx, err)
}
