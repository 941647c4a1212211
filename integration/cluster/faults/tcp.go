// Package faults puts faults between programs that talk to each other: a TCP
// proxy that delays, drips, cuts and resets, and a proxy before an S3 endpoint
// that fails and corrupts. Both run in the process of the test.
package faults

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/trawl-search/trawl/internal/wait"
)

// TCPFault is what a TCP proxy does to the bytes that it forwards in both directions, on
// open and new connections. Its zero value is no fault.
type TCPFault struct {
	// Delay holds back each piece of at most 32 KiB.
	Delay time.Duration
	// BytesPerSecond limits each direction of each connection; 0 is no limit.
	BytesPerSecond int
	// Cut holds everything back silently, like a pulled cable. The proxy forwards
	// what it held back when the fault ends.
	Cut bool
	// Reset resets open connections, and new ones as soon as they are accepted.
	Reset bool
}

// TCP is a proxy in front of one TCP server. It is safe for concurrent use.
type TCP struct {
	ln     net.Listener
	target func(context.Context) (string, error)
	ctx    context.Context //nolint:containedctx // lives until Close
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu      sync.Mutex
	fault   TCPFault
	changed wait.Change // of fault
}

// NewTCP listens on an address, whose port may be 0. It calls target for the server's
// HOST:PORT at each connection, since a restarted server may have a new one. The caller
// closes the proxy.
func NewTCP(listen string, target func(context.Context) (string, error)) (*TCP, error) {
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("start a TCP proxy: %w", err)
	}
	p := &TCP{ln: ln, target: target}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.ended.Go(p.accept)
	return p, nil
}

// Addr is where the proxy listens, HOST:PORT.
func (p *TCP) Addr() string { return p.ln.Addr().String() }

// Close ends all connections and waits for them.
func (p *TCP) Close() error {
	p.cancel()
	err := p.ln.Close()
	p.ended.Wait()
	return err
}

// Set changes what the proxy does from now on.
func (p *TCP) Set(f TCPFault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = f
	p.changed.Notify()
}

func (p *TCP) state() (TCPFault, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fault, p.changed.Next()
}

func (p *TCP) accept() {
	for {
		conn, err := p.ln.Accept()
		if err != nil {
			return // closed
		}
		p.ended.Go(func() { p.serve(conn) })
	}
}

// serve forwards between a caller and the server until either closes or a fault ends the
// connection.
func (p *TCP) serve(caller net.Conn) {
	ctx, cancel := context.WithCancelCause(p.ctx)
	defer cancel(nil)
	stop := context.AfterFunc(ctx, func() { end(caller, context.Cause(ctx)) })
	defer stop()
	defer caller.Close()
	if !p.wait(ctx, cancel, 0) {
		return
	}
	server, err := p.dial(ctx)
	if err != nil {
		cancel(errReset)
		end(caller, errReset)
		return
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { end(server, context.Cause(ctx)) })()
	var both sync.WaitGroup
	both.Go(func() { p.forward(ctx, cancel, server, caller) })
	both.Go(func() { p.forward(ctx, cancel, caller, server) })
	both.Go(func() { p.watchResets(ctx, cancel) })
	both.Wait()
}

func (p *TCP) dial(ctx context.Context) (net.Conn, error) {
	target, err := p.target(ctx)
	if err != nil {
		return nil, err
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", target)
}

// errReset is the cause that makes end reset a connection.
var errReset = errors.New("connection reset by the proxy")

// end closes a connection, with a reset if the cause is errReset.
func end(c net.Conn, cause error) {
	if tcp, ok := c.(*net.TCPConn); ok && errors.Is(cause, errReset) {
		_ = tcp.SetLinger(0) // makes Close send a reset
	}
	c.Close()
}

// watchResets cancels the connection when a reset is set, even while it is idle.
func (p *TCP) watchResets(ctx context.Context, cancel context.CancelCauseFunc) {
	for ctx.Err() == nil {
		f, changed := p.state()
		if f.Reset {
			cancel(errReset)
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// forward copies one direction. When it ends, it ends the whole connection.
func (p *TCP) forward(ctx context.Context, cancel context.CancelCauseFunc, to, from net.Conn) {
	defer cancel(nil)
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		for left := buf[:n]; len(left) > 0; {
			if !p.wait(ctx, cancel, len(left)) {
				return
			}
			piece := left[:p.piece(len(left))]
			if _, err := to.Write(piece); err != nil {
				return
			}
			left = left[len(piece):]
		}
		if err != nil {
			return
		}
	}
}

// dripsPerSecond is how often a limited connection forwards a piece.
const dripsPerSecond = 20

// piece returns how many of n bytes may be forwarded at once.
func (p *TCP) piece(n int) int {
	f, _ := p.state()
	if f.BytesPerSecond == 0 {
		return n
	}
	return min(n, max(1, f.BytesPerSecond/dripsPerSecond))
}

// wait waits until n bytes may be forwarded. It returns false if the connection has ended.
func (p *TCP) wait(ctx context.Context, cancel context.CancelCauseFunc, n int) bool {
	for {
		f, changed := p.state()
		if f.Reset {
			cancel(errReset)
			return false
		}
		if f.Cut {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return false
			}
		}
		pause := f.Delay
		if f.BytesPerSecond > 0 && n > 0 {
			pause += time.Second * time.Duration(p.piece(n)) / time.Duration(f.BytesPerSecond)
		}
		select {
		case <-time.After(pause):
			return ctx.Err() == nil
		case <-ctx.Done():
			return false
		}
	}
}
