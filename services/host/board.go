package host

import (
	"slices"
	"sync"
	"time"
)

// RoleStatus is one line of a process's board.
type RoleStatus struct {
	Role   string    `json:"role"`
	Ready  bool      `json:"ready"`
	Since  time.Time `json:"since"`  // of the present state
	Reason string    `json:"reason"` // why it is not ready, or a warning
}

// Status is what the status socket answers and the status verb prints.
type Status struct {
	Ready bool         `json:"ready"`
	Roles []RoleStatus `json:"roles"`
}

// board holds the readiness of this process's roles.
type board struct {
	mu    sync.Mutex
	roles []RoleStatus  // in the order of starting
	ready func()        // called once, when all are ready; then nil
	moved chan struct{} // holds one token when a line has changed

	drainOnce sync.Once
	drained   chan struct{} // closed when somebody asks the worker to drain
}

func newBoard(names []string, ready func()) *board {
	b := &board{ready: ready, moved: make(chan struct{}, 1), drained: make(chan struct{})}
	for _, n := range names {
		b.roles = append(b.roles, RoleStatus{Role: n, Since: time.Now().UTC(), Reason: "starting"})
	}
	return b
}

// set records a role's state.
func (b *board) set(role string, ready bool, reason string) {
	if f := b.record(role, ready, reason); f != nil {
		f()
	}
}

// record returns what is to be called when all are ready for the first time.
func (b *board) record(role string, ready bool, reason string) (f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.roles, func(r RoleStatus) bool { return r.Role == role })
	if i < 0 {
		return nil
	}
	if r := &b.roles[i]; r.Ready != ready || r.Reason != reason {
		*r = RoleStatus{Role: role, Ready: ready, Since: time.Now().UTC(), Reason: reason}
		select {
		case b.moved <- struct{}{}:
		default:
		}
	}
	if b.ready != nil && !slices.ContainsFunc(b.roles, func(r RoleStatus) bool { return !r.Ready }) {
		f, b.ready = b.ready, nil
	}
	return f
}

func (b *board) status() Status {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Status{Ready: true, Roles: slices.Clone(b.roles)}
	for _, r := range s.Roles {
		s.Ready = s.Ready && r.Ready
	}
	return s
}

// alive says that the bus of this process, where it has one, is not ill. Roles
// that wait for a bus elsewhere are alive.
func (b *board) alive() bool {
	for _, r := range b.status().Roles {
		if r.Role == busName && !r.Ready {
			return false
		}
	}
	return true
}
