package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A member is a process of a tree, told from a later one with the same id by its start time.
type member struct {
	pid   int
	start uint64 // in clock ticks since boot
}

type procStat struct {
	member
	parent int
	state  byte
}

func (s procStat) alive() bool { return s.state != 'Z' && s.state != 'X' && s.state != 'x' }

// readStat reads /proc/PID/stat. The command name in it may hold any byte, so that fields count from the last bracket.
func readStat(pid int) (procStat, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return procStat{}, false
	}
	return parseStat(text)
}

func parseStat(text []byte) (procStat, bool) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 1 || end < open {
		return procStat{}, false
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(text[:open])))
	fields := strings.Fields(string(text[end+1:]))
	if err != nil || len(fields) < 20 {
		return procStat{}, false
	}
	parent, errParent := strconv.Atoi(fields[1])
	start, errStart := strconv.ParseUint(fields[19], 10, 64)
	if errParent != nil || errStart != nil || len(fields[0]) != 1 {
		return procStat{}, false
	}
	return procStat{member: member{pid: pid, start: start}, parent: parent, state: fields[0][0]}, true
}

// allPIDs lists every process that /proc shows.
func allPIDs() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// descendants lists the living descendants of a process. A process whose parent dies between two reads seems to hang in the
// air; then the look is repeated.
func descendants(root int) []member {
	for range 3 {
		if out, whole := lookDown(root); whole {
			return out
		}
	}
	out, _ := lookDown(root)
	return out
}

// lookDown is one pass over /proc, and whether it found the parent of every process.
func lookDown(root int) ([]member, bool) {
	children := map[int][]procStat{}
	known := map[int]bool{0: true}
	for _, pid := range allPIDs() {
		if stat, ok := readStat(pid); ok {
			known[pid] = true
			children[stat.parent] = append(children[stat.parent], stat)
		}
	}
	whole := true
	for parent := range children {
		whole = whole && known[parent]
	}
	var out []member
	queue := []int{root}
	for len(queue) > 0 {
		parent := queue[0]
		queue = queue[1:]
		for _, stat := range children[parent] {
			if stat.alive() {
				out = append(out, stat.member)
			}
			queue = append(queue, stat.pid)
		}
		delete(children, parent)
	}
	return out, whole
}

// ticksSinceBoot is now in the unit of a process's start time, of which the kernel shows programs 100 a second.
func ticksSinceBoot() uint64 {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0
	}
	return uint64(now.Nano() / (10 * 1000 * 1000))
}

// carriers lists the living processes, except self, whose initial environment holds the marker.
func carriers(marker string, self int) []member {
	want := []byte(MarkerVariable + "=" + marker)
	var out []member
	for _, pid := range allPIDs() {
		if pid == self || !carries(pid, want) {
			continue
		}
		if stat, ok := readStat(pid); ok && stat.alive() {
			out = append(out, stat.member)
		}
	}
	return out
}

func carries(pid int, want []byte) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil || !bytes.Contains(env, want) {
		return false
	}
	return slices.ContainsFunc(bytes.Split(env, []byte{0}), func(entry []byte) bool { return bytes.Equal(entry, want) })
}

// inGroup lists the living members, except self, of a control group and the groups below it.
func inGroup(dir string, self int) []member {
	var out []member
	_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil
		}
		text, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			if err != nil || pid == self || pid == 0 {
				continue
			}
			if stat, ok := readStat(pid); ok && stat.alive() {
				out = append(out, stat.member)
			}
		}
		return nil
	})
	return out
}

// signalMember sends a signal to a process unless its id has passed to another one since it was listed.
func signalMember(m member, signal unix.Signal) error {
	fd, err := unix.PidfdOpen(m.pid, 0)
	if err == unix.ENOSYS || err == unix.EPERM {
		return unix.Kill(m.pid, signal)
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if stat, ok := readStat(m.pid); !ok || stat.start != m.start {
		return unix.ESRCH
	}
	return unix.PidfdSendSignal(fd, signal, nil, 0)
}
