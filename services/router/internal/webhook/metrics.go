package webhook

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics count webhooks.
type Metrics struct{ webhooks *prometheus.CounterVec }

// NewMetrics registers the metrics of webhooks.
func NewMetrics(r prometheus.Registerer) *Metrics {
	with := promauto.With(r)
	m := &Metrics{with.NewCounterVec(prometheus.CounterOpts{
		Name: "trawl_router_webhooks_total", Help: "Webhooks of Git hosts, by what became of them; forged ones are not signed with the secret of their source."}, []string{"outcome"})}
	for _, o := range outcomes {
		m.webhooks.WithLabelValues(o.name)
	}
	return m
}

func (m *Metrics) count(o outcome) { m.webhooks.WithLabelValues(o.name).Inc() }
