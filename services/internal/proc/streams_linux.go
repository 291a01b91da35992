package proc

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// readBytes is what one read takes from a pipe; it bounds the memory for a stream.
const readBytes = 32 << 10

// stdio are the ends that the program gets. The owner closes its copies once the steward has its own.
type stdio struct {
	in, out, err *os.File
	borrowed     *os.File // belongs to the caller
}

func (s stdio) all() []*os.File { return []*os.File{s.in, s.out, s.err} }

func (s stdio) close() {
	for _, file := range s.all() {
		if file != nil && file != s.borrowed {
			file.Close() // closing one that was used for two streams a second time does nothing
		}
	}
}

// streams are the owner's ends and the goroutines that serve them.
type streams struct {
	input   io.Reader
	inPipe  *os.File // nil when the program's stdin is a file
	outputs []*output
	wg      sync.WaitGroup
}

type output struct {
	name string
	pipe *os.File
	to   io.Writer
	err  error // the writer's first failure; owned by the stream's goroutine until it has ended
}

// openStreams makes the pipes. Nothing is read or written before start.
func openStreams(stdin io.Reader, stdout, stderr io.Writer) (*streams, stdio, error) {
	s, files := &streams{}, stdio{}
	var err error
	if files.in, err = s.openInput(stdin); err == nil {
		files.borrowed, _ = stdin.(*os.File)
		files.out, err = s.openOutput("stdout", stdout)
	}
	switch {
	case err != nil:
	case stdout != nil && same(stdout, stderr):
		files.err = files.out // one pipe keeps the order of what the program writes
	default:
		files.err, err = s.openOutput("stderr", stderr)
	}
	if err != nil {
		files.close()
		s.abort()
	}
	return s, files, err
}

func same(a, b io.Writer) bool {
	return b != nil && reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}

func (s *streams) openInput(stdin io.Reader) (*os.File, error) {
	if file, ok := stdin.(*os.File); ok && file != nil {
		return file, nil
	}
	if stdin == nil {
		return os.OpenFile(os.DevNull, os.O_RDONLY, 0)
	}
	theirs, ours, err := pipe(false)
	if err != nil {
		return nil, err
	}
	s.input, s.inPipe = stdin, ours
	return theirs, nil
}

func (s *streams) openOutput(name string, to io.Writer) (*os.File, error) {
	if to == nil {
		return os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	}
	ours, theirs, err := pipe(true)
	if err != nil {
		return nil, err
	}
	s.outputs = append(s.outputs, &output{name: name, pipe: ours, to: to})
	return theirs, nil
}

// pipe makes a pipe of which only the owner's end is in non-blocking mode.
func pipe(ownerReads bool) (read, write *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	ours := 1
	if ownerReads {
		ours = 0
	}
	err = unix.SetNonblock(fds[ours], true)
	read, write = os.NewFile(uintptr(fds[0]), "pipe"), os.NewFile(uintptr(fds[1]), "pipe")
	return read, write, err
}

func (s *streams) start() {
	for _, out := range s.outputs {
		s.wg.Go(out.copy)
	}
	if s.inPipe != nil {
		go s.feed()
	}
}

// feed is not waited for: the caller's reader may never return.
func (s *streams) feed() {
	_, _ = io.Copy(s.inPipe, s.input) // a program may close its stdin early, which is no failure
	s.inPipe.Close()
}

// finish takes what the tree has left in the pipes and ends the goroutines. A process outside the tree that still holds a
// pipe cannot delay it, and gets no say after the tree is gone.
func (s *streams) finish() error {
	if s.inPipe != nil {
		_ = s.inPipe.SetWriteDeadline(time.Unix(1, 0))
	}
	for _, out := range s.outputs {
		_ = out.pipe.SetReadDeadline(time.Unix(1, 0))
	}
	s.wg.Wait()
	var err error
	for _, out := range s.outputs {
		err = errors.Join(err, out.err)
	}
	s.abort()
	return err
}

func (s *streams) abort() {
	if s.inPipe != nil {
		s.inPipe.Close()
	}
	for _, out := range s.outputs {
		out.pipe.Close()
	}
}

// copy hands output on until the last writer has closed the pipe or finish has set the deadline.
func (o *output) copy() {
	buffer := make([]byte, readBytes)
	for {
		n, err := o.pipe.Read(buffer)
		o.write(buffer[:n])
		if errors.Is(err, os.ErrDeadlineExceeded) {
			o.rest(buffer)
			return
		}
		if err != nil {
			return
		}
	}
}

// rest takes what lies in the pipe now, and no more.
func (o *output) rest(buffer []byte) {
	raw, err := o.pipe.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		left, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
		for err == nil && left > 0 {
			var n int
			n, err = syscall.Read(int(fd), buffer[:min(left, len(buffer))])
			if n <= 0 {
				return
			}
			o.write(buffer[:n])
			left -= n
		}
	})
}

// write hands on bytes. After a failure output is still taken, so that the program is not held up.
func (o *output) write(b []byte) {
	if len(b) == 0 || o.err != nil {
		return
	}
	if _, err := o.to.Write(b); err != nil {
		o.err = fmt.Errorf("write %s of the program: %w", o.name, err)
	}
}
