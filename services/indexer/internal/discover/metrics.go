package discover

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are the metrics of sources, in the leading indexer.
type Metrics struct {
	sources       *prometheus.GaugeVec
	looks         *prometheus.CounterVec
	refused       prometheus.Gauge
	leaving       prometheus.Gauge
	unstored      prometheus.Gauge
	polled, moved prometheus.Counter
	deleted       prometheus.Counter

	mu sync.Mutex
	// failing says for each followed source whether the last look failed.
	failing map[string]bool
	// emptying are the sources that many repos are leaving.
	emptying map[string]bool
}

// NewMetrics registers the metrics of sources.
func NewMetrics(r prometheus.Registerer) *Metrics {
	with := promauto.With(r)
	m := &Metrics{
		failing: map[string]bool{}, emptying: map[string]bool{},
		sources: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trawl_sources", Help: "Sources by the outcome of the last poll, ok or failing; reported by the leading indexer."}, []string{"state"}),
		looks: with.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_sources_looks_total", Help: "Looks at a source, by outcome: ok or failed."}, []string{"outcome"}),
		refused: with.NewGauge(prometheus.GaugeOpts{
			Name: "trawl_sources_file_refused", Help: "1 while the file of sources cannot be read or applied; reported by the leading indexer."}),
		leaving: with.NewGauge(prometheus.GaugeOpts{
			Name: "trawl_sources_leaving", Help: "Sources whose last list lacks more than a tenth of their repos, and ten or more: these are deleted after the grace time; reported by the leading indexer."}),
		unstored: with.NewGauge(prometheus.GaugeOpts{
			Name: "trawl_sources_unstored", Help: "Sources whose current state has no copy in the bucket; reported by the leading indexer."}),
		polled: with.NewCounter(prometheus.CounterOpts{
			Name: "trawl_sources_polls_total", Help: "Repositories of sources that were polled for their branches."}),
		moved: with.NewCounter(prometheus.CounterOpts{
			Name: "trawl_sources_moved_total", Help: "Repositories of sources whose branches had moved when polled, and that were enqueued."}),
		deleted: with.NewCounter(prometheus.CounterOpts{
			Name: "trawl_sources_deleted_total", Help: "Repos that were deleted because they had left their source."}),
	}
	m.looks.WithLabelValues("ok")
	m.looks.WithLabelValues("failed")
	m.countSources()
	return m
}

// looked counts a look at a source. Emptying says that many repos are leaving it.
func (m *Metrics) looked(source string, emptying bool, err error) {
	m.mu.Lock()
	m.failing[source] = err != nil
	if delete(m.emptying, source); emptying {
		m.emptying[source] = true
	}
	m.countSources()
	m.mu.Unlock()
	outcome := "ok"
	if err != nil {
		outcome = "failed"
	}
	m.looks.WithLabelValues(outcome).Inc()
}

// forget removes a source that is no longer followed.
func (m *Metrics) forget(source string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.failing, source)
	delete(m.emptying, source)
	m.countSources()
}

// countSources sets the gauge of sources. The caller holds the lock.
func (m *Metrics) countSources() {
	count := map[bool]float64{}
	for _, failing := range m.failing {
		count[failing]++
	}
	m.sources.WithLabelValues("ok").Set(count[false])
	m.sources.WithLabelValues("failing").Set(count[true])
	m.leaving.Set(float64(len(m.emptying)))
}
