package webhook

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics count webhooks.
type Metrics struct{ webhooks *prometheus.CounterVec }

// NewMetrics registers the metrics of webhooks.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "trawl_router_webhooks_total", Help: "Webhooks of Git hosts, by what became of them; forged ones are not signed with the secret of their source."}, []string{"outcome"})}
	if err := r.Register(m.webhooks); err != nil {
		return nil, fmt.Errorf("register the metrics of webhooks: %w", err)
	}
	for _, o := range outcomes {
		m.webhooks.WithLabelValues(o.name)
	}
	return m, nil
}

func (m *Metrics) count(o outcome) { m.webhooks.WithLabelValues(o.name).Inc() }
