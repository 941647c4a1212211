package server

import (
	"errors"
	"net"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trawl-search/trawl/internal/fair"
)

// limitedListener divides connections among addresses, and closes more as soon as they are
// accepted, so that no address can take all memory, or keep all others out, by connecting.
type limitedListener struct {
	net.Listener
	open    *fair.Pool
	count   prometheus.Gauge
	refused prometheus.Counter
}

// limitConnections returns a listener with at most that many open connections. The name
// distinguishes listeners in the metrics.
func limitConnections(ln net.Listener, name string, most int, m *metrics) net.Listener {
	return &limitedListener{
		Listener: ln, open: fair.NewPool(int64(most)),
		count: m.connections.WithLabelValues(name), refused: m.refusedConnections.WithLabelValues(name),
	}
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := fair.Network(conn.RemoteAddr().String())
		if !l.open.Take(from, 1) {
			l.refused.Inc()
			conn.Close() // nothing was read or written, so its error means nothing
			continue
		}
		l.count.Inc()
		return &limitedConn{Conn: conn, release: sync.OnceFunc(func() {
			l.open.Give(from, 1)
			l.count.Dec()
		})}, nil
	}
}

// limitedConn is a connection that a limitedListener counts until it is closed.
type limitedConn struct {
	net.Conn
	release func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	defer c.release()
	return c.Conn.Close()
}

// CloseWrite lets an HTTP server end its response to a request that it did not read in
// full.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
