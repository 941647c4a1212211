package server

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/trawl-search/trawl/internal/fair"
)

// Gate decides which calls are admitted. It runs before validation, and before every
// service and handler, including those without a rule of their own and paths that do
// not exist. Only health, the paths that every role has and those of HandleSigned are
// open.
type Gate interface {
	Unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error)
	Stream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error
	HTTP(next http.Handler) http.Handler
}

// Option changes a server that New makes.
type Option func(*Server)

// WithGate sets the gate. Without one all calls are admitted.
func WithGate(g Gate) Option { return func(s *Server) { s.gate = g } }

// open reports whether anybody may call a unary method.
func (s *Server) open(method string) bool {
	return s.gate == nil || strings.HasPrefix(method, "/"+healthv1.Health_ServiceDesc.ServiceName+"/")
}

func (s *Server) gateUnary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if s.open(info.FullMethod) {
		return next(ctx, req)
	}
	return s.gate.Unary(ctx, req, info, next)
}

func (s *Server) gateStream(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if s.gate == nil {
		return next(srv, stream)
	}
	return s.gate.Stream(srv, stream, info, next)
}

// gateHTTP finds the handler with the ServeMux itself, so that no spelling of a path
// gets around the gate.
func (s *Server) gateHTTP() http.Handler {
	if s.gate == nil {
		return s.mux
	}
	guarded := s.gate.HTTP(s.mux)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := s.mux.Handler(r); slices.Contains(s.signed, pattern) {
			s.serveOpen(w, r)
			return
		}
		guarded.ServeHTTP(w, r)
	})
}

// serveOpen serves a request that does not pass the gate.
func (s *Server) serveOpen(w http.ResponseWriter, r *http.Request) {
	from := fair.Network(r.RemoteAddr)
	if !s.openRequests.Take(from, 1) {
		w.Header().Set("Connection", "close")
		http.Error(w, "too many requests without authorization are in progress: try again later", http.StatusServiceUnavailable)
		return
	}
	defer s.openRequests.Give(from, 1)
	s.mux.ServeHTTP(w, r)
}
