package telemetry

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// newProvider makes spans and, if there is somewhere to send them, sends them:
// by the exporter given, or to the collector of the configuration.
func newProvider(ctx context.Context, cfg Config, id Identity, exporter sdktrace.SpanExporter) (*sdktrace.TracerProvider, sdktrace.SpanExporter, error) {
	opts := []sdktrace.TracerProviderOption{
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", id.Service),
			attribute.String("service.version", id.Version),
			attribute.String("service.instance.id", id.Instance),
		)),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(cfg.TraceSampling))),
	}
	switch {
	case exporter != nil:
		opts = append(opts, sdktrace.WithSyncer(discreet{exporter}))
	case cfg.OTLPEndpoint != "":
		collector, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(cfg.OTLPEndpoint))
		if err != nil {
			return nil, nil, fmt.Errorf("collector %s: %w", cfg.OTLPEndpoint, err)
		}
		exporter = collector
		opts = append(opts, sdktrace.WithBatcher(discreet{collector}))
	}
	return sdktrace.NewTracerProvider(opts...), exporter, nil
}

// discreet keeps the texts of errors out of what is exported: they can name
// repos and quote queries, and who may read traces is not who may search. That
// there was an error, and its code, stay. The log has the text, by the trace id.
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
