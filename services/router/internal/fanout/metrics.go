package fanout

import (
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics count hedges, retries, breaker states and the bytes of calls.
type Metrics struct {
	hedges  *prometheus.CounterVec
	retries *prometheus.CounterVec
	breaker *prometheus.GaugeVec
	bytes   *prometheus.CounterVec
}

// Zones of searchers, as a router sees them.
const (
	zoneOwn   = "own"
	zoneOther = "other"
)

// Outcomes of hedges and retries.
const (
	hedgeWon     = "won"
	hedgeLost    = "lost"
	unaffordable = "unaffordable"
	retrySent    = "sent"
)

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	with := promauto.With(r)
	m := &Metrics{
		hedges: with.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_router_hedges_total",
			Help: "Calls to slow searchers by what became of their hedges: won, lost, or unaffordable when the budget was used up.",
		}, []string{"outcome"}),
		retries: with.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_router_retries_total",
			Help: "Failed calls by whether their shards were asked of others: sent, or unaffordable when the budget was used up.",
		}, []string{"outcome"}),
		breaker: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trawl_router_searcher_breaker", Help: "State of each searcher's breaker: 0 closed, 1 open, 2 half-open.",
		}, []string{"searcher"}),
		bytes: with.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_router_searcher_bytes_total",
			Help: "Bytes of the calls to searchers over the network, requests and answers, by whether the searcher is in the router's own zone or in another one. Without zones all are other.",
		}, []string{"zone"}),
	}
	for _, zone := range []string{zoneOwn, zoneOther} {
		m.bytes.WithLabelValues(zone)
	}
	for _, outcome := range []string{hedgeWon, hedgeLost, unaffordable} {
		m.hedges.WithLabelValues(outcome) // so that the series exists from the start
	}
	for _, outcome := range []string{retrySent, unaffordable} {
		m.retries.WithLabelValues(outcome)
	}
	return m
}

func (m *Metrics) hedged(outcome string)  { m.hedges.WithLabelValues(outcome).Inc() }
func (m *Metrics) retried(outcome string) { m.retries.WithLabelValues(outcome).Inc() }

func (m *Metrics) state(id string, s circuitbreaker.State) {
	m.breaker.WithLabelValues(id).Set(float64(s))
}
