package host

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// watchdogTries is how many signs of life fit into the time after which the
// service manager takes the process for hung.
const watchdogTries = 3

// keepServiceInformed tells the service manager, where there is one, that the
// process is ready, what its board says, that it is alive, and that it drains
// (sd_notify(3)). The returned function says that nothing is left running and
// waits for the last message.
//
// A role whose bus is away is alive: it waits by itself, and ending it would end
// its jobs too. Signs of life stop when the board can no longer be read, or when
// the bus of this very process has stayed ill, which a new start may cure.
func keepServiceInformed(draining context.Context, b *board, log *slog.Logger) (stop func()) {
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Warn("the service manager's watchdog is left alone", slog.Any("error", err))
	}
	s := &service{board: b, log: log, every: every / watchdogTries}
	if !s.say(daemon.SdNotifyWatchdog) {
		return func() {}
	}
	ended := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { s.run(draining, ended) })
	return func() {
		close(ended)
		wg.Wait()
	}
}

// service is this process as its service manager sees it.
type service struct {
	board  *board
	log    *slog.Logger
	every  time.Duration // between signs of life, 0 for none
	ready  bool          // and the manager knows
	status string        // as last said
}

// say sends one message and returns false when nobody listens.
func (s *service) say(lines ...string) bool {
	sent, err := daemon.SdNotify(false, strings.Join(lines, "\n"))
	if err != nil {
		s.log.Warn("the service manager could not be told", slog.Any("error", err))
	}
	return sent
}

func (s *service) run(draining context.Context, ended <-chan struct{}) {
	var life <-chan time.Time
	if s.every > 0 {
		tick := time.NewTicker(s.every)
		defer tick.Stop()
		life = tick.C
	}
	s.tell()
	drained := draining.Done()
	for {
		select {
		case <-s.board.moved:
			s.tell()
		case <-life:
			if drained == nil || s.board.alive() {
				s.say(daemon.SdNotifyWatchdog)
			}
		case <-drained:
			drained = nil
			s.say(daemon.SdNotifyStopping)
		case <-ended: // a process that drains in no time has said that, too
			if drained != nil && draining.Err() != nil {
				s.say(daemon.SdNotifyStopping)
			}
			return
		}
	}
}

// tell says what has changed on the board.
func (s *service) tell() {
	now := s.board.status()
	var lines []string
	if now.Ready && !s.ready {
		s.ready = true
		lines = append(lines, daemon.SdNotifyReady)
	}
	if text := now.line(); text != s.status {
		s.status = text
		lines = append(lines, "STATUS="+text)
	}
	if len(lines) > 0 {
		s.say(lines...)
	}
}

// line is the board in one line.
func (s Status) line() string {
	var notes []string
	for _, r := range s.Roles {
		switch {
		case !r.Ready:
			notes = append(notes, r.Role+" is not ready: "+r.Reason)
		case r.Reason != "":
			notes = append(notes, r.Role+": "+r.Reason)
		}
	}
	if len(notes) == 0 {
		return "ready"
	}
	return strings.ReplaceAll(strings.Join(notes, "; "), "\n", " ")
}
