package search

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Metrics count how searches end. Every outcome of a shard has its counter.
type Metrics struct {
	latency *prometheus.HistogramVec
	// spent is the share of their deadline that queries took.
	spent  *prometheus.HistogramVec
	shards *prometheus.CounterVec
	calls  prometheus.Counter
	// inflight counts the calls in progress.
	inflight prometheus.Gauge
	// quarantined counts refused queries that kill searchers.
	quarantined prometheus.Counter
	// limit is how many queries are admitted at once; sheds counts refused ones by class and limit.
	limit prometheus.Gauge
	sheds *prometheus.CounterVec
	// processor and decoded count what searchers report that calls cost: seconds and bytes.
	processor, decoded prometheus.Counter
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	with := promauto.With(r)
	m := &Metrics{
		latency: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "trawl_router_query_seconds", Help: "Time of searches by method and outcome: complete, incomplete or the error's code.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 12),
		}, []string{"method", "outcome"}),
		spent: with.NewHistogramVec(prometheus.HistogramOpts{
			Name: "trawl_router_query_deadline_ratio",
			Help: "Time of admitted searches as a share of their deadline, by method, for deadlines of 50 ms and more.",
			// The promise is a 99th percentile of at most 1.02.
			Buckets: []float64{.1, .25, .5, .75, .9, .95, 1, 1.02, 1.05, 1.1, 1.25, 1.5, 2, 5},
		}, []string{"method"}),
		shards: with.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_router_shards_total", Help: "Shards of queries by what became of them: searched, pruned or the reason they are not covered.",
		}, []string{"outcome"}),
		calls: with.NewCounter(prometheus.CounterOpts{
			Name: "trawl_router_searcher_calls_total", Help: "Calls sent to searchers, repeated ones included.",
		}),
		inflight: with.NewGauge(prometheus.GaugeOpts{
			Name: "trawl_router_queries_inflight", Help: "Searches that are being answered.",
		}),
		quarantined: with.NewCounter(prometheus.CounterOpts{
			Name: "trawl_router_quarantined_total", Help: "Queries that were refused because they had killed searchers before.",
		}),
		limit: with.NewGauge(prometheus.GaugeOpts{
			Name: "trawl_router_query_limit", Help: "Limit of queries that are answered at once. It adapts to the capacity of the searchers.",
		}),
		sheds: with.NewCounterVec(prometheus.CounterOpts{
			Name: "trawl_router_shed_total", Help: "Queries that were refused, by class and by the limit: too many of all or of one caller at once, or usage, what one caller used before.",
		}, []string{"class", "limit"}),
		processor: with.NewCounter(prometheus.CounterOpts{
			Name: "trawl_router_searcher_processor_seconds_total", Help: "Processor time that searchers spent on calls of this router.",
		}),
		decoded: with.NewCounter(prometheus.CounterOpts{
			Name: "trawl_router_searcher_decoded_bytes_total", Help: "Content that searchers decoded for calls of this router.",
		}),
	}
	m.present()
	return m
}

// present creates the series of all known label values, so that they exist from the
// start.
func (m *Metrics) present() {
	for _, method := range []string{"search", "stream_search", "list", "stream_list", "get_file", "get_files", "list_tree"} {
		m.spent.WithLabelValues(method)
		for _, outcome := range usualOutcomes {
			m.latency.WithLabelValues(method, outcome)
		}
	}
	for _, outcome := range append(searchapi.ReasonNames(), "searched", "pruned") {
		m.shards.WithLabelValues(outcome)
	}
	for _, class := range []queryClass{interactive, batch} {
		for _, limit := range []string{limitAll, limitCaller, limitUsage} {
			m.sheds.WithLabelValues(class.String(), limit)
		}
	}
}

// usualOutcomes are the usual outcomes of searches. Series of other codes appear when
// they first happen.
var usualOutcomes = []string{
	"complete", "incomplete", codes.InvalidArgument.String(), codes.DeadlineExceeded.String(), codes.Canceled.String(),
	codes.ResourceExhausted.String(), codes.Unavailable.String(), codes.Internal.String(), codes.Unknown.String(), codes.DataLoss.String(),
}

// begin counts the start of a call, and observe its end.
func (m *Metrics) begin() time.Time {
	m.inflight.Inc()
	return time.Now()
}

func (m *Metrics) observe(method string, start time.Time, c *searchv1.Coverage, err error) {
	m.inflight.Dec()
	outcome := "complete"
	switch {
	case err != nil:
		outcome = status.Code(err).String()
	case c != nil && !c.Complete:
		outcome = "incomplete"
	}
	m.latency.WithLabelValues(method, outcome).Observe(time.Since(start).Seconds())
}

// Unavailable counts a call that was refused before it reached the service, though its
// caller did nothing wrong.
func (m *Metrics) Unavailable(method string) {
	m.latency.WithLabelValues(method, codes.Unavailable.String()).Observe(0)
}

// given is the error that the caller of a stream gets: err, unless a refusal during the call ended
// its context.
func given(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if _, refused := status.FromError(cause); err != nil && cause != nil && refused {
		return cause
	}
	return err
}

func (m *Metrics) count(c *searchv1.Coverage) {
	m.shards.WithLabelValues("searched").Add(float64(c.Searched))
	m.shards.WithLabelValues("pruned").Add(float64(c.Pruned))
	for _, u := range c.Uncovered {
		m.shards.WithLabelValues(searchapi.ReasonName(u.Reason)).Inc()
	}
}

// The limits that queries are refused by, as the metric names them.
const (
	limitAll    = "all"
	limitCaller = "caller"
	limitUsage  = "usage"
)

func (m *Metrics) shed(c queryClass, limit string) { m.sheds.WithLabelValues(c.String(), limit).Inc() }
