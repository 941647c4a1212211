package indexer

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trawl-search/trawl/internal/queue"
)

// metrics are the state of the queue, which all indexers report, and leadership.
type metrics struct {
	queue  *prometheus.GaugeVec
	dead   prometheus.Gauge
	leader prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		queue: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trawl_queue_jobs", Help: "Jobs in the queue that are not done, by state: waiting, or delivered to an indexer once."}, []string{"state"}),
		dead: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trawl_queue_dead_jobs", Help: "Jobs that were given up and are kept with their reason."}),
		leader: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trawl_indexer_leader", Help: "1 while this indexer reconciles and collects garbage for all of them."}),
	}
	for _, c := range []prometheus.Collector{m.queue, m.dead, m.leader} {
		if err := r.Register(c); err != nil {
			return nil, fmt.Errorf("register the metrics of the queue: %w", err)
		}
	}
	m.setDepth(queue.Depth{})
	return m, nil
}

// setDepth sets the gauges of the queue.
func (m *metrics) setDepth(d queue.Depth) {
	m.queue.WithLabelValues("waiting").Set(float64(max(d.Jobs-d.Delivered, 0)))
	m.queue.WithLabelValues("delivered").Set(float64(d.Delivered))
	m.dead.Set(float64(d.Dead))
}
