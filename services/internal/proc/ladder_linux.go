package proc

import (
	"errors"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// sweepEvery is the pause between two looks at a tree that was asked to end.
	sweepEvery = 20 * time.Millisecond
	// killFor is how long KILL is repeated before what is left counts as a survivor.
	killFor = 10 * time.Second
	// deadAtOnce is how many dead processes may wait for one look.
	deadAtOnce = 256
)

// A tree is a direct child and everything that came out of it, seen from its steward. It is used by one goroutine.
type tree struct {
	job       *job
	child     int
	group     string // control group folder, or empty
	began     time.Time
	outcome   Outcome
	exited    bool // the direct child
	empty     bool // the kernel says that the steward has no child left, not even a dead one
	ownerGone bool
	hold      *hold
	reaped    chan reaped     // closed when no child is left
	asked     map[member]bool // processes that got TERM; nil before the first
	askedAt   uint64          // ticks since boot
	killed    map[member]bool
	means     map[string]bool
}

type reaped struct {
	pid    int
	status syscall.WaitStatus
	usage  syscall.Rusage
}

func newTree(j *job, child int, group string) *tree {
	now := time.Now()
	return &tree{job: j, child: child, group: group, began: now, hold: newHold(j), reaped: make(chan reaped, deadAtOnce),
		outcome: Outcome{ExitCode: -1, StartedAt: now.UTC(), PID: child},
		killed:  map[member]bool{}, means: map[string]bool{}}
}

// reap collects every process of the tree. As all orphans of the tree become children of the steward, the channel closes
// exactly when the tree is gone.
func (t *tree) reap() {
	go func() {
		defer close(t.reaped)
		for {
			var r reaped
			var err error
			r.pid, err = syscall.Wait4(-1, &r.status, 0, &r.usage)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if err != nil {
				return
			}
			t.reaped <- r
		}
	}()
}

// watch waits for the direct child's exit, the time limit, the end of the hold, a cancel or the owner's end, and then for
// the end of the tree.
func (t *tree) watch(orders <-chan received) Outcome {
	defer t.hold.stop()
	var limit <-chan time.Time
	if t.job.TimeLimitNS > 0 {
		timer := time.NewTimer(time.Duration(t.job.TimeLimitNS))
		defer timer.Stop()
		limit = timer.C
	}
	for !t.exited && !t.empty {
		select {
		case r, ok := <-t.reaped:
			t.note(r, ok)
			continue
		case <-limit:
			t.outcome.TimedOut = true
		case <-t.hold.C():
			if !t.hold.look() {
				continue
			}
			t.outcome.Fenced = true
		case got, ok := <-orders:
			if !ok {
				t.ownerGone = true
			} else if t.hold.extend(got.Until); got.Cancel == nil {
				continue
			} else {
				t.outcome.Cancelled, t.outcome.CancelReason = true, *got.Cancel
			}
		}
		break
	}
	t.end(orders)
	return t.finish()
}

// note keeps what the kernel says about a dead process.
func (t *tree) note(r reaped, ok bool) {
	if !ok {
		t.empty, t.reaped = true, nil
		return
	}
	t.outcome.User += time.Duration(r.usage.Utime.Nano())
	t.outcome.System += time.Duration(r.usage.Stime.Nano())
	t.outcome.MaxRSSBytes = max(t.outcome.MaxRSSBytes, r.usage.Maxrss*1024)
	if r.pid != t.child || t.exited {
		return
	}
	t.exited = true
	t.outcome.Wall = time.Since(t.began)
	if r.status.Signaled() {
		t.outcome.Signal = unix.SignalName(r.status.Signal())
	} else {
		t.outcome.ExitCode = r.status.ExitStatus()
	}
}

// end climbs the ladder: TERM once to each process, grace, then KILL until nothing is left. A steward without children has
// no descendants, so a tree that is empty before the first step needs no search.
func (t *tree) end(orders <-chan received) {
	if t.settled() {
		return
	}
	if t.exited {
		t.outcome.LeftBehind = len(t.members())
	}
	if !t.climb(orders, time.Duration(t.job.GraceNS), t.ask) {
		t.climb(orders, killFor, t.kill)
	}
}

// settled reports whether the direct child was the last process of its tree. Dead ones that are about to be collected are
// waited for, but only until the next look, as one look over /proc may miss a process whose parent dies meanwhile.
func (t *tree) settled() bool {
	tick := time.NewTicker(sweepEvery)
	defer tick.Stop()
	for t.exited && !t.empty {
		if anyChild() && len(t.members()) > 0 {
			return false
		}
		select {
		case r, ok := <-t.reaped:
			t.note(r, ok)
			t.drain(nil)
		case <-tick.C:
		}
	}
	return t.empty
}

// anyChild asks the kernel whether this process has children, dead or alive, and leaves them as they are.
func anyChild() bool {
	var info unix.Siginfo
	return !errors.Is(unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil), unix.ECHILD)
}

// climb repeats one step until the tree is gone, which it reports, or the time is over. The end of the hold cuts short every
// step but the last.
func (t *tree) climb(orders <-chan received, atMost time.Duration, step func([]member)) bool {
	deadline := time.NewTimer(atMost)
	defer deadline.Stop()
	pause := time.NewTimer(sweepEvery)
	defer pause.Stop()
	for {
		members := t.members()
		if t.empty && len(members) == 0 {
			return true
		}
		step(members)
		pause.Reset(sweepEvery) // from now on: a look at thousands takes longer than that
		select {
		case r, ok := <-t.reaped:
			t.note(r, ok)
			if len(t.killed) == 0 {
				t.drain(pause.C)
			} else { // the next look is due at once: something may still fork
				t.drain(nil)
			}
		case got, ok := <-orders:
			if !ok {
				t.ownerGone, orders = true, nil
			} else if !t.outcome.Fenced {
				t.hold.extend(got.Until)
			}
		case <-pause.C:
		case <-deadline.C:
			return len(t.members()) == 0 && t.collected()
		}
		if len(t.killed) == 0 && t.hold.over() {
			return false
		}
	}
}

// collected waits for the dead of a tree in which nothing lives any more; they are this process's children by now.
func (t *tree) collected() bool {
	enough := time.NewTimer(killFor)
	defer enough.Stop()
	t.drain(enough.C)
	return t.empty
}

// drain takes the dead processes that wait and, with a pause, the ones that follow until it is over or the tree is empty.
func (t *tree) drain(pause <-chan time.Time) {
	for !t.empty {
		select {
		case r, ok := <-t.reaped:
			t.note(r, ok)
			continue
		default:
		}
		if pause == nil {
			return
		}
		select {
		case r, ok := <-t.reaped:
			t.note(r, ok)
		case <-pause:
			return
		}
	}
}

// ask sends TERM once to each process that was there at the first look: to many programs a second one means "at once".
// Processes that start later are left alone, since they may be what a program starts to tidy up. One that is stopped is
// continued, as it could not hear otherwise.
func (t *tree) ask(members []member) {
	first := t.asked == nil
	if first {
		t.asked, t.askedAt = map[member]bool{}, ticksSinceBoot()
	}
	for _, m := range members {
		if !t.asked[m] && (first || m.start < t.askedAt) {
			t.asked[m] = true
			_ = signalMember(m, unix.SIGTERM) // gone or not ours: the next look tells
			_ = signalMember(m, unix.SIGCONT)
		}
	}
}

// kill sends KILL to each process, without a pause while a look finds ones that were not there before: a process with a
// KILL on its way cannot fork any more, so that this overtakes every chain of forks.
func (t *tree) kill(members []member) {
	for range 1000 {
		fresh := 0
		for _, m := range members {
			if !t.killed[m] {
				t.killed[m] = true
				fresh++
			}
			_ = signalMember(m, unix.SIGKILL)
		}
		if fresh == 0 {
			return
		}
		members = t.members()
	}
}

// members lists the living processes of the tree by every means there is.
func (t *tree) members() []member {
	self := os.Getpid()
	var out []member
	known := map[member]bool{}
	add := func(means string, found []member) {
		for _, m := range found {
			if !known[m] {
				known[m] = true
				out = append(out, m)
				t.means[means] = true
			}
		}
	}
	if t.group != "" {
		add(MeansCgroup, inGroup(t.group, self))
	}
	add(MeansSubreaper, descendants(self))
	add(MeansMarker, carriers(t.job.Marker, self))
	return out
}

// destroy ends a tree that must not run, with no time to tidy up.
func (t *tree) destroy() {
	t.climb(nil, killFor, t.kill)
	t.finish()
}

func (t *tree) finish() Outcome {
	t.outcome.Ended = time.Since(t.began)
	if !t.exited {
		t.outcome.Wall = t.outcome.Ended
	}
	if !t.empty {
		for _, m := range t.members() {
			t.outcome.Survivors = append(t.outcome.Survivors, m.pid)
		}
	}
	t.outcome.Killed = len(t.killed)
	for means := range t.means {
		t.outcome.Means = append(t.outcome.Means, means)
	}
	slices.Sort(t.outcome.Means)
	slices.Sort(t.outcome.Survivors)
	return t.outcome
}
