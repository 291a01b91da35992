package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A hand is the owner's side of one steward.
type hand struct {
	key     string // the setup, which decides what the steward may be used for
	conn    *net.UnixConn
	process *os.Process
	group   *group     // nil where control groups are not delegated
	mu      sync.Mutex // guards writes to conn
}

// hire starts a steward and waits until it has settled.
func hire(s setup) (*hand, error) {
	key, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("encode the setup of a steward: %w", err)
	}
	conn, theirs, err := socketPair()
	if err != nil {
		return nil, &StartError{Code: CodeSteward, Detail: "make a socket to it: " + err.Error()}
	}
	defer theirs.Close()
	h := &hand{key: string(key), conn: conn, group: newGroup()}
	if h.process, err = spawn(s, theirs, h.group); err != nil {
		conn.Close()
		h.group.remove()
		return nil, err
	}
	if h.group != nil {
		s.Group = h.group.path
	}
	if err := h.settle(s); err != nil {
		h.dismiss()
		return nil, err
	}
	return h, nil
}

func (h *hand) settle(s setup) error {
	if err := h.tell(order{Setup: &s}); err != nil {
		return &StartError{Code: CodeSteward, Detail: "it ended at once: " + err.Error() + "; the program must call proc.StewardMain first"}
	}
	got, err := h.hear()
	switch {
	case err != nil:
		return &StartError{Code: CodeSteward, Detail: "it ended at once: " + err.Error() + "; the program must call proc.StewardMain first"}
	case got.Refused != nil:
		return got.Refused
	}
	return nil
}

// spawn starts this binary again as a steward.
func spawn(s setup, socket *os.File, g *group) (*os.Process, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, &StartError{Code: CodeSteward, Path: os.DevNull, Detail: err.Error()}
	}
	defer null.Close()
	attr := &os.ProcAttr{
		Dir: "/",
		// GORACE speaks to a binary with the race detector alone, which would otherwise take a second to exit.
		Env:   []string{"GOMAXPROCS=2", "GOTRACEBACK=none", "GORACE=atexit_sleep_ms=0"},
		Files: []*os.File{null, null, null, socket},
		// The end of the owner continues a steward that the job has stopped, so that it sees that end. The kernel sends the
		// signal at the end of a mere thread too, where it does no harm.
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: unix.SIGCONT},
	}
	code := CodeSteward
	if len(s.Hide) > 0 {
		code = CodeNoNamespace
		if err := nest(attr.Sys, syscall.CLONE_NEWUSER|syscall.CLONE_NEWNS); err != nil {
			return nil, &StartError{Code: code, Detail: err.Error()}
		}
		if os.Geteuid() != 0 {
			attr.Sys.AmbientCaps = stewardCaps[:]
		}
	}
	if process, err := g.start(attr); err == nil {
		return process, nil
	}
	process, err := os.StartProcess("/proc/self/exe", []string{stewardName}, attr)
	if err != nil {
		return nil, &StartError{Code: code, Path: "/proc/self/exe", Detail: reason(err)}
	}
	return process, nil
}

// socketPair returns the owner's end and the steward's end.
func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "steward"), os.NewFile(uintptr(fds[1]), "owner")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), theirs, nil
}

// tell sends an order.
func (h *hand) tell(o order, files ...*os.File) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return writeFrame(h.conn, o, files...)
}

// hear waits for a report.
func (h *hand) hear() (report, error) {
	var got report
	_, err := readFrame(h.conn, &got)
	return got, err
}

// hearAwake waits for a report of a steward that runs a job. A job can stop its steward, and a stopped steward keeps no time and ends nothing;
// so it is continued again and again.
func (h *hand) hearAwake() (report, error) {
	var got report
	var err error
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		got, err = h.hear()
	}()
	tick := time.NewTicker(rouseEvery)
	defer tick.Stop()
	for {
		select {
		case <-heard:
			return got, err
		case <-tick.C:
			h.rouse()
		}
	}
}

// rouse continues a steward that the job has stopped. On one that runs it has no effect.
func (h *hand) rouse() { _ = h.process.Signal(unix.SIGCONT) }

// alive looks, without waiting, whether an idle steward still holds its end of the socket.
func (h *hand) alive() bool {
	raw, err := h.conn.SyscallConn()
	if err != nil {
		return false
	}
	var peek error
	err = raw.Control(func(fd uintptr) {
		_, _, peek = unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
	})
	return err == nil && errors.Is(peek, unix.EAGAIN)
}

// dismiss lets the steward end, which it does once its tree is gone, and waits for it.
func (h *hand) dismiss() {
	h.conn.Close()
	h.rouse()
	_, _ = h.process.Wait() // its exit status carries nothing
	h.group.remove()
}

// abandon ends a steward that is lost or does not answer, and the tree that it leaves behind. It returns what it could not
// end and by which means it found the rest.
func (h *hand) abandon(marker string) (survivors []int, means []string) {
	_ = h.process.Kill()
	_, _ = h.process.Wait()
	h.conn.Close()
	if h.group.kill() {
		means = append(means, MeansCgroup)
	}
	killed, err := sweep(marker, 0)
	if len(killed) > 0 {
		means = append(means, MeansMarker)
	}
	var left *SurvivorsError
	if errors.As(err, &left) {
		survivors = left.PIDs
	}
	h.group.remove()
	return survivors, means
}

// rouseEvery is the pause between two signals that continue a steward, should it be stopped.
const rouseEvery = time.Second

// patience is how long after the last moment at which a steward should have reported it counts as lost.
const patience = 5 * time.Second
