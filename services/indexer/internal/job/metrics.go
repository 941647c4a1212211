package job

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/trawl-search/trawl/internal/catalog"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/indexer/internal/shardio"
)

// Metrics are the metrics of jobs.
type Metrics struct {
	running   prometheus.Gauge
	jobs      *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	waited    *prometheus.HistogramVec
	documents *prometheus.CounterVec
	content   prometheus.Counter
	builds    *prometheus.CounterVec
	shards    prometheus.Counter
	stored    prometheus.Counter
}

// NewMetrics registers the metrics of jobs.
func NewMetrics(r prometheus.Registerer) *Metrics {
	with := promauto.With(r)
	m := &Metrics{
		running: with.NewGauge(prometheus.GaugeOpts{
			Name: "trawl_indexer_jobs_running", Help: "Jobs under way."}),
		jobs: with.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_indexer_jobs_total", Help: "Jobs ended, by outcome."}, []string{"outcome"}),
		seconds: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "trawl_indexer_job_seconds", Help: "Time of a job, by outcome.",
			Buckets: prometheus.ExponentialBuckets(0.05, 3, 12)}, []string{"outcome"}),
		waited: with.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "trawl_indexer_request_to_published_seconds",
			Help:    "Time from a push or request until it is published, the oldest of those published together, by whether the repo was new.",
			Buckets: catalog.LagBuckets}, []string{"repo"}),
		documents: with.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_indexer_documents_total", Help: "Documents indexed by content, or found by name only."}, []string{"kind"}),
		content: with.NewCounter(prometheus.CounterOpts{
			Name: "trawl_indexer_content_bytes_total", Help: "Bytes of distinct contents indexed."}),
		builds: with.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_indexer_builds_total", Help: "Generations built, of what changed (delta) or in full, by the reason."}, []string{"kind", "reason"}),
		shards: with.NewCounter(prometheus.CounterOpts{
			Name: "trawl_indexer_shards_total", Help: "Shards built and uploaded."}),
		stored: with.NewCounter(prometheus.CounterOpts{
			Name: "trawl_indexer_shard_bytes_total", Help: "Bytes of the shards built and uploaded."}),
	}
	for _, o := range []Outcome{Published, Unchanged, Superseded, Deleted, Failed, Retried, Postponed, Stopped} {
		m.jobs.WithLabelValues(string(o)) // present before it first happens
		m.seconds.WithLabelValues(string(o))
	}
	for _, repo := range []string{"new", "known"} {
		m.waited.WithLabelValues(repo)
	}
	for _, r := range deltaReasons {
		m.builds.WithLabelValues("delta", string(r))
	}
	for _, r := range fullReasons {
		m.builds.WithLabelValues("full", string(r))
	}
	for _, kind := range []string{"searchable", "by name"} {
		m.documents.WithLabelValues(kind)
	}
	return m
}

func (m *Metrics) done(outcome Outcome, took time.Duration) {
	m.jobs.WithLabelValues(string(outcome)).Inc()
	m.seconds.WithLabelValues(string(outcome)).Observe(took.Seconds())
}

// published observes the time from the oldest unpublished request to its publication.
func (m *Metrics) published(lease *catalog.Lease, now time.Time) {
	repo, published := "new", uint64(0)
	if root := lease.Root(); root != nil {
		repo, published = "known", root.Record.GetEpoch()
	}
	since := catalog.BehindSince(lease.Desired(), published)
	m.waited.WithLabelValues(repo).Observe(max(now.Sub(since).Seconds(), 0))
}

func (m *Metrics) built(how method, r shardio.Result) {
	m.builds.WithLabelValues(how.kind, string(how.reason)).Inc()
	m.documents.WithLabelValues("searchable").Add(float64(r.Documents - r.Skipped))
	m.documents.WithLabelValues("by name").Add(float64(r.Skipped))
	m.content.Add(float64(r.ContentBytes))
}

func (m *Metrics) uploaded(shards []*catalogv1.ShardRef) {
	m.shards.Add(float64(len(shards)))
	for _, s := range shards {
		m.stored.Add(float64(s.GetSizeBytes()))
	}
}
