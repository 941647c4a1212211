package search_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

// endless are layouts that come only when the call has ended.
type endless struct{ *cluster }

func (endless) At(ctx context.Context, _ *searchv1.Consistency, _ int64) (*search.Layout, error) {
	<-ctx.Done()
	return nil, status.FromContextError(ctx.Err()).Err()
}

// cutOff is a stream whose context has ended.
type cutOff[T any] struct {
	grpc.ServerStreamingServer[T]

	ctx context.Context //nolint:containedctx // it is the stream's
}

func (s cutOff[T]) Context() context.Context { return s.ctx }

// outcomes counts the calls of a method by their outcome, leaving out those that had none.
func outcomes(t *testing.T, metrics *prometheus.Registry, method string) map[string]uint64 {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]uint64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if n := m.GetHistogram().GetSampleCount(); strings.HasSuffix(family.GetName(), "_query_seconds") && labels["method"] == method && n > 0 {
				counts[labels["outcome"]] = n
			}
		}
	}
	return counts
}

// TestRefusedDuringTheCall: a stream that is refused while it waits counts with the outcome that
// its caller gets; one whose caller goes away counts as canceled.
func TestRefusedDuringTheCall(t *testing.T) {
	stale := status.Error(codes.Unavailable, "tokens cannot be checked")
	for want, cause := range map[codes.Code]error{codes.Unavailable: stale, codes.Canceled: context.Canceled} {
		c := start(t, 1, nil)
		registry := prometheus.NewRegistry()
		metrics := search.NewMetrics(registry)
		service := search.New(c.cfg, endless{c}, c, noop.NewTracerProvider().Tracer(""), metrics, slog.New(slog.DiscardHandler))
		ctx, end := context.WithCancelCause(t.Context())
		end(cause)
		searchErr := service.StreamSearch(&searchv1.StreamSearchRequest{Search: &searchv1.SearchRequest{Query: "x"}},
			cutOff[searchv1.StreamSearchResponse]{ctx: ctx})
		listErr := service.StreamList(&searchv1.StreamListRequest{List: &searchv1.ListRequest{Query: "x"}},
			cutOff[searchv1.StreamListResponse]{ctx: ctx})
		if searchErr == nil || listErr == nil {
			t.Errorf("%v: ended with %v and %v", cause, searchErr, listErr)
		}
		for _, method := range []string{"stream_search", "stream_list"} {
			if got := outcomes(t, registry, method); len(got) != 1 || got[want.String()] != 1 {
				t.Errorf("%s, %v: counted as %v, want %v", method, cause, got, want)
			}
		}
	}
}
