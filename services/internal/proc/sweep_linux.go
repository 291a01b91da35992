package proc

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// sweepGrace is the time between TERM and KILL for processes that an earlier life of the owner left behind.
const sweepGrace = 2 * time.Second

// A SurvivorsError names processes that could not be ended.
type SurvivorsError struct{ PIDs []int }

// Error lists the processes.
func (e *SurvivorsError) Error() string {
	return fmt.Sprintf("processes %v of an earlier job could not be ended; look at their state and owner with ps", e.PIDs)
}

// SweepMarker ends every process that carries the marker in its environment, and the descendants of these, with TERM, two
// seconds of grace, and KILL. It returns the ids of what it ended, and a [*SurvivorsError] for what it could not. A worker
// calls it at start for each attempt that its earlier life had running.
func SweepMarker(marker string) (killed []int, err error) {
	if marker == "" {
		return nil, errors.New("sweep processes by marker: the marker is empty, which would match nothing that is known")
	}
	return sweep(marker, sweepGrace)
}

func sweep(marker string, grace time.Duration) ([]int, error) {
	seen := map[member]bool{}
	asked := time.Now()
	for {
		members := family(marker)
		if len(members) == 0 {
			return ids(seen), nil
		}
		waited := time.Since(asked)
		if waited > grace+killFor {
			return nil, &SurvivorsError{PIDs: ids(asSet(members))}
		}
		for _, m := range members {
			switch {
			case waited >= grace:
				_ = signalMember(m, unix.SIGKILL)
			case !seen[m]:
				_ = signalMember(m, unix.SIGTERM)
				_ = signalMember(m, unix.SIGCONT)
			}
			if !seen[m] {
				rouseSteward(m.pid)
			}
			seen[m] = true
		}
		time.Sleep(sweepEvery) // the kernel tells only parents about the end of a process
	}
}

// rouseSteward continues the steward of a process, should that be its parent and be stopped: it ends with its tree.
func rouseSteward(pid int) {
	child, ok := readStat(pid)
	if !ok {
		return
	}
	line, err := os.ReadFile("/proc/" + strconv.Itoa(child.parent) + "/cmdline")
	if parent, ok := readStat(child.parent); ok && err == nil && string(line) == stewardName+"\x00" {
		_ = signalMember(parent.member, unix.SIGCONT)
	}
}

// family lists the carriers of a marker and their descendants.
func family(marker string) []member {
	out := carriers(marker, os.Getpid())
	known := asSet(out)
	for _, m := range slices.Clone(out) {
		for _, child := range descendants(m.pid) {
			if !known[child] {
				known[child] = true
				out = append(out, child)
			}
		}
	}
	return out
}

func asSet(members []member) map[member]bool {
	set := map[member]bool{}
	for _, m := range members {
		set[m] = true
	}
	return set
}

func ids(set map[member]bool) []int {
	var out []int
	for m := range set {
		out = append(out, m.pid)
	}
	slices.Sort(out)
	return out
}
