package worker

import (
	"context"
	"encoding/json/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/bus"
	"github.com/banksman/banksman/services/internal/leases"
	"github.com/banksman/banksman/services/internal/standing"
)

// Session is one process of a worker, as the log and its heartbeats tell.
type Session struct {
	Actor   string    `json:"actor"`
	Pool    string    `json:"pool"`
	Session string    `json:"session"`
	Version string    `json:"version"`
	Slots   int       `json:"slots"`
	Started time.Time `json:"started"`
	Stopped time.Time `json:"stopped,omitzero"`
	Reason  string    `json:"reason,omitempty"` // why it stopped
	Heard   bool      `json:"heard"`            // it sent a heartbeat while this list was made
	Running []string  `json:"running,omitempty"`
	Unsafe  bool      `json:"unsafe_shared_user,omitzero"`
}

// Sessions lists the workers of a site, oldest first: what they said at their
// start and leave, and whether they are heard within a while. A worker whose key
// the trust file does not know is left out. Those that took leave are listed only
// when all is true.
func Sessions(ctx context.Context, c *bus.Conn, st *standing.Standing, listen time.Duration, all bool) ([]Session, error) {
	if err := st.Refresh(ctx); err != nil {
		return nil, err
	}
	var mu sync.Mutex
	beats := map[string]leases.Pulse{}
	stop, err := c.Heartbeats(ctx, ">", func(tail string, data []byte) {
		var p leases.Pulse
		if t := strings.Split(tail, "."); len(t) == 3 && json.Unmarshal(data, &p) == nil {
			mu.Lock()
			defer mu.Unlock()
			beats[t[2]] = p
		}
	})
	if err != nil {
		return nil, err
	}
	list, err := announced(ctx, c, st)
	if err == nil {
		err = sleep(ctx, listen)
	}
	stop()
	if err != nil {
		return nil, err
	}
	for i := range list {
		p, heard := beats[list[i].Session]
		list[i].Heard = heard
		for _, u := range p.Running {
			list[i].Running = append(list[i].Running, u.Job)
		}
	}
	if !all {
		list = slices.DeleteFunc(list, func(s Session) bool { return !s.Stopped.IsZero() })
	}
	return list, nil
}

// announced reads what workers said of themselves.
func announced(ctx context.Context, c *bus.Conn, st *standing.Standing) ([]Session, error) {
	var list []Session
	filter := strings.Join([]string{events.PrefixStored, "worker", "*", "*", "*", "*"}, ".")
	for from := uint64(1); ; {
		page, err := c.Read(ctx, from, filter, 512)
		if err != nil {
			return nil, err
		}
		if len(page) == 0 {
			return list, nil
		}
		for _, stored := range page {
			from = stored.Seq + 1
			e, err := st.Book().Open(stored)
			if err != nil {
				continue // the auditor reports it
			}
			switch p := e.Payload.(type) {
			case *events.WorkerStarted:
				list = append(list, Session{Actor: e.Subject.Actor, Pool: e.Subject.Scope, Session: e.Subject.ID, Version: p.Version, Slots: p.Slots, Started: e.Time.UTC(), Unsafe: p.UnsafeSharedUser})
			case *events.WorkerStopped:
				if i := slices.IndexFunc(list, func(s Session) bool { return s.Session == e.Subject.ID && s.Actor == e.Subject.Actor }); i >= 0 {
					list[i].Stopped, list[i].Reason = e.Time.UTC(), p.Reason
				}
			}
		}
	}
}
