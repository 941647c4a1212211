package gc

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics counts what passes do.
type Metrics struct {
	passes  *prometheus.CounterVec
	objects *prometheus.GaugeVec
	bytes   *prometheus.GaugeVec
	deleted prometheus.Counter
	freed   prometheus.Counter
	spared  prometheus.Counter
	last    prometheus.Gauge
}

// NewMetrics registers the metrics of garbage collection.
func NewMetrics(r prometheus.Registerer) *Metrics {
	with := promauto.With(r)
	counter := func(name, help string) prometheus.Counter {
		return with.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return with.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"state"})
	}
	m := &Metrics{
		passes: with.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_gc_passes_total", Help: "Passes of garbage collection, by outcome."}, []string{"outcome"}),
		objects: gauge("trawl_gc_objects", "Objects of the bucket that the last pass saw, by state: kept or waiting."),
		bytes:   gauge("trawl_gc_bytes", "Bytes of the objects that the last pass saw, by state: kept or waiting."),
		deleted: counter("trawl_gc_deleted_objects_total", "Objects deleted as garbage."),
		freed:   counter("trawl_gc_deleted_bytes_total", "Bytes of the objects deleted as garbage."),
		spared:  counter("trawl_gc_spared_objects_total", "Condemned objects that turned out to be in use; more than 0 is a fault."),
		last: with.NewGauge(prometheus.GaugeOpts{
			Name: "trawl_gc_last_success_timestamp_seconds", Help: "When a pass last succeeded."}),
	}
	for _, outcome := range []string{"ok", "error"} {
		m.passes.WithLabelValues(outcome) // present before it first happens
	}
	for _, state := range []string{"kept", "waiting"} {
		m.objects.WithLabelValues(state)
		m.bytes.WithLabelValues(state)
	}
	return m
}

func (m *Metrics) observe(r Report, err error) {
	m.deleted.Add(float64(r.Deleted.Objects))
	m.freed.Add(float64(r.Deleted.Bytes))
	m.spared.Add(float64(r.Spared))
	if err != nil {
		m.passes.WithLabelValues("error").Inc()
		return
	}
	m.passes.WithLabelValues("ok").Inc()
	m.last.Set(float64(time.Now().Unix()))
	for state, n := range map[string]Count{"kept": r.Kept, "waiting": {
		r.Waiting.Objects + r.Condemned.Objects, r.Waiting.Bytes + r.Condemned.Bytes}} {
		m.objects.WithLabelValues(state).Set(float64(n.Objects))
		m.bytes.WithLabelValues(state).Set(float64(n.Bytes))
	}
}
