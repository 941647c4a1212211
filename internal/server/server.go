// Package server is the shell of every role: a gRPC and an HTTP server with limits,
// health and readiness, metrics, traces, validation of requests, protection from
// panics, and a shutdown that lets running calls end. Roles call each other through
// its other half, Dial.
//
//	srv, err := server.New(cfg, tel)
//	searchv1.RegisterSearchServiceServer(srv, service)
//	etcd := srv.Readiness().Condition("etcd") // etcd.Met(), etcd.Unmet("…")
//	err = srv.Run(ctx)                        // serves until ctx ends, then drains
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"

	"github.com/trawl-search/trawl/internal/delivery"
	"github.com/trawl-search/trawl/internal/fair"
	"github.com/trawl-search/trawl/internal/telemetry"
	"github.com/trawl-search/trawl/internal/tlsfiles"
)

// Server is the gRPC and the HTTP server of one role. Services and handlers are added
// before Run; the other methods are safe for concurrent use.
type Server struct {
	cfg        Config
	log        *slog.Logger
	tel        *telemetry.Telemetry
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	grpc       *grpc.Server
	local      *Local
	health     *health.Server
	mux        *http.ServeMux
	http       *http.Server
	readiness  *Readiness
	lifecycle  *Condition
	draining   chan struct{}
	metrics    *metrics
	gate       Gate             // nil: all calls are admitted
	tls        *tlsfiles.Server // nil: plain text
	// early means that the gate runs before requests are read.
	early   bool
	answers *delivery.Answers
	// openCalls and openRequests are slots of gRPC and HTTP requests that do not pass the gate.
	openCalls, openRequests *fair.Pool
	// signed are the patterns of HandleSigned.
	signed []string

	mu       sync.Mutex
	services []string
	closed   bool
	grpcLn   net.Listener
	httpLn   net.Listener
}

// errClosed is the error of calls after Close.
var errClosed = errors.New("the server was closed")

var _ grpc.ServiceRegistrar = (*Server)(nil)

// New makes the servers, registers their metrics, health and reflection, and the
// paths /healthz, /readyz and /metrics, and reads the files of TLS. It does not
// listen yet. A server that never runs must be closed.
func New(cfg Config, tel *telemetry.Telemetry, options ...Option) (*Server, error) {
	s := &Server{
		cfg: cfg, log: tel.Logger(), tel: tel, tracer: tel.Tracer("github.com/trawl-search/trawl/internal/server"), propagator: tel.Propagator(),
		health: health.NewServer(), mux: http.NewServeMux(), draining: make(chan struct{}),
		signed: []string{healthPath, readyPath, metricsPath}, openCalls: fair.NewPool(maxOpenCalls), openRequests: fair.NewPool(maxOpenRequests),
	}
	for _, change := range options {
		change(s)
	}
	if err := s.loadTLS(); err != nil {
		return nil, err
	}
	m, err := newMetrics(tel.Metrics())
	if err != nil {
		return nil, fmt.Errorf("register the server's metrics: %w", err)
	}
	s.metrics = m
	if s.answers, err = delivery.New(cfg.Limits.UnreadBytes, cfg.Limits.Patience, tel.Metrics()); err != nil {
		return nil, fmt.Errorf("register the metrics of answers: %w", err)
	}
	unary, stream := s.interceptors(m)
	s.grpc, s.local = grpc.NewServer(s.grpcOptions(unary, stream)...), newLocal(unary, stream)
	s.readiness = newReadiness(s.setHealth, s.log)
	if err := tel.Metrics().Register(conditions{s.readiness}); err != nil {
		return nil, fmt.Errorf("register the readiness: %w", err)
	}
	s.lifecycle = s.readiness.Condition("server")
	s.lifecycle.Unmet("not listening yet")
	// Anybody may check, so nobody may watch: streams could be held open in any number. Clients
	// that watch take UNIMPLEMENTED for healthy.
	checks := healthv1.Health_ServiceDesc
	checks.Streams = nil
	s.grpc.RegisterService(s.gatedFirst(&checks), s.health)
	s.local.register(&checks, s.health)
	reflection.Register(s.grpc)
	s.http = s.newHTTP()
	return s, nil
}

// RegisterService implements grpc.ServiceRegistrar, for the generated
// Register…Server functions. The service's health follows the readiness.
func (s *Server) RegisterService(desc *grpc.ServiceDesc, impl any) {
	s.grpc.RegisterService(s.gatedFirst(desc), impl)
	s.local.register(desc, impl)
	s.mu.Lock()
	s.services = append(s.services, desc.ServiceName)
	s.mu.Unlock()
	s.health.SetServingStatus(desc.ServiceName, healthv1.HealthCheckResponse_NOT_SERVING)
}

// Local calls the services from within this process.
func (s *Server) Local() *Local { return s.local }

// Handle adds an HTTP handler for a pattern of http.ServeMux. Requests are
// traced, limited in size, and a panic ends only the request.
func (s *Server) Handle(pattern string, h http.Handler) {
	s.mux.Handle(pattern, s.guardHTTP(pattern, h))
}

// HandleSigned is Handle for a handler that authenticates callers itself, such as by a
// signature of the request. The gate does not check these calls.
func (s *Server) HandleSigned(pattern string, h http.Handler) {
	s.signed = append(s.signed, pattern)
	s.Handle(pattern, h)
}

// Readiness is where the role keeps its conditions.
func (s *Server) Readiness() *Readiness { return s.readiness }

// Draining is closed at shutdown when running calls should end. Endless streams must
// watch it.
func (s *Server) Draining() <-chan struct{} { return s.draining }

// setHealth updates gRPC's health service.
func (s *Server) setHealth(ready bool) {
	status := healthv1.HealthCheckResponse_NOT_SERVING
	if ready {
		status = healthv1.HealthCheckResponse_SERVING
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range append(s.services, "") {
		s.health.SetServingStatus(name, status)
	}
}

// Listen binds both addresses, so that the ports are known before Run. Calls
// wait in the kernel until Run.
func (s *Server) Listen(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if s.grpcLn != nil {
		return nil
	}
	var lc net.ListenConfig
	g, err := lc.Listen(ctx, "tcp", s.cfg.GRPC)
	if err != nil {
		return fmt.Errorf("listen for gRPC on %s: %w", s.cfg.GRPC, err)
	}
	h, err := lc.Listen(ctx, "tcp", s.cfg.HTTP)
	if err != nil {
		return errors.Join(fmt.Errorf("listen for HTTP on %s: %w", s.cfg.HTTP, err), g.Close())
	}
	s.grpcLn = s.answers.Listener(limitConnections(g, "grpc", s.cfg.Limits.Connections, s.metrics))
	s.httpLn = limitConnections(h, "http", s.cfg.Limits.Connections, s.metrics)
	return nil
}

// GRPCAddr is the address that gRPC is bound to, or nil before Listen.
func (s *Server) GRPCAddr() net.Addr { return s.addr(func() net.Listener { return s.grpcLn }) }

// HTTPAddr is the address that HTTP is bound to, or nil before Listen.
func (s *Server) HTTPAddr() net.Addr { return s.addr(func() net.Listener { return s.httpLn }) }

func (s *Server) addr(of func() net.Listener) net.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ln := of(); ln != nil {
		return ln.Addr()
	}
	return nil
}

// Run listens if that was not done, serves until ctx ends, and drains: it reports not
// ready, goes on for DrainDelay so that callers notice, then takes no new calls and
// gives the running ones DrainTimeout. It returns nil after a shutdown by ctx. A
// server runs once.
func (s *Server) Run(ctx context.Context) error {
	if err := s.Listen(ctx); err != nil {
		return errors.Join(err, s.Close())
	}
	s.log.InfoContext(ctx, "serving", "grpc", s.GRPCAddr().String(), "http", s.HTTPAddr().String(), "tls", s.tls != nil)
	s.warnOfPlainText(ctx)
	s.metrics.grpc.InitializeMetrics(s.grpc)
	group, stop := errgroup.WithContext(ctx)
	group.Go(func() error { return serveError("gRPC", s.grpc.Serve(s.grpcLn)) })
	group.Go(func() error { return serveError("HTTP", s.serveHTTP()) })
	group.Go(func() error {
		<-stop.Done()
		s.drain(context.WithoutCancel(ctx))
		return nil
	})
	s.lifecycle.Met()
	return group.Wait()
}

// serveError wraps an error of serving, except that of a server that was stopped.
func serveError(what string, err error) error {
	if err == nil || errors.Is(err, http.ErrServerClosed) || errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return fmt.Errorf("serve %s: %w", what, err)
}

// Close stops everything at once. It is for a server that never ran, or that must not
// drain. Calling it again does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	listeners := []net.Listener{s.grpcLn, s.httpLn}
	s.mu.Unlock()
	idle := s.local.close()
	s.local.cancel()
	s.grpc.Stop()
	<-idle
	err := s.http.Close()
	for _, ln := range listeners {
		if ln != nil {
			ln.Close() // a server may have closed it: the error means nothing
		}
	}
	return err
}
