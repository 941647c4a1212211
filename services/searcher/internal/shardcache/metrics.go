package shardcache

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trawl-search/trawl/services/searcher/internal/disk"
	"github.com/trawl-search/trawl/services/searcher/internal/ranged"
)

// Metrics count how shards are loaded, served and removed.
type Metrics struct {
	ready   prometheus.Gauge
	corrupt prometheus.Counter
	loads   *prometheus.HistogramVec
	evicted prometheus.Counter
	// requests for shards by where they were served from
	fromDisk, fromBucket prometheus.Counter
	budget               atomic.Pointer[disk.Budget]
	ranges               *ranged.Metrics
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	asked := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trawl_searcher_shards_asked_total", Help: "Requests for shards, by whether the shard was a whole file or read by ranges.",
	}, []string{"from"})
	m := &Metrics{
		evicted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trawl_searcher_shard_evictions_total", Help: "Whole files of shards that made room; they are read by ranges since.",
		}),
		fromDisk: asked.WithLabelValues("file"), fromBucket: asked.WithLabelValues("ranges"),
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
	for _, c := range []prometheus.Collector{m.ready, m.corrupt, m.loads, m.evicted, asked, m.limitGauge(), m.usedGauge(), majorFaults()} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of shards: %w", err)
		}
	}
	for _, outcome := range []string{"loaded", "failed"} {
		m.loads.WithLabelValues(outcome) // present before it first happens
	}
	var err error
	m.ranges, err = ranged.NewMetrics(r)
	return m, err
}

func (m *Metrics) limitGauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "trawl_searcher_cache_budget_bytes", Help: "The most that the cache may take on disk; 0 is no bound.",
	}, func() float64 {
		if b := m.budget.Load(); b != nil {
			return float64(b.Limit())
		}
		return 0
	})
}

func (m *Metrics) usedGauge() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "trawl_searcher_cache_bytes", Help: "What the cache takes on disk: whole files, downloads under way, blocks, and what is in quarantine.",
	}, func() float64 {
		if b := m.budget.Load(); b != nil {
			return float64(b.Used())
		}
		return 0
	})
}

// majorFaults counts those of the process. Shards are nearly all that it maps.
func majorFaults() prometheus.Collector {
	return prometheus.NewCounterFunc(prometheus.CounterOpts{
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
