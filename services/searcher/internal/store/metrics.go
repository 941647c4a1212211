package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics tell how shards come and go.
type Metrics struct {
	ready   prometheus.Gauge
	corrupt prometheus.Counter
	loads   *prometheus.HistogramVec
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		ready: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trawl_searcher_shards_ready", Help: "Shards that are open.",
		}),
		corrupt: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trawl_searcher_shards_corrupt_total", Help: "Shards that were found damaged, and put aside.",
		}),
		loads: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "trawl_searcher_shard_load_seconds", Help: "Time to fetch, verify and open a shard, by outcome.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}, []string{"outcome"}),
	}
	if err := errors.Join(r.Register(m.ready), r.Register(m.corrupt), r.Register(m.loads)); err != nil {
		return nil, fmt.Errorf("register the metrics of shards: %w", err)
	}
	return m, nil
}

func (m *Metrics) loaded(took time.Duration, err error) {
	outcome := "loaded"
	if err != nil {
		outcome = "failed"
	}
	m.loads.WithLabelValues(outcome).Observe(took.Seconds())
}
