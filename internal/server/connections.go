package server

import (
	"errors"
	"net"
	"net/netip"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// limitedListener closes connections that exceed a limit as soon as they are accepted,
// so that one address, or all callers together, cannot take all memory by connecting.
type limitedListener struct {
	net.Listener
	most, perAddress int
	open             prometheus.Gauge
	refused          *prometheus.CounterVec // by limit

	mu    sync.Mutex
	count int
	from  map[netip.Prefix]int
}

// limitConnections returns a listener with at most that many open connections, and at
// most perAddress from one address. The name distinguishes listeners in the metrics.
func limitConnections(ln net.Listener, name string, most, perAddress int, m *metrics) net.Listener {
	return &limitedListener{
		Listener: ln, most: most, perAddress: perAddress, from: make(map[netip.Prefix]int),
		open: m.connections.WithLabelValues(name), refused: m.refusedConnections.MustCurryWith(prometheus.Labels{"listener": name}),
	}
}

// The limits of connections, as their metric names them.
const (
	limitAll     = "all"
	limitAddress = "address"
)

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := network(conn.RemoteAddr())
		if limit := l.take(from); limit != "" {
			l.refused.WithLabelValues(limit).Inc()
			conn.Close() // nothing was read or written, so its error means nothing
			continue
		}
		return &limitedConn{Conn: conn, release: sync.OnceFunc(func() { l.give(from) })}, nil
	}
}

// take counts a connection, or returns the limit that it exceeds.
func (l *limitedListener) take(from netip.Prefix) (exceeded string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.count >= l.most:
		return limitAll
	case l.from[from] >= l.perAddress:
		return limitAddress
	}
	l.count++
	l.from[from]++
	l.open.Set(float64(l.count))
	return ""
}

func (l *limitedListener) give(from netip.Prefix) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count--
	l.open.Set(float64(l.count))
	if l.from[from]--; l.from[from] == 0 {
		delete(l.from, from)
	}
}

// network is the unit of the limit per address: an IPv4 address, or an IPv6 /64,
// which one host usually has. All other addresses count as one.
func network(addr net.Addr) netip.Prefix {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	return netip.PrefixFrom(ip, bits).Masked()
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
