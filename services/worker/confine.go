package worker

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"

	"github.com/banksman/banksman/services/internal/proc"
)

// account is whom jobs run as, where that is somebody else than the worker.
type account struct {
	id   proc.User
	name string
	home string
}

// lookUpAccount finds the user that the configuration names.
func lookUpAccount(name string) (*account, error) {
	if name == "" {
		return nil, nil
	}
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("user = %q in [worker]: only a worker that root runs may give its jobs another user; leave the key out", name)
	}
	u, err := user.Lookup(name)
	if err != nil {
		var unknown user.UnknownUserError
		if u, err = user.LookupId(name); errors.As(err, &unknown) || err != nil {
			return nil, fmt.Errorf("user = %q in [worker]: there is no such user on this machine: %w", name, err)
		}
	}
	a := &account{name: u.Username, home: u.HomeDir}
	groups, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("user = %q in [worker]: look up its groups: %w", name, err)
	}
	if a.id.UID, err = number(u.Uid); err != nil {
		return nil, err
	}
	if a.id.GID, err = number(u.Gid); err != nil {
		return nil, err
	}
	for _, g := range groups {
		gid, err := number(g)
		if err != nil {
			return nil, err
		}
		a.id.Groups = append(a.id.Groups, gid)
	}
	return a, nil
}

func number(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("read the numeric id of a user or group: %w", err)
	}
	return uint32(n), nil
}

// variables are what a job's environment says of its user.
func (a *account) variables() map[string]string {
	return map[string]string{"HOME": a.home, "USER": a.name, "LOGNAME": a.name}
}

// confine puts the configured limits on an attempt.
func (s *shift) confine(spec *proc.Spec) {
	c := &s.cfg
	spec.Umask, spec.Nice = c.Umask, c.Nice
	spec.Rlimits = proc.Rlimits{
		CPUSeconds: uint64(c.LimitCPUS), AddressSpaceBytes: uint64(c.LimitMemoryBytes), OpenFiles: uint64(c.LimitOpenFiles),
		Processes: uint64(c.LimitProcesses), FileSizeBytes: uint64(c.LimitFileBytes),
	}
	if s.account != nil {
		spec.User = &s.account.id
	}
	if c.Hide {
		spec.Hide = s.env.Layout.Private()
	}
}
