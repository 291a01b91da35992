package proc

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// stewardName is argv[0] of a steward. Whoever starts the binary under it gains nothing: without an owner's socket on
// descriptor 3 it ends at once.
const stewardName = "banksman: steward"

const stewardSocketFD = 3

// StewardMain is the first call of every main function and TestMain. In a process that [Start] made as a steward it does
// the steward's work and never returns; in any other it returns at once.
func StewardMain() {
	if len(os.Args) != 1 || os.Args[0] != stewardName {
		return
	}
	runtime.LockOSThread() // no_new_privs and ptrace belong to one thread
	if err := serve(); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// A steward is the process between an owner and the programs that it starts, one after another.
type steward struct {
	conn   *net.UnixConn
	orders chan received // closed when the owner is gone
	setup  setup
	inside bool // in namespaces of its own
}

type received struct {
	order
	files []*os.File
}

// serve runs until the owner is gone and the last tree is too.
func serve() error {
	unix.CloseOnExec(stewardSocketFD)
	if err := unix.CloseRange(stewardSocketFD+1, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		closeOnExecAll()
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	forgetIgnored()
	// Caught, not ignored: a child inherits what is ignored, and gets the default of what is caught.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE, unix.SIGALRM,
		unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	file := os.NewFile(stewardSocketFD, "owner")
	conn, err := net.FileConn(file)
	file.Close()
	if err != nil {
		return err
	}
	s := &steward{conn: conn.(*net.UnixConn), orders: make(chan received)}
	go s.listen()
	for got := range s.orders {
		switch {
		case got.Setup != nil:
			s.answer(s.settle(*got.Setup))
		case got.Run != nil:
			if !s.run(got.Run, got.files) {
				return nil
			}
		}
		closeAll(got.files)
	}
	return nil
}

// listen hands on the owner's orders; the end of the socket is the end of the owner.
func (s *steward) listen() {
	defer close(s.orders)
	for {
		var got received
		files, err := readFrame(s.conn, &got.order)
		if err != nil {
			return
		}
		got.files = files
		s.orders <- got
	}
}

// settle does what is done once in a steward's life.
func (s *steward) settle(setup setup) error {
	s.setup = setup
	if !setup.AllowNewPrivileges {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return &StartError{Code: CodeSystem, Detail: "set no_new_privs: " + err.Error()}
		}
	}
	if len(setup.Hide) == 0 {
		// The job has the same uid: without this it could read the steward's memory or trace it.
		_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
		return nil
	}
	s.inside = true
	if err := cover(setup.Hide, setup.Expose); err != nil {
		return &StartError{Code: CodeNoNamespace, Detail: err.Error()}
	}
	return nil
}

// answer reports success or the refusal.
func (s *steward) answer(err error) {
	if err == nil {
		_ = writeFrame(s.conn, report{Ready: true}) // a lost owner shows as the end of the orders
		return
	}
	var refused *StartError
	if !errors.As(err, &refused) {
		refused = &StartError{Code: CodeSystem, Detail: err.Error()}
	}
	_ = writeFrame(s.conn, report{Refused: refused})
}

// run starts one program and stays until its tree is gone. It returns false when this steward must not start another.
func (s *steward) run(j *job, stdio []*os.File) bool {
	tree, bound, err := s.start(j, stdio)
	closeAll(stdio)
	if err != nil {
		s.answer(err)
		return true
	}
	outcome := tree.watch(s.orders)
	outcome.Bound = bound
	_ = writeFrame(s.conn, report{Done: &outcome})
	return len(outcome.Survivors) == 0 && tree.empty && !tree.ownerGone // what is not collected would be taken for the next one's
}

// start executes the program, and lets it run its first instruction only when everything about it has been checked.
func (s *steward) start(j *job, stdio []*os.File) (*tree, string, error) {
	if len(stdio) != maxFrameFiles {
		return nil, "", fmt.Errorf("an order to run came with %d descriptors instead of %d", len(stdio), maxFrameFiles)
	}
	l, err := prepare(j)
	if err != nil {
		return nil, "", err
	}
	defer l.close()
	// A traced exec ignores set-uid bits, so that it is used with them only where limits need it.
	stop := !s.setup.AllowNewPrivileges || j.Rlimits != Rlimits{} || j.Nice != 0
	on, err := s.behindWall(j)
	defer on.end() // after a program that must not run was destroyed: the end of its tracer would let it go
	if err != nil {
		return nil, "", err
	}
	if err := onTime(j); err != nil {
		return nil, "", err
	}
	pid := 0
	err = on.do(func() (err error) {
		pid, err = l.exec(stdio, s.inside && j.Reach == nil, stop)
		return err
	})
	if err != nil {
		return nil, "", err
	}
	t := newTree(j, pid, s.setup.Group)
	if stop {
		err = awaitStop(pid)
		if err == nil {
			err = l.sameDir("/proc/" + strconv.Itoa(pid) + "/cwd")
		}
		if err == nil {
			err = j.Rlimits.apply(pid)
		}
		if err == nil && j.Nice != 0 {
			err = unix.Setpriority(unix.PRIO_PROCESS, pid, j.Nice)
		}
	}
	if err == nil {
		err = l.recheck()
	}
	if err == nil && stop { // what was checked may have been large, and the order old
		err = onTime(j)
	}
	if err == nil { // told before it runs: a job may kill its steward at once, and an owner that is gone wants no job
		err = writeFrame(s.conn, report{Started: &started{PID: pid, Bound: l.bound}})
	}
	if err == nil && stop {
		err = on.do(func() error { return unix.PtraceDetach(pid) })
	}
	t.reap()
	if err != nil {
		t.destroy()
		var start *StartError
		if !errors.As(err, &start) {
			err = &StartError{Code: CodeSystem, Path: j.Path, Detail: err.Error()}
		}
		return nil, "", err
	}
	return t, l.bound, nil
}

// behindWall returns the thread that starts the program: one that is kept to the program's reach and ends after it, as the
// steward's own would be kept to it for ever.
func (s *steward) behindWall(j *job) (*thread, error) {
	if j.Reach == nil {
		return nil, nil
	}
	rules, err := j.Reach.wall()
	if err != nil {
		return nil, &StartError{Code: CodeNoReach, Path: j.Path, Detail: err.Error()}
	}
	defer rules.Close()
	on := newThread()
	if err := on.do(func() error { return enter(rules, s.inside) }); err != nil {
		return on, &StartError{Code: CodeNoReach, Path: j.Path, Detail: err.Error()}
	}
	return on, nil
}

// awaitStop waits until a traced child stands behind its exec and before its first instruction.
func awaitStop(pid int) error {
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return fmt.Errorf("wait for the program to be loaded: %w", err)
		case !status.Stopped():
			return fmt.Errorf("the program ended while it was loaded (status %#x)", int(status))
		}
		return nil
	}
}

// closeOnExecAll is the slow way for kernels without close_range flags.
func closeOnExecAll() {
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) != nil || limit.Cur > 1<<16 {
		limit.Cur = 1 << 16
	}
	for fd := stewardSocketFD + 1; fd < int(limit.Cur); fd++ {
		unix.CloseOnExec(fd)
	}
}
