package ranged

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics count the bytes that are read by ranges, and those of them that are kept.
type Metrics struct {
	blocks                  prometheus.Gauge
	hits, misses, evictions prometheus.Counter
	reads                   *prometheus.CounterVec
	bytes                   prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	with := promauto.With(r)
	counter := func(name, help string) prometheus.Counter {
		return with.NewCounter(prometheus.CounterOpts{Name: "trawl_searcher_" + name, Help: help})
	}
	m := &Metrics{
		blocks: with.NewGauge(prometheus.GaugeOpts{
			Name: "trawl_searcher_block_bytes", Help: "Bytes on disk of blocks of shards that are read by ranges.",
		}),
		hits:      counter("block_hits_total", "Blocks that a search found on disk, of shards that are read by ranges."),
		misses:    counter("block_misses_total", "Blocks that a search had to wait for, of shards that are read by ranges."),
		evictions: counter("block_evictions_total", "Blocks that made room for others."),
		reads: with.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_searcher_range_reads_total", Help: "Ranged reads of shards, by outcome.",
		}, []string{"outcome"}),
		bytes: counter("range_bytes_total", "Bytes of shards that came by ranged reads."),
	}
	for _, outcome := range []string{"ok", "failed"} {
		m.reads.WithLabelValues(outcome) // present before it first happens
	}
	return m
}
