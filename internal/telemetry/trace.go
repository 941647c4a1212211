package telemetry

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// tracing makes spans, and sends them if there is somewhere to send them.
type tracing struct {
	trace.TracerProvider

	// recording and its exporter are nil if spans go nowhere.
	recording *sdktrace.TracerProvider
	exporter  sdktrace.SpanExporter
}

// startTracing sends spans to the exporter, or to the collector of the configuration.
// If there is neither, spans have only their ids.
func startTracing(ctx context.Context, cfg Config, id Identity, exporter sdktrace.SpanExporter) (*tracing, error) {
	sampler := sdktrace.TraceIDRatioBased(cfg.TraceSampling)
	opts := []sdktrace.TracerProviderOption{
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", id.Service),
			attribute.String("service.version", id.Version),
			attribute.String("service.instance.id", id.Instance),
		)),
		sdktrace.WithSampler(sdktrace.ParentBased(sampler)),
	}
	switch {
	case exporter != nil:
		opts = append(opts, sdktrace.WithSyncer(discreet{exporter}))
	case cfg.OTLPEndpoint != "":
		collector, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(cfg.OTLPEndpoint))
		if err != nil {
			return nil, fmt.Errorf("start tracing: collector %s: %w", cfg.OTLPEndpoint, err)
		}
		exporter = collector
		opts = append(opts, sdktrace.WithBatcher(discreet{collector}))
	default:
		return &tracing{TracerProvider: idsOnly{sampler: sampler}}, nil
	}
	recording := sdktrace.NewTracerProvider(opts...)
	return &tracing{TracerProvider: recording, recording: recording, exporter: exporter}, nil
}

// stop sends the remaining spans, until ctx ends.
func (t *tracing) stop(ctx context.Context) error {
	if t.recording == nil {
		return nil
	}
	err := t.recording.Shutdown(ctx)
	if err == nil {
		return nil
	}
	// The provider leaves its exporter running, which goes on trying.
	return fmt.Errorf("stop tracing: %w", errors.Join(err, t.exporter.Shutdown(ctx)))
}

// discreet keeps the texts of errors out of exported spans: they can name repos and
// quote queries, and readers of traces may not be allowed to search. The status and
// its code stay. The log has the text, with the trace id.
type discreet struct{ sdktrace.SpanExporter }

// ExportSpans implements sdktrace.SpanExporter.
func (d discreet) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	quiet := make([]sdktrace.ReadOnlySpan, len(spans))
	for i, s := range spans {
		quiet[i] = textless{s}
	}
	return d.SpanExporter.ExportSpans(ctx, quiet)
}

// textless is a span without the texts of errors.
type textless struct{ sdktrace.ReadOnlySpan }

// Status implements sdktrace.ReadOnlySpan.
func (t textless) Status() sdktrace.Status {
	return sdktrace.Status{Code: t.ReadOnlySpan.Status().Code}
}

// Events implements sdktrace.ReadOnlySpan. Errors are recorded as events.
func (t textless) Events() []sdktrace.Event { return nil }
