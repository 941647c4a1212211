package search_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

// slowRoots is an empty index whose roots take a fixed time, whatever the deadline of the query is.
type slowRoots time.Duration

func (slowRoots) Reach(context.Context, *searchv1.Consistency, int64) error { return nil }

func (r slowRoots) At(context.Context, *searchv1.Consistency, int64) (*search.Layout, error) {
	time.Sleep(time.Duration(r))
	return search.NewLayout(1, nil)
}

func (slowRoots) Candidates(searchapi.Digest) []fanout.Target { return nil }

func (slowRoots) Client(string) (searchv1.SearchServiceClient, error) { return nil, fanout.ErrClosed }

// TestShareOfDeadline: the share of its time that a query takes is measured, unless that time was
// too short to mean anything, or the query was not admitted.
func TestShareOfDeadline(t *testing.T) {
	for name, c := range map[string]struct {
		takes, deadline time.Duration
		queries         uint64
		want            map[float64]uint64 // queries within a share
	}{
		"in time":     {200 * time.Millisecond, time.Second, 1, map[float64]uint64{.1: 0, .25: 1, 1: 1, 5: 1}},
		"late":        {1030 * time.Millisecond, time.Second, 1, map[float64]uint64{1: 0, 1.02: 0, 1.05: 1}},
		"too late":    {10 * time.Second, time.Second, 1, map[float64]uint64{5: 0}},
		"short":       {20 * time.Millisecond, 40 * time.Millisecond, 0, nil},
		"the longest": {3 * time.Second, time.Hour, 1, map[float64]uint64{.25: 0, .5: 1}}, // of the ten seconds that any gets
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				registry := prometheus.NewRegistry()
				metrics := search.NewMetrics(registry)
				cfg := search.Config{Budget: search.Budget{Default: time.Second, Most: 10 * time.Second}, MaxQueries: 10}
				s := search.New(cfg, slowRoots(c.takes), slowRoots(0), noop.NewTracerProvider().Tracer(""), metrics, slog.New(slog.DiscardHandler))
				ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
				defer cancel()
				_ = searchOnce(ctx, s) // an error too takes its time
				queries, within := shares(t, registry, "search")
				if queries != c.queries {
					t.Errorf("%d queries were measured", queries)
				}
				for share, want := range c.want {
					if got, ok := within[share]; !ok || got != want {
						t.Errorf("%d took at most %v of their time, want %d", got, share, want)
					}
				}
			})
		})
	}
}

// shares reads how many queries of a method were measured, and how many of them
// took at most which share of their time.
func shares(t *testing.T, registry *prometheus.Registry, method string) (queries uint64, within map[float64]uint64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	within = make(map[float64]uint64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "trawl_router_query_deadline_ratio" && m.GetLabel()[0].GetValue() == method {
				queries = m.GetHistogram().GetSampleCount()
				for _, b := range m.GetHistogram().GetBucket() {
					within[b.GetUpperBound()] = b.GetCumulativeCount()
				}
			}
		}
	}
	return queries, within
}
