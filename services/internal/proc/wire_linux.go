package proc

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// maxFrameBytes bounds what either side accepts; the kernel itself refuses arguments far below.
const maxFrameBytes = 64 << 20

// maxFrameFiles is stdin, stdout and stderr.
const maxFrameFiles = 3

// An order is what the owner tells its steward. Exactly one field is set.
type order struct {
	Setup  *setup  `json:"setup,omitempty"`
	Run    *job    `json:"run,omitempty"`
	Cancel *string `json:"cancel,omitempty"`
	Until  Moment  `json:"until,omitempty"` // of the job that runs
}

// A setup is what stays the same for every program that one steward starts.
type setup struct {
	Hide               []string `json:"hide,omitempty"`
	Expose             []string `json:"expose,omitempty"`
	AllowNewPrivileges bool     `json:"allow_new_privileges,omitempty"`
	Group              string   `json:"group,omitempty"` // control group folder that the steward lives in
}

// A job is the part of a Spec that the steward needs.
type job struct {
	Argv         []string     `json:"argv"`
	Path         string       `json:"path"`
	Found        string       `json:"found,omitempty"`
	ExpectSHA256 string       `json:"expect_sha256,omitempty"`
	Sealed       bool         `json:"sealed,omitempty"`
	Files        []FileDigest `json:"files,omitempty"`
	Dir          string       `json:"dir"`
	Env          []string     `json:"env"`
	TimeLimitNS  int64        `json:"time_limit_ns,omitempty"`
	GraceNS      int64        `json:"grace_ns"`
	Until        Moment       `json:"until,omitempty"`
	NoticeNS     int64        `json:"notice_ns,omitempty"`
	StartBy      Moment       `json:"start_by,omitempty"`
	Marker       string       `json:"marker"`
	Umask        int          `json:"umask"`
	Rlimits      Rlimits      `json:"rlimits"`
	Nice         int          `json:"nice,omitempty"`
	User         *User        `json:"user,omitempty"`
	Reach        *Reach       `json:"reach,omitempty"`
}

// A report is what the steward answers. Exactly one field is set.
type report struct {
	Ready   bool        `json:"ready,omitempty"`
	Started *started    `json:"started,omitempty"`
	Refused *StartError `json:"refused,omitempty"`
	Done    *Outcome    `json:"done,omitempty"`
}

type started struct {
	PID   int    `json:"pid"`
	Bound string `json:"bound,omitempty"`
}

// writeFrame sends one length-prefixed JSON value; files travel with its first byte.
func writeFrame(conn *net.UnixConn, value any, files ...*os.File) error {
	body, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode a message between owner and steward: %w", err)
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, file := range files {
			fds[i] = int(file.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	if _, _, err := conn.WriteMsgUnix(frame, rights, nil); err != nil {
		return err
	}
	_, err = conn.Write(body)
	return err
}

// readFrame receives one value and the files that came with it, which are closed on exec.
func readFrame(conn *net.UnixConn, value any) ([]*os.File, error) {
	var head [4]byte
	rights := make([]byte, unix.CmsgSpace(4*maxFrameFiles))
	n, nrights, _, _, err := conn.ReadMsgUnix(head[:], rights)
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err != nil {
		return nil, err
	}
	files, err := parseRights(rights[:nrights])
	if err == nil {
		err = readBody(conn, head, n, value)
	}
	if err != nil {
		closeAll(files)
		return nil, err
	}
	return files, nil
}

func readBody(conn *net.UnixConn, head [4]byte, n int, value any) error {
	if _, err := io.ReadFull(conn, head[n:]); err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > maxFrameBytes {
		return fmt.Errorf("a message between owner and steward claims %d bytes", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(conn, body); err != nil {
		return err
	}
	return json.Unmarshal(body, value)
}

func parseRights(rights []byte) ([]*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			return files, err
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files, nil
}

func closeAll(files []*os.File) {
	for _, file := range files {
		file.Close()
	}
}
