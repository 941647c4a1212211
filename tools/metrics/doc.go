// Package metrics checks dashboards and alerts against the metrics that the
// roles really export. It runs Trawl, scrapes it into a Prometheus database,
// and evaluates the queries there with Prometheus's own engine. It is a
// separate module, so that nothing else depends on Prometheus.
package metrics
