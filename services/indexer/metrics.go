package indexer

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/trawl-search/trawl/internal/queue"
)

// metrics are the state of the queue, which all indexers report, and leadership.
type metrics struct {
	queue  *prometheus.GaugeVec
	dead   prometheus.Gauge
	leader prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	with := promauto.With(r)
	m := &metrics{
		queue: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trawl_queue_jobs", Help: "Jobs in the queue that are not done, by state: waiting, or delivered to an indexer once."}, []string{"state"}),
		dead: with.NewGauge(prometheus.GaugeOpts{
			Name: "trawl_queue_dead_jobs", Help: "Jobs that were given up and are kept with their reason."}),
		leader: with.NewGauge(prometheus.GaugeOpts{
			Name: "trawl_indexer_leader", Help: "1 while this indexer reconciles and collects garbage for all of them."}),
	}
	m.setDepth(queue.Depth{})
	return m
}

// setDepth sets the gauges of the queue.
func (m *metrics) setDepth(d queue.Depth) {
	m.queue.WithLabelValues("waiting").Set(float64(max(d.Jobs-d.Delivered, 0)))
	m.queue.WithLabelValues("delivered").Set(float64(d.Delivered))
	m.dead.Set(float64(d.Dead))
}
