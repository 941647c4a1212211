package delivery

import (
	"errors"
	"net"
	"os"
	"runtime"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/fair"
)

// Listener makes a gRPC server with Unary, Stream and Codec close connections of which
// nothing is taken.
func (a *Answers) Listener(ln net.Listener) net.Listener { return listener{ln, a} }

type listener struct {
	net.Listener
	answers *Answers
}

// Accept implements net.Listener.
func (l listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.answers.wrap(raw), nil
}

func (a *Answers) wrap(raw net.Conn) *conn {
	c := &conn{Conn: raw, answers: a, caller: fair.Network(raw.RemoteAddr().String()), queue: make(map[*charged]struct{})}
	c.late = time.AfterFunc(a.patience/2, c.quiet)
	c.late.Stop()
	return c
}

// conn is a connection of a gRPC server.
type conn struct {
	net.Conn

	answers *Answers
	caller  string

	mu     sync.Mutex
	closed bool
	// queue are the messages that are not read.
	queue map[*charged]struct{}
	// late calls quiet after half of patience in which nothing of the queue is read.
	late *time.Timer
	// collected means that late has called quiet, which has given back what gRPC dropped.
	collected bool
}

// connAddr is the address of a peer. Through it calls find their connection.
type connAddr struct {
	net.Addr
	conn *conn
}

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return connAddr{c.Conn.RemoteAddr(), c} }

// Write implements net.Conn. It closes a connection that takes nothing: gRPC notices
// errors of reading only.
func (c *conn) Write(p []byte) (n int, err error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.answers.patience)); err != nil {
		return 0, err
	}
	if n, err = c.Conn.Write(p); errors.Is(err, os.ErrDeadlineExceeded) {
		c.answers.cutOff.Inc()
		_ = c.Close() // the error is that of the write
	}
	return n, err
}

// Close implements net.Conn. What was not read is dropped.
func (c *conn) Close() error {
	c.mu.Lock()
	dropped := c.queue
	c.closed, c.queue = true, nil
	c.late.Stop()
	c.mu.Unlock()
	for m := range dropped {
		m.give()
	}
	return c.Conn.Close()
}

// quiet closes a connection of which nothing was read when it is called for the second time. gRPC frees no
// message that it drops because its caller has canceled the call just before: the first time, the garbage
// collector takes such messages out of the queue.
func (c *conn) quiet() {
	c.answers.collect()
	c.mu.Lock()
	waiting, cut := len(c.queue) > 0, c.collected
	if waiting && !cut {
		c.collected = true
		c.late.Reset(c.answers.patience / 2)
	}
	c.mu.Unlock()
	if waiting && cut {
		c.answers.cutOff.Inc()
		_ = c.Close() // the peer is gone, whatever the error is
	}
}

// collect runs the garbage collector unless it did so in the last half of patience, however many
// connections are quiet.
func (a *Answers) collect() {
	a.collecting.Lock()
	defer a.collecting.Unlock()
	if began := time.Now(); began.Sub(a.collected) >= a.patience/2 {
		a.collected = began
		runtime.GC()
	}
}

// charged is what a message that waits on a connection was charged.
type charged struct {
	conn   *conn
	call   *call
	caller string
	bytes  int64
}

func (m *charged) give() { m.call.give(m.caller, m.bytes) }

// enqueue charges a call for a message. The error is a status.
func (c *conn) enqueue(of *call, bytes int64) (*charged, error) {
	caller, err := of.charge(bytes)
	if err != nil {
		return nil, err
	}
	m := &charged{conn: c, call: of, caller: caller, bytes: bytes}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		defer m.give()
		return nil, status.Error(codes.Unavailable, "the connection was closed")
	}
	c.queue[m] = struct{}{}
	if len(c.queue) == 1 {
		c.moved()
	}
	return m, nil
}

// progress notes that a part of the message was read.
func (m *charged) progress() {
	m.conn.mu.Lock()
	defer m.conn.mu.Unlock()
	m.conn.moved()
}

// moved gives the peer the time of patience for the next part. The connection is locked.
func (c *conn) moved() {
	c.collected = false
	if len(c.queue) > 0 {
		c.late.Reset(c.answers.patience / 2)
	} else {
		c.late.Stop()
	}
}

// done gives back the charge, once.
func (m *charged) done() {
	c := m.conn
	c.mu.Lock()
	_, waiting := c.queue[m]
	if waiting {
		delete(c.queue, m)
		c.moved()
	}
	c.mu.Unlock()
	if waiting {
		m.give()
	}
}
