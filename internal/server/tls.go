package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/trawl-search/trawl/internal/telemetry"
	"github.com/trawl-search/trawl/internal/tlsfiles"
)

// The names that roles have in their certificates, unless settings say otherwise.
const (
	RouterName   = "spiffe://trawl/router"
	SearcherName = "spiffe://trawl/searcher"
)

// loadTLS reads the files of both servers' certificate, if there is one.
func (s *Server) loadTLS() (err error) {
	if s.cfg.TLS.Enabled() {
		s.tls, err = tlsfiles.NewServer(s.cfg.TLS, s.log)
	}
	return err
}

// transport returns the option for gRPC's transport: TLS, or none.
func (s *Server) transport() []grpc.ServerOption {
	if s.tls == nil {
		return nil
	}
	creds := credentials.NewTLS(s.tls.Config(false, "h2"))
	return []grpc.ServerOption{grpc.Creds(&loggedHandshakes{TransportCredentials: creds, log: s.log})}
}

// refusalsEvery is the least time between two log lines about refused handshakes: anybody
// can cause them.
const refusalsEvery = time.Second

// loggedHandshakes logs why callers were refused: the callers often see only a closed
// connection.
type loggedHandshakes struct {
	credentials.TransportCredentials

	log    *slog.Logger
	mu     sync.Mutex
	logged time.Time
}

// ServerHandshake implements credentials.TransportCredentials.
func (l *loggedHandshakes) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := l.TransportCredentials.ServerHandshake(raw)
	if err != nil && !errors.Is(err, io.EOF) { // probes of the port hang up at once
		l.mu.Lock()
		defer l.mu.Unlock()
		if time.Since(l.logged) >= refusalsEvery {
			l.logged = time.Now()
			l.log.InfoContext(context.Background(), "TLS handshake failed", "peer", raw.RemoteAddr().String(), "error", err)
		}
	}
	return conn, info, err
}

// Clone implements credentials.TransportCredentials.
func (l *loggedHandshakes) Clone() credentials.TransportCredentials {
	return &loggedHandshakes{TransportCredentials: l.TransportCredentials.Clone(), log: l.log}
}

// serveHTTP serves HTTP/1.1, and with TLS also HTTP/2.
func (s *Server) serveHTTP() error {
	if s.tls == nil {
		return s.http.Serve(s.httpLn)
	}
	s.http.TLSConfig = s.tls.Config(true, "h2", "http/1.1")
	return s.http.ServeTLS(s.httpLn, "", "")
}

// certifiedHTTP refuses callers without the certificate that they need. The paths that
// the gate leaves open stay open: health probes, metrics scrapers and senders of
// webhooks have no certificates.
func (s *Server) certifiedHTTP(next http.Handler) http.Handler {
	if s.tls == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := s.tls.CheckCaller(r.TLS); err != nil {
			if _, pattern := s.mux.Handler(r); !slices.Contains(s.signed, pattern) {
				http.Error(w, err.Error(), http.StatusForbidden)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// warnOfPlainText logs a warning, once, if other machines can read the traffic.
func (s *Server) warnOfPlainText(ctx context.Context) {
	if s.tls != nil {
		return
	}
	for _, addr := range []net.Addr{s.GRPCAddr(), s.HTTPAddr()} {
		if at, err := netip.ParseAddrPort(addr.String()); err != nil || !at.Addr().Unmap().IsLoopback() {
			s.log.WarnContext(ctx, "connections are not encrypted: anybody on the network can read queries, code and tokens; "+
				"set tls.cert-file and tls.key-file, or encrypt by other means", "grpc", s.GRPCAddr().String(), "http", s.HTTPAddr().String())
			return
		}
	}
}

// Transport returns the transport for Dial: TLS that shows and demands the certificates
// of the configuration, or none. It is safe for concurrent use, and reads the files
// again when they change.
func Transport(cfg tlsfiles.RoleConfig, tel *telemetry.Telemetry) (credentials.TransportCredentials, error) {
	if !cfg.Enabled() {
		return insecure.NewCredentials(), nil
	}
	client, err := tlsfiles.NewRoleClient(cfg, tel.Logger())
	if err != nil {
		return nil, fmt.Errorf("connect to other roles: %w", err)
	}
	return client.Credentials(), nil
}
