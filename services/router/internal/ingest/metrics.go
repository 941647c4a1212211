package ingest

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// WebhookMetrics count webhooks.
type WebhookMetrics struct{ webhooks *prometheus.CounterVec }

// NewWebhookMetrics registers the metrics of webhooks.
func NewWebhookMetrics(r prometheus.Registerer) *WebhookMetrics {
	with := promauto.With(r)
	m := &WebhookMetrics{with.NewCounterVec(prometheus.CounterOpts{
		Name: "trawl_router_webhooks_total", Help: "Webhooks of Git hosts, by what became of them; forged ones are not signed with the secret of their source."}, []string{"outcome"})}
	for _, o := range outcomes {
		m.webhooks.WithLabelValues(o.name)
	}
	return m
}

func (m *WebhookMetrics) count(o outcome) { m.webhooks.WithLabelValues(o.name).Inc() }
