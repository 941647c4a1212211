package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/delivery"
	"github.com/trawl-search/trawl/internal/fair"
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
	s.mux.Handle(metricsPath, scrapes(promhttp.HandlerFor(s.tel.Gatherer(), promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	})))
	return &http.Server{
		Handler:           s.answers.HTTP(http.MaxBytesHandler(withoutSniffing(withoutEncodings(s.certifiedHTTP(s.gateHTTP()))), s.cfg.Limits.BodyBytes)),
		MaxHeaderBytes:    maxHeaderBytes,
		ReadHeaderTimeout: readHeaderTimeout,
		ReadTimeout:       readTimeout,
		HTTP2:             &http.HTTP2Config{WriteByteTimeout: s.cfg.Limits.Patience},
		IdleTimeout:       idleTimeout,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
}

// maxScrapes bounds the answers with metrics that are made and sent at once.
const maxScrapes = 16

// scrapes divides maxScrapes among addresses.
func scrapes(next http.Handler) http.Handler {
	slots := fair.NewPool(maxScrapes)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from := fair.Network(r.RemoteAddr)
		if !slots.Take(from, 1) {
			http.Error(w, "too many scrapes are in progress: try again later", http.StatusServiceUnavailable)
			return
		}
		defer slots.Give(from, 1)
		next.ServeHTTP(w, r)
	})
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

// withoutEncodings refuses bodies with a Content-Encoding: what a small one becomes would have no bound.
func withoutEncodings(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, encoding := range r.Header.Values("Content-Encoding") {
			if encoding == "" || strings.EqualFold(encoding, "identity") {
				continue
			}
			w.Header().Set("Accept-Encoding", "identity")
			w.Header().Set("Connection", "close") // the request was not read
			why := status.Newf(codes.InvalidArgument, "the body has the Content-Encoding %.100q: send it without one", encoding)
			_ = delivery.WriteError(w, http.StatusUnsupportedMediaType, why) // an error means that the caller has gone
			return
		}
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
