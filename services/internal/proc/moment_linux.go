package proc

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Boottime reads the clock of a [Moment].
func Boottime() Moment {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // a kernel without the other; this one exists on every kernel
	}
	return Moment(now.Nano())
}

// A hold is how long a tree may live without a word of its owner. It is used by one goroutine.
type hold struct {
	until  Moment // zero where the tree may live as long as it likes
	notice time.Duration
	timer  *time.Timer // nil without a hold
}

// lookEvery bounds how late the end of a hold is noticed after the machine was suspended, as a timer does not count that time.
const lookEvery = time.Second

func newHold(j *job) *hold {
	h := &hold{until: j.Until, notice: time.Duration(j.NoticeNS)}
	if h.until != 0 {
		h.timer = time.NewTimer(0)
	}
	return h
}

// C says that it is time for a look.
func (h *hold) C() <-chan time.Time {
	if h.timer == nil {
		return nil
	}
	return h.timer.C
}

// onTime refuses a job that may not be started any more.
func onTime(j *job) error {
	last := j.StartBy
	if j.Until != 0 && (last == 0 || j.Until.Add(-time.Duration(j.NoticeNS)) < last) {
		last = j.Until.Add(-time.Duration(j.NoticeNS))
	}
	if late := Boottime().Sub(last); last != 0 && late >= 0 {
		return &StartError{Code: CodeTooLate, Path: j.Path, Detail: fmt.Sprintf("the last moment to start it was %s ago", late.Round(time.Millisecond))}
	}
	return nil
}

// late reports whether the tree has to be asked to end.
func (h *hold) late() bool { return Boottime() >= h.until.Add(-h.notice) }

// over reports whether the tree has to be gone.
func (h *hold) over() bool { return h.until != 0 && Boottime() >= h.until }

// look reports whether the tree has to be asked to end, and winds the timer up for the next look.
func (h *hold) look() bool {
	if h.late() {
		return true
	}
	h.timer.Reset(min(h.until.Add(-h.notice).Sub(Boottime()), lookEvery))
	return false
}

// extend puts the end off. It never brings it forward, and makes no hold where there was none.
func (h *hold) extend(until Moment) {
	if h.until != 0 {
		h.until = max(h.until, until)
	}
}

func (h *hold) stop() {
	if h.timer != nil {
		h.timer.Stop()
	}
}
