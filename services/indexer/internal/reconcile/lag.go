package reconcile

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trawl-search/trawl/internal/catalog"
)

// lags collects a histogram of how far behind all repos were at the last pass. Its
// counts can fall, so queries use it without rate().
type lags struct{ now atomic.Pointer[snapshot] }

// snapshot counts repos by their lag in seconds.
type snapshot struct {
	// buckets counts the repos within each of catalog.LagBuckets, cumulatively.
	buckets []uint64
	count   uint64
	sum     float64
}

func newSnapshot() *snapshot { return &snapshot{buckets: make([]uint64, len(catalog.LagBuckets))} }

func (s *snapshot) add(seconds float64) {
	for i, bound := range catalog.LagBuckets {
		if seconds <= bound {
			s.buckets[i]++
		}
	}
	s.count++
	s.sum += max(seconds, 0)
}

var lagDesc = prometheus.NewDesc("trawl_indexer_repo_lag_seconds",
	"How far the repos are behind, each counted once as of the last pass: time since the oldest push or request that is not published; reported by the leading indexer.",
	nil, nil)

// Describe implements prometheus.Collector.
func (*lags) Describe(to chan<- *prometheus.Desc) { to <- lagDesc }

// Collect implements prometheus.Collector.
func (l *lags) Collect(to chan<- prometheus.Metric) {
	s := l.now.Load()
	buckets := make(map[float64]uint64, len(catalog.LagBuckets))
	for i, bound := range catalog.LagBuckets {
		buckets[bound] = s.buckets[i]
	}
	to <- prometheus.MustNewConstHistogram(lagDesc, s.count, s.sum, buckets)
}
