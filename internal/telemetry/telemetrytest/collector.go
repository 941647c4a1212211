package telemetrytest

import (
	"context"
	"encoding/hex"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// Collector is an OpenTelemetry collector that keeps the spans that it receives by
// OTLP over gRPC. It is safe for concurrent use.
type Collector struct {
	collectorv1.UnimplementedTraceServiceServer

	// URL is where it listens.
	URL string

	mu    sync.Mutex
	spans []Span
}

// Span is a received span.
type Span struct {
	*tracev1.Span

	// Service and Resource are of the process that sent it, and Attrs its own.
	Service         string
	Resource, Attrs map[string]string
}

// NewCollector runs a collector until the test ends.
func NewCollector(tb testing.TB) *Collector {
	tb.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	c, server := &Collector{URL: "http://" + ln.Addr().String()}, grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(server, c)
	served := make(chan error, 1)
	go func() { served <- server.Serve(ln) }()
	tb.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			tb.Error(err)
		}
	})
	return c
}

// Export implements the collector's service.
func (c *Collector) Export(_ context.Context, req *collectorv1.ExportTraceServiceRequest) (*collectorv1.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range req.GetResourceSpans() {
		from := attrs(resource.GetResource().GetAttributes())
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, Span{Span: s, Service: from["service.name"], Resource: from, Attrs: attrs(s.GetAttributes())})
			}
		}
	}
	return &collectorv1.ExportTraceServiceResponse{}, nil
}

// attrs writes values as text.
func attrs(pairs []*commonv1.KeyValue) map[string]string {
	m := make(map[string]string, len(pairs))
	for _, p := range pairs {
		text := p.GetValue().GetStringValue()
		if text == "" {
			_, text, _ = strings.Cut(p.GetValue().String(), ":")
		}
		m[p.GetKey()] = text
	}
	return m
}

// Spans are all spans so far.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Trace are the spans of one trace so far, by their ids.
func (c *Collector) Trace(id string) map[string]Span {
	found := make(map[string]Span)
	for _, s := range c.Spans() {
		if hex.EncodeToString(s.TraceId) == id {
			found[hex.EncodeToString(s.SpanId)] = s
		}
	}
	return found
}
