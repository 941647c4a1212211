package server

import (
	"context"
	"time"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// drain ends both servers as Run promises. HTTP goes last, so that readiness
// and metrics can be read until the end.
func (s *Server) drain(ctx context.Context) {
	s.lifecycle.Unmet("shutting down")
	s.log.InfoContext(ctx, "draining", "delay", s.cfg.DrainDelay, "timeout", s.cfg.DrainTimeout)
	time.Sleep(s.cfg.DrainDelay)
	close(s.draining)
	ctx, cancel := context.WithTimeout(ctx, s.cfg.DrainTimeout)
	defer cancel()
	s.stopGRPC(ctx)
	if err := s.http.Shutdown(ctx); err != nil {
		s.log.WarnContext(ctx, "HTTP requests cut off", "error", err)
		s.http.Close() // its error is that of Shutdown
	}
	s.log.InfoContext(ctx, "drained")
}

// stopGRPC lets calls end until ctx ends, then cuts them off.
func (s *Server) stopGRPC(ctx context.Context) {
	done := make(chan struct{})
	idle := s.local.close()
	go func() {
		defer close(done)
		s.grpc.GracefulStop()
		<-idle
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.log.WarnContext(ctx, "gRPC calls cut off", "after", s.cfg.DrainTimeout)
		s.grpc.Stop()
		s.local.cancel()
		<-done
	}
}

// endWatches makes streams of health updates end when the drain begins: they
// have no end of their own and would use up the whole drain timeout.
func (s *Server) endWatches(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if info.FullMethod != healthv1.Health_Watch_FullMethodName {
		return next(srv, stream)
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	go func() {
		select {
		case <-s.draining:
			cancel()
		case <-ctx.Done():
		}
	}()
	return next(srv, streamWithContext{stream, ctx})
}

// streamWithContext is a stream under another context.
type streamWithContext struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s streamWithContext) Context() context.Context { return s.ctx }
