package lab

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// Line is a stretch of network between somebody and the bus that a test can
// interrupt.
type Line struct {
	t      testing.TB
	listen net.Listener
	to     string

	mu    sync.Mutex
	held  bool          // nothing passes, and nobody is told
	moved chan struct{} // closed and replaced when held changes
	conns map[net.Conn]bool
	wg    sync.WaitGroup
}

// Line lays a line to the site's bus and lets an outpost use it.
func (s *Site) Line(outpost *Site) *Line {
	s.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.t.Fatal(err)
	}
	scheme, to, _ := strings.Cut(s.Setting("site", "bus_url"), "://")
	line := &Line{t: s.t, listen: l, to: to, moved: make(chan struct{}), conns: map[net.Conn]bool{}}
	line.wg.Go(line.accept)
	s.t.Cleanup(line.close)
	outpost.Set("site", "bus_url", `"`+scheme+"://"+l.Addr().String()+`"`)
	return line
}

func (l *Line) accept() {
	for {
		near, err := l.listen.Accept()
		if err != nil {
			return
		}
		l.wg.Go(func() { l.carry(near) })
	}
}

// carry copies both ways until one end is closed.
func (l *Line) carry(near net.Conn) {
	defer near.Close()
	l.note(near)
	far, err := net.Dial("tcp", l.to)
	if err != nil {
		return // the bus is away
	}
	defer far.Close()
	l.note(far)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], gated{l, way[1]}) // an end of either side ends both
			near.Close()
			far.Close()
		})
	}
	both.Wait()
}

func (l *Line) note(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = true
}

// gated is one direction of a connection.
type gated struct {
	line *Line
	net.Conn
}

// Read waits while the line is held, with what it has read.
func (g gated) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	for {
		g.line.mu.Lock()
		held, moved := g.line.held, g.line.moved
		g.line.mu.Unlock()
		if !held {
			return n, err
		}
		<-moved
	}
}

// Hold lets nothing pass any more. Connections stay, so that neither side is told.
func (l *Line) Hold() { l.set(true, false) }

// Mend lets everything pass again. Connections that were held break, as routers
// and servers have forgotten them by then.
func (l *Line) Mend() { l.set(false, true) }

func (l *Line) set(held, breaks bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if breaks {
		for c := range l.conns {
			c.Close()
		}
		clear(l.conns)
	}
	l.held = held
	close(l.moved)
	l.moved = make(chan struct{})
}

func (l *Line) close() {
	l.listen.Close()
	l.set(false, true)
	l.wg.Wait()
}
