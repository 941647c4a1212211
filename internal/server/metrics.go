package server

import (
	"strings"

	grpcprom "github.com/grpc-ecosystem/go-grpc-middleware/providers/prometheus"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/stats"
)

// metrics is what the servers count: gRPC calls under the names that ready-made
// dashboards know (grpc_server_…), and panics.
type metrics struct {
	grpc   *grpcprom.ServerMetrics
	panics prometheus.Counter
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
	}
	for _, c := range []prometheus.Collector{m.grpc, m.panics} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// worthTracing leaves out the calls by which others see whether the server is
// there.
func worthTracing(info *stats.RPCTagInfo) bool {
	return !strings.HasPrefix(info.FullMethodName, "/grpc.")
}

// conditions tell metrics what the process needs and whether it has it.
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
