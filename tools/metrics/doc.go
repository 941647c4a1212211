// Package metrics holds dashboards and alerts against what the roles really
// tell: it runs Trawl, scrapes it into a Prometheus database, and evaluates
// their queries there with Prometheus's own engine. It is a module of its own,
// so that nothing else depends on Prometheus.
package metrics
