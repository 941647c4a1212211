package canary

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Outcomes of answers.
const (
	complete   = "complete"
	incomplete = "incomplete"
	failed     = "failed"
	// wrong: the answer is complete, and has what was deleted before the question.
	wrong = "wrong"
)

// metrics are what a canary measures, each by door.
type metrics struct {
	freshness, ratio *prometheus.HistogramVec
	answers          *prometheus.CounterVec
	behind           *prometheus.GaugeVec
}

func newMetrics(r prometheus.Registerer, doors []door) *metrics {
	with, byDoor := promauto.With(r), []string{"door"}
	m := &metrics{
		freshness: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "trawl_canary_freshness_seconds", Help: "Time from a push of the canary until a door found it.",
			Buckets: []float64{.5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 45, 60, 120, 300, 600},
		}, byDoor),
		answers: with.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_canary_answers_total",
			Help: "Answers to the canary: complete, incomplete, failed if there was none, or wrong if it showed a deleted repo.",
		}, []string{"door", "outcome"}),
		ratio: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "trawl_canary_deadline_ratio", Help: "Time of an answer to the canary, as a share of its deadline.",
			Buckets: []float64{.005, .01, .02, .05, .1, .25, .5, .75, 1, 1.05},
		}, byDoor),
		behind: with.NewGaugeVec(prometheus.GaugeOpts{
			Name: "trawl_canary_behind_seconds", Help: "Age of the canary's last push when the door last did not find it, else 0.",
		}, byDoor),
	}
	for _, d := range doors { // so that each series exists from the start
		m.freshness.WithLabelValues(d.name)
		m.ratio.WithLabelValues(d.name)
		m.behind.WithLabelValues(d.name)
		for _, outcome := range []string{complete, incomplete, failed, wrong} {
			m.answers.WithLabelValues(d.name, outcome)
		}
	}
	return m
}

// count counts an answer that took so long, to a question for a word that was pushed then; zero: it was deleted.
func (m *metrics) count(door, outcome string, took time.Duration, pushed time.Time, found bool) {
	m.answers.WithLabelValues(door, outcome).Inc()
	m.ratio.WithLabelValues(door).Observe(took.Seconds() / deadline.Seconds())
	age := time.Since(pushed).Seconds()
	switch {
	case pushed.IsZero():
	case found:
		m.freshness.WithLabelValues(door).Observe(age)
		m.behind.WithLabelValues(door).Set(0)
	default:
		m.behind.WithLabelValues(door).Set(age)
	}
}
