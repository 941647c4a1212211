package shardcache

import (
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/trawl-search/trawl/services/searcher/internal/disk"
	"github.com/trawl-search/trawl/services/searcher/internal/ranged"
)

// Metrics count how shards are loaded, served and removed.
type Metrics struct {
	ready   prometheus.Gauge
	corrupt prometheus.Counter
	loads   *prometheus.HistogramVec
	evicted prometheus.Counter
	// scrubbed is in bytes. scrubbedAt is when the last pass of Scrub ended.
	scrubbed   prometheus.Counter
	scrubbedAt prometheus.Gauge
	// requests for shards by where they were served from
	fromDisk, fromBucket prometheus.Counter
	budget               atomic.Pointer[disk.Budget]
	ranges               *ranged.Metrics
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	with := promauto.With(r)
	asked := with.NewCounterVec(prometheus.CounterOpts{
		Name: "trawl_searcher_shards_asked_total", Help: "Requests for shards, by whether the shard was a whole file or read by ranges.",
	}, []string{"from"})
	m := &Metrics{
		evicted: with.NewCounter(prometheus.CounterOpts{
			Name: "trawl_searcher_shard_evictions_total", Help: "Whole files of shards that made room and have been read by ranges since.",
		}),
		scrubbed: with.NewCounter(prometheus.CounterOpts{
			Name: "trawl_searcher_scrubbed_bytes_total", Help: "Bytes of open shards that were verified again after their first use.",
		}),
		scrubbedAt: with.NewGauge(prometheus.GaugeOpts{
			Name: "trawl_searcher_scrub_last_pass_timestamp_seconds", Help: "When all open shards had last been verified again.",
		}),
		fromDisk: asked.WithLabelValues("file"), fromBucket: asked.WithLabelValues("ranges"),
		ready: with.NewGauge(prometheus.GaugeOpts{
			Name: "trawl_searcher_shards_ready", Help: "Shards that are open.",
		}),
		corrupt: with.NewCounter(prometheus.CounterOpts{
			Name: "trawl_searcher_shards_corrupt_total", Help: "Shards that were found damaged and moved to quarantine.",
		}),
		loads: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "trawl_searcher_shard_load_seconds", Help: "Time to fetch, verify and open a shard, by outcome.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}, []string{"outcome"}),
	}
	for _, outcome := range []string{"loaded", "failed"} {
		m.loads.WithLabelValues(outcome) // present before it first happens
	}
	m.ranges = ranged.NewMetrics(r)
	m.reportCache(with)
	reportFaults(with)
	return m
}

func (m *Metrics) reportCache(with promauto.Factory) {
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "trawl_searcher_cache_budget_bytes", Help: "Maximum disk space of the cache; 0 is no bound.",
	}, func() float64 {
		if b := m.budget.Load(); b != nil {
			return float64(b.Limit())
		}
		return 0
	})
	with.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "trawl_searcher_cache_bytes", Help: "Disk space of the cache: whole files, downloads in progress, blocks, and files in quarantine.",
	}, func() float64 {
		if b := m.budget.Load(); b != nil {
			return float64(b.Used())
		}
		return 0
	})
}

// reportFaults counts major faults of the process. Shards are nearly all that it maps.
func reportFaults(with promauto.Factory) {
	with.NewCounterFunc(prometheus.CounterOpts{
		Name: "trawl_searcher_major_page_faults_total", Help: "Page faults of the process that waited for the disk: pages of shards that were not in memory.",
	}, func() float64 {
		var used syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
			return 0
		}
		return float64(used.Majflt)
	})
}

func (m *Metrics) loaded(took time.Duration, err error) {
	outcome := "loaded"
	if err != nil {
		outcome = "failed"
	}
	m.loads.WithLabelValues(outcome).Observe(took.Seconds())
}
