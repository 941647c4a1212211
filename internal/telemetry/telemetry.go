// Package telemetry gives a process its logs, traces and metrics.
//
// Logs go through log/slog, each record with the trace and span it belongs to. Traces
// go to an OpenTelemetry collector by OTLP over gRPC, or nowhere. Trace ids exist in
// either case, so that the logs of a request can be found. Prometheus scrapes the
// metrics. Nothing is global, except the error handler of OpenTelemetry itself:
// several roles can run in one process, each with its own component label (see For).
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Identity identifies a process.
type Identity struct {
	// Service is the name in traces and metrics, such as trawl-searcher.
	Service string
	// Version is the build's version; empty means the one that the Go build recorded.
	Version string
	// Instance distinguishes processes of one service; empty means the host name.
	Instance string
}

// Telemetry provides the logger, the tracer and the metrics of components. It is safe
// for concurrent use.
type Telemetry struct {
	root       *slog.Logger // without a component
	logger     *slog.Logger
	tracing    *tracing
	sampling   float64
	registerer prometheus.Registerer
	registry   *prometheus.Registry
	version    string
}

// Option changes what Start sets up.
type Option func(*options)

type options struct {
	logs     io.Writer
	exporter sdktrace.SpanExporter
}

// WithLogs writes logs to w instead of standard error.
func WithLogs(w io.Writer) Option { return func(o *options) { o.logs = w } }

// WithExporter hands each ended span to e at once, instead of to a collector.
func WithExporter(e sdktrace.SpanExporter) Option { return func(o *options) { o.exporter = e } }

// Start sets up logs, traces and metrics. It does not wait for the collector: an
// unreachable one loses spans, never requests. Call Shutdown at the end.
func Start(ctx context.Context, cfg Config, id Identity, opts ...Option) (*Telemetry, error) {
	o := options{logs: os.Stderr}
	for _, opt := range opts {
		opt(&o)
	}
	id = id.complete()
	logger := newLogger(o.logs, cfg)
	tracing, err := startTracing(ctx, cfg, id, o.exporter)
	if err != nil {
		return nil, err
	}
	registry, err := newRegistry(id)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start metrics: %w", err), tracing.stop(ctx))
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		logger.Warn("telemetry lost", "error", err)
	}))
	t := &Telemetry{root: logger, tracing: tracing, sampling: cfg.TraceSampling, registry: registry, version: id.Version}
	return t.For(id.Service), nil
}

// Shutdown sends the remaining spans, until ctx ends, and stops. Spans that could not
// be sent are lost, and the error says so. What an exporter reports later is not logged.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	err := t.tracing.stop(ctx)
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {}))
	return err
}

// For returns the telemetry of one component of the process: its log records have the
// attribute component, its metrics the label component. Before For, that is the
// service's name. Each component may register the same metric. Everything else is
// shared, and only one of them is shut down.
func (t *Telemetry) For(component string) *Telemetry {
	own := *t
	own.logger = t.root.With("component", component)
	own.registerer = prometheus.WrapRegistererWith(prometheus.Labels{"component": component}, t.registry)
	return &own
}

// Version is the version of the program.
func (t *Telemetry) Version() string { return t.version }

// Logger is the component's logger. Use its …Context methods: they add the trace id.
func (t *Telemetry) Logger() *slog.Logger { return t.logger }

// Tracer makes spans; the name is the instrumenting package.
func (t *Telemetry) Tracer(name string) trace.Tracer { return t.tracing.Tracer(name) }

// TracerProvider is for libraries that make spans themselves.
func (t *Telemetry) TracerProvider() trace.TracerProvider { return t.tracing.TracerProvider }

// Records reports whether spans record more than their ids.
func (t *Telemetry) Records() bool { return t.tracing.recording != nil }

// Propagator carries the trace context and baggage from process to process, as
// the W3C headers.
func (t *Telemetry) Propagator() propagation.TextMapPropagator {
	return propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
}

// CallersPropagator is the propagator of a server whose callers are not trusted. It
// keeps their trace ids, so that logs can be found by them. It grants a caller's wish
// to sample a trace only at the configured rate, whatever the id. It drops baggage.
func (t *Telemetry) CallersPropagator() propagation.TextMapPropagator {
	return ownSampling{propagation.TraceContext{}, t.sampling}
}

type ownSampling struct {
	propagation.TraceContext
	rate float64
}

// Extract implements propagation.TextMapPropagator.
func (p ownSampling) Extract(ctx context.Context, from propagation.TextMapCarrier) context.Context {
	ctx = p.TraceContext.Extract(ctx, from)
	remote := trace.SpanContextFromContext(ctx)
	if !remote.IsValid() {
		return ctx
	}
	return trace.ContextWithRemoteSpanContext(ctx, remote.WithTraceFlags(remote.TraceFlags().WithSampled(remote.IsSampled() && rand.Float64() < p.rate)))
}

// Metrics registers a component's metrics.
func (t *Telemetry) Metrics() prometheus.Registerer { return t.registerer }

// Gatherer is everything registered in the process, for /metrics.
func (t *Telemetry) Gatherer() prometheus.Gatherer { return t.registry }

// complete fills in the defaults.
func (id Identity) complete() Identity {
	if id.Version == "" {
		id.Version = "unknown"
		if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
			id.Version = info.Main.Version
		}
	}
	if id.Instance == "" {
		id.Instance, _ = os.Hostname()
	}
	return id
}

// newRegistry returns a registry with the metrics of every process.
func newRegistry(id Identity) (*prometheus.Registry, error) {
	r := prometheus.NewPedanticRegistry()
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name:        "trawl_build_info",
		Help:        "Always 1; the labels name the running build.",
		ConstLabels: prometheus.Labels{"version": id.Version, "service": id.Service},
	})
	build.Set(1)
	for _, c := range []prometheus.Collector{
		build, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return r, nil
}
