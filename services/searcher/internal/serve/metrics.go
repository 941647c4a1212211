package serve

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Metrics count what searches do here. Every way a shard can end has its counter.
type Metrics struct {
	latency  *prometheus.HistogramVec
	inflight prometheus.Gauge
	shards   *prometheus.CounterVec
	panics   prometheus.Counter
	refused  prometheus.Counter
}

// methods are the values of the label. Their series exist from the start, like those of
// all known label values.
var methods = []string{"stream_search", "stream_list", "get_file", "list_tree"}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	with := promauto.With(r)
	m := &Metrics{
		latency: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "trawl_searcher_query_seconds", Help: "Time of calls by method.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 12),
		}, []string{"method"}),
		inflight: with.NewGauge(prometheus.GaugeOpts{
			Name: "trawl_searcher_queries_inflight", Help: "Calls that are being answered.",
		}),
		shards: with.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_searcher_shards_total", Help: "Planned shards by outcome: searched, or the reason they are not covered.",
		}, []string{"outcome"}),
		panics: with.NewCounter(prometheus.CounterOpts{
			Name: "trawl_searcher_shard_panics_total", Help: "Searches of a shard that ended in a panic.",
		}),
		refused: with.NewCounter(prometheus.CounterOpts{
			Name: "trawl_searcher_refused_total", Help: "Calls that were refused because their turn would have come too late.",
		}),
	}
	for _, method := range methods {
		m.latency.WithLabelValues(method)
	}
	for _, outcome := range append(searchapi.ReasonNames(), "searched") {
		m.shards.WithLabelValues(outcome)
	}
	return m
}

// begin counts a call; the function it returns, its end.
func (m *Metrics) begin(method string) (end func()) {
	start := time.Now()
	m.inflight.Inc()
	return func() {
		m.inflight.Dec()
		m.latency.WithLabelValues(method).Observe(time.Since(start).Seconds())
	}
}

func (m *Metrics) count(c *searchv1.Coverage) {
	m.shards.WithLabelValues("searched").Add(float64(c.Searched))
	for _, u := range c.Uncovered {
		m.shards.WithLabelValues(searchapi.ReasonName(u.Reason)).Inc()
	}
}
