package ranged

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count the bytes that are read by ranges, and those of them that are kept.
type Metrics struct {
	blocks                  prometheus.Gauge
	hits, misses, evictions prometheus.Counter
	reads                   *prometheus.CounterVec
	bytes                   prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "trawl_searcher_" + name, Help: help})
	}
	m := &Metrics{
		blocks: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trawl_searcher_block_bytes", Help: "Bytes of disk that blocks of shards take which are read by ranges.",
		}),
		hits:      counter("block_hits_total", "Blocks that a search found on disk, of shards that are read by ranges."),
		misses:    counter("block_misses_total", "Blocks that a search had to wait for, of shards that are read by ranges."),
		evictions: counter("block_evictions_total", "Blocks that made room for others."),
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_searcher_range_reads_total", Help: "Ranged reads of shards, by outcome.",
		}, []string{"outcome"}),
		bytes: counter("range_bytes_total", "Bytes of shards that came by ranged reads."),
	}
	for _, c := range []prometheus.Collector{m.blocks, m.hits, m.misses, m.evictions, m.reads, m.bytes} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of ranged reads: %w", err)
		}
	}
	for _, outcome := range []string{"ok", "failed"} {
		m.reads.WithLabelValues(outcome) // present before it first happens
	}
	return m, nil
}
