package reconcile

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are the metrics of reconciliation: how far the published state is behind the
// desired one at the last pass. They are 0 in indexers that do not lead.
type Metrics struct {
	repos    *prometheus.GaugeVec
	oldest   prometheus.Gauge
	lags     lags
	requeued prometheus.Counter
}

// NewMetrics registers the metrics of reconciling.
func NewMetrics(r prometheus.Registerer) *Metrics {
	with := promauto.With(r)
	m := &Metrics{
		repos: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trawl_indexer_repos", Help: "Repos by whether their newest request is published, outstanding or failed; reported by the leading indexer."}, []string{"state"}),
		oldest: with.NewGauge(prometheus.GaugeOpts{
			Name: "trawl_indexer_oldest_request_seconds", Help: "Age of the oldest outstanding request; reported by the leading indexer."}),
		requeued: with.NewCounter(prometheus.CounterOpts{
			Name: "trawl_indexer_requests_requeued_total", Help: "Requests that were enqueued again because nothing had come of them."}),
	}
	r.MustRegister(&m.lags)
	m.set(newTally())
	return m
}

// tally holds the counts of a pass.
type tally struct {
	published, outstanding, failed int
	oldest                         time.Duration
	lags                           *snapshot
}

func newTally() tally { return tally{lags: newSnapshot()} }

// lag counts a repo by how long it is behind; the zero time means that it is not.
func (t *tally) lag(now, since time.Time) {
	if since.IsZero() {
		since = now
	}
	t.lags.add(now.Sub(since).Seconds())
}

// add counts an unpublished request.
func (t *tally) add(failed bool, age time.Duration) {
	if failed {
		t.failed++
		return
	}
	t.outstanding++
	t.oldest = max(t.oldest, age)
}

// set sets the gauges to the counts of a pass.
func (m *Metrics) set(t tally) {
	for state, n := range map[string]int{"published": t.published, "outstanding": t.outstanding, "failed": t.failed} {
		m.repos.WithLabelValues(state).Set(float64(n))
	}
	m.oldest.Set(t.oldest.Seconds())
	m.lags.now.Store(t.lags)
}
