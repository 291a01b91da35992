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
	p := &pipe{Conn: conn, ended: make(chan struct{})}
	p.change.L = &p.mu
	go p.drain()
	return p, nil
}

// pipe is the client's end. Its goroutine ends with Close.
type pipe struct {
	net.Conn
	ended chan struct{}

	mu     sync.Mutex
	change sync.Cond
	queue  []byte
	closed bool
	err    error
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
	p.change.Broadcast()
	return len(b), nil
}

// Close writes what is queued, for a moment at most, and ends the goroutine.
func (p *pipe) Close() error {
	p.mu.Lock()
	p.closed = true
	p.change.Broadcast()
	p.mu.Unlock()
	_ = p.Conn.SetDeadline(time.Now().Add(pipeClose))
	<-p.ended
	return p.Conn.Close()
}

// drain hands the queue to the server.
func (p *pipe) drain() {
	defer close(p.ended)
	var spare []byte
	for {
		p.mu.Lock()
		for len(p.queue) == 0 && !p.closed {
			p.change.Wait()
		}
		if len(p.queue) == 0 {
			p.mu.Unlock()
			return
		}
		batch := p.queue
		p.queue = spare[:0]
		p.change.Broadcast()
		p.mu.Unlock()
		if _, err := p.Conn.Write(batch); err != nil {
			p.mu.Lock()
			p.err = err
			p.change.Broadcast()
			p.mu.Unlock()
			return
		}
		spare = batch
	}
}
