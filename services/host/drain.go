package host

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/banksman/banksman/services/internal/localsock"
	"github.com/banksman/banksman/services/internal/site"
)

// drainPath is where a process is asked to drain one of its roles.
const drainPath = "/drain/"

// drainable is the role that can be asked to finish what it has and take nothing
// new.
const drainable = "worker"

// askedToDrain answers a request to drain; false means that it is none.
func askedToDrain(w http.ResponseWriter, r *http.Request, b *board) bool {
	name, ok := strings.CutPrefix(r.URL.Path, drainPath)
	switch {
	case !ok:
		return false
	case r.Method != http.MethodPost:
		http.Error(w, "POST asks for it", http.StatusMethodNotAllowed)
	case name != drainable || !b.runs(name):
		http.Error(w, "no such role drains here", http.StatusNotFound)
	default:
		b.drain()
		w.WriteHeader(http.StatusAccepted)
	}
	return true
}

// runs says whether a role is on the board.
func (b *board) runs(role string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.roles, func(r RoleStatus) bool { return r.Role == role })
}

// drain asks for it, once.
func (b *board) drain() { b.drainOnce.Do(func() { close(b.drained) }) }

// draining says whether somebody has asked.
func (b *board) draining() bool {
	select {
	case <-b.drained:
		return true
	default:
		return false
	}
}

// drainedReason is the board's word for a worker that has finished.
const drainedReason = "drained; start the process again to take jobs"

// Drained says whether no worker of a folder has anything in hand any more.
func Drained(s Status) bool {
	return !slices.ContainsFunc(s.Roles, func(r RoleStatus) bool { return r.Role == drainable && r.Reason != drainedReason })
}

// Drain asks every process that runs workers of a folder to let them finish what
// they have and take nothing new. It returns the names of those that were asked.
func Drain(ctx context.Context, l site.Layout) ([]string, error) {
	list, err := os.ReadDir(l.StatusDir())
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("look for running workers: %w", err)
	}
	var asked []string
	var faults error
	for _, entry := range list {
		name, ok := strings.CutSuffix(entry.Name(), ".sock")
		if !ok {
			continue
		}
		path := filepath.Join(l.StatusDir(), entry.Name())
		resp, err := call(ctx, path, http.MethodPost, drainPath+drainable)
		switch {
		case localsock.Gone(err):
			continue // it ended without taking leave
		case err != nil:
			faults = errors.Join(faults, fmt.Errorf("ask %q to drain: %w", name, err))
			continue
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusAccepted {
			asked = append(asked, name)
		}
	}
	return asked, faults
}
