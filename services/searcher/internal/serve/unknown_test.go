package serve_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/serve"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

// stalled never gets newer roots.
type stalled struct{}

func (stalled) WaitApplied(ctx context.Context, _ int64) error {
	<-ctx.Done()
	return ctx.Err()
}

// newer gets roots that place a shard here.
type newer struct {
	store *shardcache.Store
	shard string
}

func (n newer) WaitApplied(_ context.Context, revision int64) error {
	d := digestOf(n.shard)
	n.store.Want(revision, []shardcache.Ref{{Digest: d, Key: d.String(), Size: int64(len(n.shard))}})
	return nil
}

// placed is a service whose roots come from p.
func placed(store *shardcache.Store, p serve.Placement) *serve.Service {
	return serve.New(serve.Config{Parallel: 2, LoadWait: time.Second}, store, p, noop.NewTracerProvider().Tracer(""),
		serve.NewMetrics(prometheus.NewRegistry()), slog.New(slog.DiscardHandler))
}

// TestUnknownShardIsWaitedFor: a shard of roots that the router has read before the searcher is searched.
func TestUnknownShardIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storeOf(t, t.TempDir(), openAct, "good")
		store.Want(2, nil)
		synctest.Wait()
		plan := planOf("r", "good")
		plan.Revision = 3
		resp, err := searchAll(t.Context(), placed(store, newer{store, "good"}), &searchv1.SearchRequest{Query: "q", Plan: plan})
		if err != nil || len(resp.Files) != 1 || !resp.Coverage.Complete {
			t.Errorf("%v, %v", resp, err)
		}
	})
}

// TestUnknownShardDelaysNoOther: a call that ends before the roots with one of its shards are there has the files of all others.
func TestUnknownShardDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := placed(storeOf(t, t.TempDir(), openAct, "good", "fine"), stalled{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		resp, err := searchAll(ctx, s, &searchv1.SearchRequest{Query: "q", Plan: planOf("r", "stranger", "good", "fine")})
		if err != nil || len(resp.Files) != 2 || resp.Coverage.Searched != 2 {
			t.Errorf("%v, %v", resp, err)
		}
		checkUncovered(t, resp.GetCoverage(), map[string]searchv1.UncoveredReason{"stranger": searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE})
	})
}
