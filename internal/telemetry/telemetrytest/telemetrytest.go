// Package telemetrytest gives tests a Telemetry whose spans they can read.
package telemetrytest

import (
	"context"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/trawl-search/trawl/internal/telemetry"
)

// New starts telemetry for one test, shut down at its end: logs of every level
// go to the test's output, each ended span to the exporter.
func New(tb testing.TB) (*telemetry.Telemetry, *tracetest.InMemoryExporter) {
	tb.Helper()
	var cfg telemetry.Config
	cfg.SetDefaults()
	cfg.LogLevel, cfg.LogFormat = "debug", "text"
	spans := tracetest.NewInMemoryExporter()
	t, err := telemetry.Start(context.Background(), cfg, telemetry.Identity{Service: "test", Version: "test"},
		telemetry.WithLogs(tb.Output()), telemetry.WithExporter(spans))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := t.Shutdown(context.Background()); err != nil {
			tb.Error(err)
		}
	})
	return t, spans
}
