// Package localsock opens unix sockets at any path, however long.
//
// # What it guarantees
//
// The kernel bounds a socket's address to 107 bytes. Listen and Dial reach the
// folder by a descriptor where the path is longer, so a deep home or a test's
// temporary folder works like any other. A listener's socket is 0600, or 0660
// after [Share], and replaces one that a dead process left behind, never one that
// answers.
//
// # What can go wrong
//
// Where the platform has no /proc, a path over the bound is refused by name.
package localsock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

const maxAddress = 107 // bytes, sun_path without its NUL

// ErrInUse is a socket that another process answers on.
var ErrInUse = errors.New("another process answers on it")

// Listen makes the socket's folder (0700) and listens.
func Listen(path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if c, err := Dial(ctx, path); err == nil {
		c.Close()
		return nil, fmt.Errorf("listen on %s: %w", path, ErrInUse)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	var l net.Listener
	err := through(path, func(address string) (err error) {
		l, err = net.Listen("unix", address)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return &listener{Listener: l, path: path}, nil
}

// Share lets the members of a group connect to a socket that this process listens
// on: they may pass its folder, though not list it, and write to the socket. The
// process must be a member of the group itself, or root.
func Share(path, group string) error {
	g, err := user.LookupGroup(group)
	if err != nil {
		return fmt.Errorf("share %s: %w", path, err)
	}
	gid, err := strconv.Atoi(g.Gid)
	if err != nil {
		return fmt.Errorf("share %s with group %s: its number is %q", path, group, g.Gid)
	}
	for _, m := range []struct {
		path string
		mode fs.FileMode
	}{{path, 0o660}, {filepath.Dir(path), 0o710}} { // the way in comes last
		if err := os.Chown(m.path, -1, gid); err != nil {
			return fmt.Errorf("share with group %s, which this process must be a member of: %w", group, err)
		}
		if err := os.Chmod(m.path, m.mode); err != nil {
			return fmt.Errorf("share with group %s: %w", group, err)
		}
	}
	return nil
}

// listener removes its socket by the path that it was asked for.
type listener struct {
	net.Listener
	path string
}

func (l *listener) Close() error {
	err := l.Listener.Close()
	if rm := os.Remove(l.path); err == nil && !errors.Is(rm, fs.ErrNotExist) {
		err = rm
	}
	return err
}

// Dial connects to a socket.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	var c net.Conn
	err := through(path, func(address string) (err error) {
		var d net.Dialer
		c, err = d.DialContext(ctx, "unix", address)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", path, bare(err))
	}
	return c, nil
}

// Gone says that nobody listens: no socket, or a dead one.
func Gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)
}

// bare drops the net package's own mention of the address.
func bare(err error) error {
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// through calls do with an address that fits, for as long as the call lasts.
func through(path string, do func(address string) error) error {
	if len(path) <= maxAddress {
		return do(path)
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	address := fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	if _, err := os.Stat("/proc/self/fd"); err != nil || len(address) > maxAddress {
		return fmt.Errorf("socket path %s: longer than %d bytes", path, maxAddress)
	}
	return do(address)
}
