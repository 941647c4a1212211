package job

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trawl-search/trawl/services/indexer/internal/shards"
)

// Metrics counts what jobs do.
type Metrics struct {
	running   prometheus.Gauge
	jobs      *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
	documents *prometheus.CounterVec
	content   prometheus.Counter
	shards    prometheus.Counter
	stored    prometheus.Counter
}

// NewMetrics registers the metrics of jobs.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trawl_indexer_jobs_running", Help: "Jobs under way."}),
		jobs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_indexer_jobs_total", Help: "Jobs ended, by outcome."}, []string{"outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "trawl_indexer_job_seconds", Help: "Time of a job, by outcome.",
			Buckets: prometheus.ExponentialBuckets(0.05, 3, 12)}, []string{"outcome"}),
		documents: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_indexer_documents_total", Help: "Documents indexed by content, or found by name only."}, []string{"kind"}),
		content: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trawl_indexer_content_bytes_total", Help: "Bytes of distinct contents indexed."}),
		shards: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trawl_indexer_shards_total", Help: "Shards built and uploaded."}),
		stored: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "trawl_indexer_shard_bytes_total", Help: "Bytes of the shards built and uploaded."}),
	}
	for _, c := range []prometheus.Collector{m.running, m.jobs, m.seconds, m.documents, m.content, m.shards, m.stored} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("registering the indexer's metrics: %w", err)
		}
	}
	for _, o := range []Outcome{Published, Unchanged, Superseded, Deleted, Failed, Retried, Postponed, Stopped} {
		m.jobs.WithLabelValues(string(o)) // present before it first happens
	}
	return m, nil
}

func (m *Metrics) done(outcome Outcome, took time.Duration) {
	m.jobs.WithLabelValues(string(outcome)).Inc()
	m.seconds.WithLabelValues(string(outcome)).Observe(took.Seconds())
}

func (m *Metrics) built(r shards.Result) {
	m.documents.WithLabelValues("searchable").Add(float64(r.Documents - r.Skipped))
	m.documents.WithLabelValues("by name").Add(float64(r.Skipped))
	m.content.Add(float64(r.ContentBytes))
	m.shards.Add(float64(len(r.Shards)))
	for _, s := range r.Shards {
		m.stored.Add(float64(s.GetSizeBytes()))
	}
}
