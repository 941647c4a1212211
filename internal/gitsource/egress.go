package gitsource

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trawl-search/trawl/internal/gitsource/origin"
)

// egress is the HTTP proxy on a loopback address through which git makes all https and
// http connections. It connects only to the host of the remote repository, at addresses that the
// policy allows.
//
// Checking a URL before the fetch is not enough: a name can resolve to another address a
// moment later, and what a server answers can name other hosts: redirects, bundles, large files,
// alternates. The proxy connects to the very address that it checked, for every connection. It
// does not decrypt https.
type egress struct {
	policy   origin.Policy
	remote   origin.Remote
	maxBytes int64
	token    string
	server   *http.Server
	listener net.Listener
	dialer   net.Dialer

	received atomic.Int64
	exceeded context.CancelCauseFunc
	done     context.Context // ends with the proxy, and its connections with it
	stop     context.CancelFunc
	running  sync.WaitGroup

	mu      sync.Mutex
	refused error // the first refusal of the policy
	failed  error // the last failed connection
}

// openEgress starts a proxy to the host of a remote repository that the policy allows. The caller
// must close it. After more than maxBytes received over all connections it calls exceeded with a
// *Failure.
func openEgress(policy origin.Policy, remote origin.Remote, maxBytes int64, exceeded context.CancelCauseFunc) (*egress, error) {
	var d net.ListenConfig
	listener, err := d.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, failure(Unreachable, err, "cannot listen on a loopback address")
	}
	e := &egress{
		policy: policy, remote: remote, maxBytes: maxBytes, token: rand.Text(), listener: listener, exceeded: exceeded,
		dialer: net.Dialer{Timeout: 30 * time.Second},
	}
	e.done, e.stop = context.WithCancel(context.Background())
	e.server = &http.Server{
		Handler: e, ReadHeaderTimeout: 30 * time.Second,
		BaseContext: func(net.Listener) context.Context { return e.done },
	}
	e.running.Go(func() { _ = e.server.Serve(listener) }) // ends with Close
	return e, nil
}

// close ends the proxy and every connection through it, and waits for them.
func (e *egress) close() {
	e.stop()
	// Shutdown waits for requests that are not tunnels, and running for tunnels. A
	// request that sends nothing is cut off.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if e.server.Shutdown(ctx) != nil {
		_ = e.server.Close()
	}
	e.running.Wait()
}

// url returns the value for git's http.proxy. The password keeps other users of the
// machine out.
func (e *egress) url() string {
	return "http://trawl:" + e.token + "@" + e.listener.Addr().String()
}

// port returns the port that the proxy listens on.
func (e *egress) port() uint16 {
	addr, _ := e.listener.Addr().(*net.TCPAddr) // openEgress listens on TCP
	return uint16(addr.Port)
}

// err returns the first refusal of the policy, else the last failed connection.
func (e *egress) err() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.refused != nil {
		return e.refused
	}
	return e.failed
}

// ServeHTTP implements http.Handler.
func (e *egress) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.running.Add(1)
	defer e.running.Done()
	if !e.authorized(r) {
		w.Header().Set("Proxy-Authenticate", `Basic realm="trawl"`)
		http.Error(w, "proxy authentication required", http.StatusProxyAuthRequired)
		return
	}
	if r.Method == http.MethodConnect {
		e.tunnel(w, r)
		return
	}
	e.forward(w, r)
}

func (e *egress) authorized(r *http.Request) bool {
	want := "Basic " + base64.StdEncoding.EncodeToString([]byte("trawl:"+e.token))
	return subtle.ConstantTimeCompare([]byte(r.Header.Get("Proxy-Authorization")), []byte(want)) == 1
}

// forward forwards one plain http request.
func (e *egress) forward(w http.ResponseWriter, r *http.Request) {
	transport := &http.Transport{
		DialContext:           func(ctx context.Context, _, addr string) (net.Conn, error) { return e.dial(ctx, "http", addr) },
		DisableKeepAlives:     true,
		DisableCompression:    true,
		ResponseHeaderTimeout: 2 * time.Minute,
	}
	defer transport.CloseIdleConnections()
	proxy := httputil.ReverseProxy{
		Rewrite:       func(*httputil.ProxyRequest) {},
		Transport:     transport,
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, sanitize(err.Error()), http.StatusBadGateway)
		},
	}
	proxy.ServeHTTP(w, r)
}

// tunnel serves a CONNECT request.
func (e *egress) tunnel(w http.ResponseWriter, r *http.Request) {
	remote, err := e.dial(r.Context(), "https", r.Host)
	if err != nil {
		status := http.StatusBadGateway
		if _, isRule := errors.AsType[*origin.RuleError](err); isRule {
			status = http.StatusForbidden
		}
		http.Error(w, sanitize(err.Error()), status)
		return
	}
	defer remote.Close()
	local, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "cannot take over the connection", http.StatusInternalServerError)
		return
	}
	defer local.Close()
	defer context.AfterFunc(e.done, func() { remote.Close(); local.Close() })()
	if _, err := io.WriteString(local, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	e.running.Go(func() {
		_, _ = io.Copy(remote, buffered) // either end may close at any time
		remote.Close()
	})
	_, _ = io.Copy(local, remote)
}

// dial connects to the address of a host that the policy allowed.
func (e *egress) dial(ctx context.Context, scheme, hostport string) (net.Conn, error) {
	conn, err := e.dialChecked(ctx, scheme, hostport)
	if err == nil {
		return &countedConn{Conn: conn, egress: e}, nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if rule, ok := errors.AsType[*origin.RuleError](err); ok {
		if e.refused == nil {
			e.refused = rule
		}
	} else {
		e.failed = err
	}
	return nil, err
}

func (e *egress) dialChecked(ctx context.Context, scheme, hostport string) (net.Conn, error) {
	port := e.remote.DialPort()
	if scheme != e.remote.Scheme || hostport != net.JoinHostPort(e.remote.Host, port) {
		return nil, &origin.RuleError{Rule: origin.RuleHost, Detail: fmt.Sprintf(
			"git was sent to %s://%s, and may connect only to the host of the URL that was asked for", scheme, hostport)}
	}
	addr, err := e.policy.AllowedAddress(ctx, e.remote.Host, port)
	if err != nil {
		return nil, err
	}
	return e.dialer.DialContext(ctx, "tcp", net.JoinHostPort(addr.String(), port))
}

// countedConn counts received bytes against the limit.
type countedConn struct {
	net.Conn
	egress *egress
}

// Read implements io.Reader.
func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.egress.received.Add(int64(n)) > c.egress.maxBytes {
		err = tooManyBytes(c.egress.maxBytes)
		c.egress.exceeded(err)
	}
	return n, err
}
