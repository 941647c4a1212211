package server

import (
	"context"
	"time"
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
