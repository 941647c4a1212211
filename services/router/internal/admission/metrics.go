package admission

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics tell how many queries are let in.
type Metrics struct {
	limit prometheus.Gauge
	sheds *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		limit: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "trawl_router_query_limit", Help: "Queries that are let in at once; it follows what searchers can do.",
		}),
		sheds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_router_shed_total", Help: "Queries that were refused because too many are being answered, by class.",
		}, []string{"class"}),
	}
	if err := errors.Join(r.Register(m.limit), r.Register(m.sheds)); err != nil {
		return nil, fmt.Errorf("register the metrics of admission: %w", err)
	}
	for _, class := range []Class{Interactive, Batch} {
		m.sheds.WithLabelValues(class.String()) // present before it first happens
	}
	return m, nil
}

func (m *Metrics) shed(c Class) { m.sheds.WithLabelValues(c.String()).Inc() }
