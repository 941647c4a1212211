package server

import (
	"strings"

	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/stats"
)

// metrics are the servers' metrics: gRPC calls under the names that ready-made
// dashboards know (grpc_server_…), and panics.
type metrics struct {
	grpc   *grpcprom.ServerMetrics
	panics prometheus.Counter
	// connections counts open connections by listener, and refusedConnections those that
	// were refused.
	connections        *prometheus.GaugeVec
	refusedConnections *prometheus.CounterVec
}

// latencies are the bounds of the histogram of call durations, in seconds: from
// a pruned query to the longest deadline.
var latencies = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		grpc: grpcprom.NewServerMetrics(grpcprom.WithServerHandlingTimeHistogram(grpcprom.WithHistogramBuckets(latencies))),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trawl_server_panics_total",
			Help: "Calls and requests that ended in a panic.",
		}),
		connections: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trawl_server_connections", Help: "Connections that are open, by listener: grpc or http.",
		}, []string{"listener"}),
		refusedConnections: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_server_refused_connections_total",
			Help: "Connections that were closed because too many of their address were open, by listener.",
		}, []string{"listener"}),
	}
	for _, c := range []prometheus.Collector{m.grpc, m.panics, m.connections, m.refusedConnections} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	for _, listener := range []string{"grpc", "http"} {
		m.connections.WithLabelValues(listener)
		m.refusedConnections.WithLabelValues(listener)
	}
	return m, nil
}

// worthTracing leaves out calls of gRPC's own services, such as health checks.
func worthTracing(info *stats.RPCTagInfo) bool {
	return !strings.HasPrefix(info.FullMethodName, "/grpc.")
}

// conditions exports which conditions the process needs and whether they are met.
type conditions struct{ *Readiness }

var conditionMet = prometheus.NewDesc("trawl_server_condition",
	"What the process needs to be ready: 1 where it has it, or else 0.", []string{"condition"}, nil)

// Describe implements prometheus.Collector.
func (conditions) Describe(to chan<- *prometheus.Desc) { to <- conditionMet }

// Collect implements prometheus.Collector.
func (c conditions) Collect(to chan<- prometheus.Metric) {
	c.each(func(name string, met bool) {
		value := 0.0
		if met {
			value = 1
		}
		to <- prometheus.MustNewConstMetric(conditionMet, prometheus.GaugeValue, value, name)
	})
}
