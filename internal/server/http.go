package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The paths that every role has, for anybody.
const (
	healthPath  = "GET /healthz"
	readyPath   = "GET /readyz"
	metricsPath = "GET /metrics"
)

// newHTTP makes the HTTP server with the paths that every role has.
func (s *Server) newHTTP() *http.Server {
	s.mux.Handle(healthPath, http.HandlerFunc(alive))
	s.mux.Handle(readyPath, s.readiness)
	s.mux.Handle(metricsPath, promhttp.HandlerFor(s.tel.Gatherer(), promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn), MaxRequestsInFlight: 4,
	}))
	return &http.Server{
		Handler:           s.answers.HTTP(http.MaxBytesHandler(withoutSniffing(s.certifiedHTTP(s.gateHTTP())), s.cfg.Limits.BodyBytes)),
		MaxHeaderBytes:    maxHeaderBytes,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		HTTP2:             &http.HTTP2Config{WriteByteTimeout: s.cfg.Limits.Patience},
		IdleTimeout:       idleTimeout,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
}

// alive answers as long as the process can answer at all. It checks no dependencies:
// a restart would not bring them back.
func alive(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	fmt.Fprintln(w, "alive")
}

// withoutSniffing keeps browsers from guessing that text is a page.
func withoutSniffing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// guardHTTP traces a handler and answers 500 if it panics.
func (s *Server) guardHTTP(pattern string, h http.Handler) http.Handler {
	guarded := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			switch p := recover(); p {
			case nil:
			case http.ErrAbortHandler:
				panic(p) // the documented way to cut a response off
			default:
				s.metrics.panics.Inc()
				s.log.ErrorContext(r.Context(), "request", "pattern", pattern, "panic", p, "stack", string(debug.Stack()))
				http.Error(w, "internal error, logged with trace id "+traceID(r.Context()), http.StatusInternalServerError)
			}
		}()
		h.ServeHTTP(w, r)
	})
	return s.tracingHTTP(pattern, guarded)
}
