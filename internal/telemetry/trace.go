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
		opts = append(opts, sdktrace.WithSyncer(exporter))
	case cfg.OTLPEndpoint != "":
		collector, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(cfg.OTLPEndpoint))
		if err != nil {
			return nil, nil, fmt.Errorf("collector %s: %w", cfg.OTLPEndpoint, err)
		}
		exporter = collector
		opts = append(opts, sdktrace.WithBatcher(collector))
	}
	return sdktrace.NewTracerProvider(opts...), exporter, nil
}
