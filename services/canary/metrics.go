package canary

import (
	"sync/atomic"
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
	freshness *prometheus.HistogramVec
	answers   *prometheus.CounterVec
	ratio     *prometheus.HistogramVec
	// waiting is when the push was made that the door has not shown yet, in nanoseconds; 0: there is none.
	waiting map[string]*atomic.Int64
}

func newMetrics(r prometheus.Registerer, doors []door) *metrics {
	with := promauto.With(r)
	m := &metrics{
		freshness: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "trawl_canary_freshness_seconds", Help: "Time from a push of the canary until a door found it.",
			Buckets: []float64{.5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 45, 60, 120, 300, 600},
		}, []string{"door"}),
		answers: with.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_canary_answers_total",
			Help: "Answers to the canary: complete, incomplete, failed if there was none, or wrong if it showed a deleted repo.",
		}, []string{"door", "outcome"}),
		ratio: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "trawl_canary_deadline_ratio", Help: "Time of an answer to the canary, as a share of its deadline.",
			Buckets: []float64{.005, .01, .02, .05, .1, .25, .5, .75, 1, 1.05},
		}, []string{"door"}),
		waiting: map[string]*atomic.Int64{},
	}
	for _, d := range doors {
		since := new(atomic.Int64)
		m.waiting[d.name] = since
		with.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "trawl_canary_behind_seconds", Help: "Age of the canary's last push if the door has not found it yet, else 0.",
			ConstLabels: prometheus.Labels{"door": d.name},
		}, func() float64 {
			if at := since.Load(); at != 0 {
				return time.Since(time.Unix(0, at)).Seconds()
			}
			return 0
		})
		m.freshness.WithLabelValues(d.name)
		m.ratio.WithLabelValues(d.name)
		for _, outcome := range []string{complete, incomplete, failed, wrong} {
			m.answers.WithLabelValues(d.name, outcome) // so that the series exists from the start
		}
	}
	return m
}

func (m *metrics) pushed(door string, at time.Time) { m.waiting[door].Store(at.UnixNano()) }

func (m *metrics) found(door string, pushed time.Time) {
	m.freshness.WithLabelValues(door).Observe(time.Since(pushed).Seconds())
	m.waiting[door].Store(0)
}
