package front_test

import (
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// engineWord, as the first argument, makes the test binary a container engine, or
// a client of one.
const engineWord = "stand-in-engine"

// The engine stands in for docker and podman on a machine without one, in what
// matters to a worker: its run is a client, and what it runs is a child of the
// engine and no descendant of the client; the id is in a file that must not exist
// before; whoever kills the client ends nothing; a second command, rm, does. It
// contains nothing.
//
//	stand-in-engine daemon SOCKET
//	stand-in-engine run SOCKET CIDFILE [--env NAME]... COMMAND [ARGUMENT...]
//	stand-in-engine rm SOCKET ID
func engine(args []string) int {
	err := errors.New("unknown verb")
	switch args[0] {
	case "daemon":
		err = engineDaemon(args[1])
	case "run":
		var code int
		if code, err = engineRun(args[1], args[2], args[3:]); err == nil {
			return code
		}
	case "rm":
		_, err = engineAsk(args[1], engineOrder{Remove: args[2]}, io.Discard, io.Discard)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		return 125
	}
	return 0
}

// engineOrder is what a client asks for.
type engineOrder struct {
	ID     string   `json:"id,omitempty"`
	Argv   []string `json:"argv,omitempty"`
	Env    []string `json:"env,omitempty"`
	Dir    string   `json:"dir,omitempty"`
	Remove string   `json:"remove,omitempty"`
}

// engineNews is what the daemon answers: output, or the end.
type engineNews struct {
	Stream string `json:"stream,omitempty"`
	Data   []byte `json:"data,omitempty"`
	Exit   int    `json:"exit"`
}

func engineRun(socket, cidfile string, args []string) (int, error) {
	o := engineOrder{ID: fmt.Sprintf("c%d", os.Getpid())}
	for len(args) > 1 && args[0] == "--env" {
		o.Env = append(o.Env, args[1]+"="+os.Getenv(args[1]))
		args = args[2:]
	}
	o.Argv = args
	var err error
	if o.Dir, err = os.Getwd(); err != nil {
		return 0, err
	}
	f, err := os.OpenFile(cidfile, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	_, err = f.WriteString(o.ID)
	if err := errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	return engineAsk(socket, o, os.Stdout, os.Stderr)
}

func engineAsk(socket string, o engineOrder, stdout, stderr io.Writer) (int, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if err := json.MarshalWrite(conn, o); err != nil {
		return 0, err
	}
	in := jsontext.NewDecoder(conn)
	for {
		var n engineNews
		if err := json.UnmarshalDecode(in, &n); err != nil {
			return 0, err
		}
		switch n.Stream {
		case "stdout":
			_, err = stdout.Write(n.Data)
		case "stderr":
			_, err = stderr.Write(n.Data)
		default:
			return n.Exit, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// engineHost runs what clients ask for.
type engineHost struct {
	mu   sync.Mutex
	runs map[string]*exec.Cmd
	gone map[string]chan struct{}
}

func engineDaemon(socket string) error {
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	h := &engineHost{runs: map[string]*exec.Cmd{}, gone: map[string]chan struct{}{}}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go h.serve(conn)
	}
}

func (h *engineHost) serve(conn net.Conn) {
	defer conn.Close()
	var o engineOrder
	if json.UnmarshalDecode(jsontext.NewDecoder(conn), &o) != nil {
		return
	}
	exit := 0
	if o.Remove != "" {
		h.remove(o.Remove)
	} else {
		exit = h.run(conn, o)
	}
	_ = json.MarshalWrite(conn, engineNews{Exit: exit})
}

// teller passes output on to a client, as long as there is one.
type teller struct {
	mu     *sync.Mutex
	to     io.Writer
	stream string
}

func (t teller) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_ = json.MarshalWrite(t.to, engineNews{Stream: t.stream, Data: p})
	return len(p), nil
}

func (h *engineHost) run(conn io.Writer, o engineOrder) int {
	cmd := exec.Command(o.Argv[0], o.Argv[1:]...)
	cmd.Env, cmd.Dir = append([]string{"PATH=/usr/bin:/bin"}, o.Env...), o.Dir
	var mu sync.Mutex
	cmd.Stdout, cmd.Stderr = teller{&mu, conn, "stdout"}, teller{&mu, conn, "stderr"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	gone := make(chan struct{})
	h.mu.Lock()
	err := cmd.Start()
	if err == nil {
		h.runs[o.ID], h.gone[o.ID] = cmd, gone
	}
	h.mu.Unlock()
	if err != nil {
		return 126
	}
	_ = cmd.Wait()
	close(gone)
	return cmd.ProcessState.ExitCode()
}

// remove ends everything of a run, like rm --force --ignore.
func (h *engineHost) remove(id string) {
	h.mu.Lock()
	cmd, gone := h.runs[strings.TrimSpace(id)], h.gone[strings.TrimSpace(id)]
	h.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	<-gone
}
