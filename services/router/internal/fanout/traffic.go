package fanout

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/stats"
)

// Traffic counts the bytes of the calls of one connection to a searcher, requests and answers as they are on the
// network. Near says that the searcher is in the router's zone. It is for grpc.WithStatsHandler.
func (m *Metrics) Traffic(near bool) stats.Handler {
	zone := zoneOther
	if near {
		zone = zoneOwn
	}
	return traffic{m.bytes.WithLabelValues(zone)}
}

type traffic struct{ bytes prometheus.Counter }

// HandleRPC implements stats.Handler.
func (t traffic) HandleRPC(_ context.Context, s stats.RPCStats) {
	switch s := s.(type) {
	case *stats.InPayload:
		t.bytes.Add(float64(s.WireLength))
	case *stats.OutPayload:
		t.bytes.Add(float64(s.WireLength))
	}
}

// TagRPC implements stats.Handler.
func (traffic) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn implements stats.Handler.
func (traffic) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (traffic) HandleConn(context.Context, stats.ConnStats) {}
