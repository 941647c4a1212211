package compact

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Outcomes of a compaction.
const (
	compacted = "compacted"
	// vain: every repo was changed, deleted or being indexed meanwhile.
	vain = "in vain"
	// failed: it will be tried again, by any indexer.
	failed = "failed"
	// lostClaim: the claim expired, and another indexer may hold it.
	lostClaim = "lost"
	stopped   = "stopped"
)

// Metrics are the metrics of compaction: what it does, and what remains to do. The
// gauges describe the last plan; they are 0 in indexers that do not lead.
type Metrics struct {
	runs                *prometheus.CounterVec
	seconds             *prometheus.HistogramVec
	repos               *prometheus.CounterVec
	read, written       prometheus.Counter
	paused              prometheus.Counter
	stored, live        prometheus.Gauge
	shards              *prometheus.GaugeVec
	planned, oldestPlan prometheus.Gauge
}

// NewMetrics registers the metrics of compaction.
func NewMetrics(r prometheus.Registerer) *Metrics {
	with := promauto.With(r)
	counter := func(name, help string) prometheus.Counter {
		return with.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return with.NewGauge(prometheus.GaugeOpts{Name: name, Help: help + "; reported by the leading indexer."})
	}
	m := &Metrics{
		runs: with.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_compaction_runs_total", Help: "Compactions ended, by reason and outcome."}, []string{"reason", "outcome"}),
		seconds: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "trawl_compaction_seconds", Help: "Time of a compaction, by outcome.",
			Buckets: prometheus.ExponentialBuckets(0.05, 4, 10)}, []string{"outcome"}),
		repos: with.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_compaction_repos_total", Help: "Repos of compactions by whether they were compacted, or left because they had changed."}, []string{"outcome"}),
		read:    counter("trawl_compaction_read_bytes_total", "Bytes of shards read from the bucket to merge them."),
		written: counter("trawl_compaction_written_bytes_total", "Bytes of the shards that were merged and uploaded."),
		paused:  counter("trawl_compaction_paused_seconds_total", "Seconds that merges under way gave way to indexing jobs of the same indexer."),
		stored:  gauge("trawl_compaction_stored_bytes", "Bytes of the shards that roots name"),
		live:    gauge("trawl_compaction_live_bytes", "Bytes that documents which are served take of these shards"),
		shards: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trawl_compaction_shards", Help: "Shards that roots name, by kind: of one repo, shared by several, delta; reported by the leading indexer."}, []string{"kind"}),
		planned:    gauge("trawl_compaction_planned", "Compactions that are planned or under way"),
		oldestPlan: gauge("trawl_compaction_oldest_planned_seconds", "Age of the oldest compaction that is planned"),
	}
	for _, outcome := range []string{compacted, vain, failed, lostClaim, stopped} {
		m.seconds.WithLabelValues(outcome) // present before it first happens
		for _, reason := range []string{becauseDeltas, becauseSmall, becauseDead, becauseDeleted, becauseCold} {
			m.runs.WithLabelValues(reason, outcome)
		}
	}
	for _, outcome := range []string{"compacted", "left"} {
		m.repos.WithLabelValues(outcome)
	}
	m.setPlanned(&view{}, nil)
	return m
}

func (m *Metrics) done(outcome, reason string, took time.Duration, of *merging) {
	m.runs.WithLabelValues(reason, outcome).Inc()
	m.seconds.WithLabelValues(outcome).Observe(took.Seconds())
	m.repos.WithLabelValues("compacted").Add(float64(of.compacted))
	m.repos.WithLabelValues("left").Add(float64(of.left))
	m.read.Add(float64(of.read.Load()))
	m.written.Add(float64(of.written))
}

// setPlanned sets the gauges from the state that was planned from and the times of the
// planned compactions.
func (m *Metrics) setPlanned(v *view, planned []time.Time) {
	var stored, live uint64
	kinds := map[string]int{"own": 0, "shared": 0, "delta": 0}
	for _, o := range v.objects {
		stored, live = stored+o.size, live+o.live
		switch {
		case o.shared:
			kinds["shared"]++
		case o.delta:
			kinds["delta"]++
		default:
			kinds["own"]++
		}
	}
	m.stored.Set(float64(stored))
	m.live.Set(float64(live))
	for kind, n := range kinds {
		m.shards.WithLabelValues(kind).Set(float64(n))
	}
	oldest := time.Duration(0)
	for _, at := range planned {
		oldest = max(oldest, v.Now.Sub(at))
	}
	m.planned.Set(float64(len(planned)))
	m.oldestPlan.Set(oldest.Seconds())
}
