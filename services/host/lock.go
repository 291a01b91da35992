package host

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/banksman/banksman/events"
	"github.com/banksman/banksman/services/internal/site"
)

// Held is a role that another process runs from the same folder.
type Held struct {
	Dir  string
	Role string
	By   string // process id and start time, as that process wrote them
}

func (e *Held) Error() string {
	return fmt.Sprintf("run %s from %s: %s runs it already; stop that process first", e.Role, e.Dir, e.By)
}

// Claim claims a role of a folder for a command that does its work for a while.
func Claim(l site.Layout, command, role string) (release func(), err error) {
	return lockRoles(l, command, "", []string{role})
}

// lockRoles claims the roles of a folder for this process. The kernel releases
// the claims when the process ends, however it ends.
func lockRoles(l site.Layout, command, instance string, names []string) (unlock func(), err error) {
	dir := filepath.Join(l.Run(), "lock")
	if instance != "" {
		if err := events.CheckName("instance", instance); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("claim the folder: %w", err)
	}
	var held []*flock.Flock
	unlock = func() {
		for _, f := range held {
			f.Close()
		}
	}
	for _, name := range names {
		path := filepath.Join(dir, name+instance)
		f := flock.New(path, flock.SetPermissions(0o600))
		ok, err := f.TryLock()
		if err != nil || !ok {
			unlock()
			if err != nil {
				return nil, fmt.Errorf("claim role %s: %w", name, err)
			}
			return nil, &Held{Dir: l.Dir, Role: name, By: holder(path)}
		}
		held = append(held, f)
		who := fmt.Sprintf("process %d (banksman %s, since %s)\n", os.Getpid(), command, time.Now().UTC().Format(time.RFC3339))
		if err := os.WriteFile(path, []byte(who), 0o600); err != nil {
			unlock()
			return nil, fmt.Errorf("claim role %s: %w", name, err)
		}
	}
	return unlock, nil
}

// holder is what the holder of a claim has written about itself; it claims
// first and writes then.
func holder(path string) string {
	text, err := os.ReadFile(path)
	if who := strings.TrimSpace(string(text)); err == nil && who != "" {
		return who
	}
	return "another process"
}
