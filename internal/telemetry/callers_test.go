package telemetry_test

import (
	"io"
	"testing"

	"go.opentelemetry.io/otel/baggage"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/trawl-search/trawl/internal/telemetry"
)

// TestCallersDoNotChooseTraces: a server with a gate keeps traces at most at its own rate,
// whatever its callers ask for, and continues their ids.
func TestCallersDoNotChooseTraces(t *testing.T) {
	for rate, want := range map[float64]bool{0: false, 1: true} {
		var logs telemetry.Config
		logs.SetDefaults()
		logs.TraceSampling = rate
		tel, err := telemetry.Start(t.Context(), logs, telemetry.Identity{Service: "test"}, telemetry.WithLogs(io.Discard), telemetry.WithExporter(tracetest.NewInMemoryExporter()))
		if err != nil {
			t.Fatal(err)
		}
		for _, flags := range []string{"00", "01"} {
			from := propagation.MapCarrier{"traceparent": "00-0123456789abcdef0000000000000001-0123456789abcdef-" + flags, "baggage": "a=b"}
			ctx := tel.CallersPropagator().Extract(t.Context(), from)
			_, span := tel.Tracer("test").Start(ctx, "call")
			inside := span.SpanContext()
			span.End()
			if inside.IsSampled() != (want && flags == "01") || inside.TraceID().String() != "0123456789abcdef0000000000000001" {
				t.Errorf("rate %v, flags %s: sampled %v, trace %s", rate, flags, inside.IsSampled(), inside.TraceID())
			}
			if n := baggage.FromContext(ctx).Len(); n != 0 {
				t.Errorf("%d members of baggage came in", n)
			}
		}
		if err := tel.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
