package worker

import (
	"fmt"
	"slices"
	"time"

	"github.com/banksman/banksman/events"
)

// class is how an attempt ended, as far as trying again depends on it.
type class int

const (
	classDone    class = iota // it succeeded, or was called off
	classExit                 // the program said no
	classSignal               // a signal ended the program, or nobody knows what did
	classTimeout              // it ran out of time
	classStart                // it could not be executed here, or not now
	classChanged              // it is not what was approved; never tried again
	classFenced               // this worker gave it up for the next one; always tried again
	classStopped              // it was ended because this worker stops; always tried again
)

// retries says whether an attempt that ended like this is made again, while the
// job has attempts left.
func (c *Config) retries(as class, exitCode int) bool {
	switch as {
	case classExit:
		return len(c.RetryExits) == 0 || slices.Contains(c.RetryExits, exitCode)
	case classSignal:
		return c.RetrySignal
	case classTimeout:
		return c.RetryTimeout
	case classStart:
		return c.RetryStart
	case classFenced, classStopped:
		return true
	}
	return false
}

// retryPause doubles from retry_first_s to retry_most_s with each attempt. Up to a
// quarter is added by chance, so that what failed together does not come back
// together; chance returns a number from 0 to below its argument.
func (c *Config) retryPause(attempt int, chance func(int64) int64) time.Duration {
	pause, most := time.Duration(c.RetryFirstS)*time.Second, time.Duration(c.RetryMostS)*time.Second
	for range attempt - 1 {
		if pause >= most {
			break
		}
		pause *= 2
	}
	pause = min(pause, most)
	return pause + time.Duration(chance(int64(pause/4)))
}

// plan asks for another attempt where the rules and the approval allow one. The
// due time is in the event, so that it survives this worker. What was ended because
// this worker stops is then no cancelled job.
func (c *Config) plan(r *result, attempt, allowed int, now time.Time, chance func(int64) int64) {
	if attempt < allowed && c.retries(r.class, r.finished.ExitCode) {
		r.finished.RetryAtMS = now.Add(c.retryPause(attempt, chance)).UnixMilli()
		if r.class == classStopped {
			r.stopped, r.finished.Outcome, r.finished.Error = false, "failed", reasonStopped
		}
	}
}

func (c *Config) validateRetry() error {
	if c.RetryMostS < c.RetryFirstS {
		return fmt.Errorf("retry_most_s = %d: must not be below retry_first_s = %d", c.RetryMostS, c.RetryFirstS)
	}
	for _, code := range c.RetryExits {
		if code < 1 || code > 255 {
			return fmt.Errorf("retry_exits: %d is no exit status of a failed program; give 1 to 255", code)
		}
	}
	return nil
}

// dueAt is when the attempt asked for another one; the zero time for none.
func dueAt(f *events.JobFinished) time.Time {
	if f == nil || f.RetryAtMS == 0 {
		return time.Time{}
	}
	return time.UnixMilli(f.RetryAtMS)
}
