package host

import (
	"context"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// listener stands for the service manager: a datagram socket, as systemd's is.
type listener struct {
	t    *testing.T
	conn *net.UnixConn
}

func listenForNews(t *testing.T, watchdog time.Duration) *listener {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "")
	t.Setenv("WATCHDOG_PID", "")
	if watchdog > 0 {
		t.Setenv("WATCHDOG_USEC", strconv.FormatInt(watchdog.Microseconds(), 10))
	}
	return &listener{t: t, conn: conn}
}

// hear returns the lines of the next message that is no mere sign of life.
func (m *listener) hear() []string {
	m.t.Helper()
	for {
		if lines := m.next(20 * time.Second); !slices.Equal(lines, []string{"WATCHDOG=1"}) {
			return lines
		}
	}
}

// next returns the lines of the next message, none when there is none in time.
func (m *listener) next(limit time.Duration) []string {
	m.t.Helper()
	buf := make([]byte, 4096)
	m.conn.SetReadDeadline(time.Now().Add(limit))
	n, err := m.conn.Read(buf)
	if err != nil {
		return nil
	}
	return strings.Split(string(buf[:n]), "\n")
}

func (m *listener) want(lines ...string) {
	m.t.Helper()
	if got := m.hear(); !slices.Equal(got, lines) {
		m.t.Fatalf("the service manager heard %q, want %q", got, lines)
	}
}

func TestTheBoardIsHeard(t *testing.T) {
	m := listenForNews(t, 0)
	b := newBoard([]string{"worker"}, nil)
	draining, drain := context.WithCancel(t.Context())
	stop := keepServiceInformed(draining, b, slog.New(slog.DiscardHandler))
	m.want("STATUS=worker is not ready: starting")
	b.set("worker", false, "waiting for the bus")
	m.want("STATUS=worker is not ready: waiting for the bus")
	b.set("worker", true, "")
	m.want("READY=1", "STATUS=ready")
	b.set("worker", true, "first\nsecond")
	m.want("STATUS=worker: first second")
	b.set("worker", false, "away")
	m.want("STATUS=worker is not ready: away")
	b.set("worker", true, "")
	m.want("STATUS=ready") // ready is said once
	drain()
	m.want("STOPPING=1")
	stop()
}

func TestSignsOfLife(t *testing.T) {
	for _, c := range []struct {
		name  string
		ready bool
		reads string
	}{
		{name: "worker", ready: false, reads: "a role that waits for a bus elsewhere is alive"},
		{name: busName, ready: true, reads: "a healthy bus is alive"},
	} {
		t.Run(c.reads, func(t *testing.T) {
			m := listenForNews(t, 30*time.Millisecond)
			b := newBoard([]string{c.name}, nil)
			b.set(c.name, c.ready, "")
			stop := keepServiceInformed(t.Context(), b, slog.New(slog.DiscardHandler))
			defer stop()
			m.next(20 * time.Second) // the first sign, before anything was looked at
			for range 3 {
				for lines := m.next(20 * time.Second); !slices.Equal(lines, []string{"WATCHDOG=1"}); lines = m.next(20 * time.Second) {
					if lines == nil {
						t.Fatal("no sign of life")
					}
				}
			}
		})
	}
}

func TestIllBusGivesNoSignOfLifeUntilItDrains(t *testing.T) {
	m := listenForNews(t, 3*time.Millisecond)
	b := newBoard([]string{busName}, nil)
	draining, drain := context.WithCancel(t.Context())
	stop := keepServiceInformed(draining, b, slog.New(slog.DiscardHandler))
	defer stop()
	if got := m.next(20 * time.Second); !slices.Equal(got, []string{"WATCHDOG=1"}) {
		t.Fatalf("heard %q first", got)
	}
	m.want("STATUS=bus is not ready: starting")
	if got := m.next(100 * time.Millisecond); got != nil {
		t.Errorf("heard %q of an ill bus", got)
	}
	drain()
	m.want("STOPPING=1")
	if got := m.next(20 * time.Second); !slices.Equal(got, []string{"WATCHDOG=1"}) {
		t.Errorf("heard %q while draining, want signs of life: the drain has a limit of its own", got)
	}
}

func TestNothingRunsWithoutAListener(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	keepServiceInformed(t.Context(), newBoard([]string{"worker"}, nil), slog.New(slog.DiscardHandler))()
}
