package bus

import (
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

// pipeBytes is how much a connection inside the process holds back for a
// server that is busy.
const pipeBytes = 1 << 20

// pipeClose is how long the end of a connection waits for what was written.
const pipeClose = time.Second

// buffered gives the unbuffered pipes of a server inside the process a buffer,
// as a socket has. Without one, a server that refuses a log-in and a client
// that still writes wait for each other, and the client never reads why.
type buffered struct{ nats.InProcessConnProvider }

// InProcessConn dials.
func (b buffered) InProcessConn() (net.Conn, error) {
	conn, err := b.InProcessConnProvider.InProcessConn()
	if err != nil {
		return nil, err
	}
	p := &pipe{Conn: conn}
	p.change.L = &p.mu
	return p, nil
}

// pipe is the client's end. A goroutine runs while something is queued, so that
// an end that the client forgets to close holds none.
type pipe struct {
	net.Conn

	mu       sync.Mutex
	change   sync.Cond
	queue    []byte
	draining bool
	closed   bool
	err      error
}

// Write queues b, and waits only while the queue is long.
func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) > pipeBytes && p.err == nil && !p.closed {
		p.change.Wait()
	}
	switch {
	case p.err != nil:
		return 0, p.err
	case p.closed:
		return 0, net.ErrClosed
	}
	p.queue = append(p.queue, b...)
	if !p.draining {
		p.draining = true
		go p.drain()
	}
	return len(b), nil
}

// Close writes what is queued, for a moment at most.
func (p *pipe) Close() error {
	_ = p.Conn.SetDeadline(time.Now().Add(pipeClose))
	p.mu.Lock()
	p.closed = true
	p.change.Broadcast()
	for p.draining {
		p.change.Wait()
	}
	p.mu.Unlock()
	return p.Conn.Close()
}

// drain hands the queue to the server until it is empty.
func (p *pipe) drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.queue) > 0 && p.err == nil {
		batch := p.queue
		p.queue = nil
		p.change.Broadcast()
		p.mu.Unlock()
		_, err := p.Conn.Write(batch)
		p.mu.Lock()
		p.err = err
	}
	p.draining = false
	p.change.Broadcast()
}
