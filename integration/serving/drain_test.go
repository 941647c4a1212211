package serving_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/bucket"
	adminv1 "github.com/trawl-search/trawl/proto/trawl/admin/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// gated is a bucket whose reads wait until open is closed.
type gated struct {
	bucket.Bucket
	open chan struct{}
}

func (g gated) Get(ctx context.Context, key string) (io.ReadCloser, bucket.Info, error) {
	select {
	case <-g.open:
		return g.Bucket.Get(ctx, key)
	case <-ctx.Done():
		return nil, bucket.Info{}, context.Cause(ctx)
	}
}

// TestDrain: a drained searcher goes on answering until the others have loaded its shards, however long
// that takes. No answer is incomplete, neither then nor after it has stopped, with one replica or two.
func TestDrain(t *testing.T) {
	for _, replication := range []int{1, 2} {
		t.Run(fmt.Sprint("replication ", replication), func(t *testing.T) { testDrain(t, replication) })
	}
}

func testDrain(t *testing.T, replication int) {
	const repos = 12
	c := startCluster(t, 1, replication)
	stop := c.startSearcher(1)
	gate := gated{c.bucket, make(chan struct{})}
	for i := range repos {
		c.publish(fmt.Sprint("host/r", i), map[string]string{"a": fmt.Sprintf("needle %d\n", i)})
	}
	c.find("needle", &searchv1.SearchOptions{RequireComplete: true})
	c.eventually("both have their shards", func() bool {
		if replication == 2 {
			return c.cached(0) == repos && c.cached(1) == repos
		}
		return c.cached(0, 1) == repos
	})
	defer c.askAll(repos)()
	c.bucket = gate // s2 has no shards, and can load none for now
	c.startUnready(2)
	admin := adminv1.NewAdminServiceClient(c.conn)
	var remaining uint32
	drain := func(id string, undo bool) error {
		resp, err := admin.DrainSearcher(t.Context(), &adminv1.DrainSearcherRequest{Id: id, Undo: undo})
		remaining = resp.GetRemaining()
		if err == nil && int(resp.GetReplication()) != replication {
			t.Errorf("replication is said to be %d", resp.GetReplication())
		}
		return err
	}
	state := func(id string) *adminv1.Searcher {
		resp, err := admin.ListSearchers(t.Context(), &adminv1.ListSearchersRequest{})
		c.must(err)
		i := slices.IndexFunc(resp.Searchers, func(s *adminv1.Searcher) bool { return s.Id == id })
		if i < 0 {
			return nil
		}
		return resp.Searchers[i]
	}
	in := func(id string, want adminv1.SearcherState) func() bool {
		return func() bool { return state(id).GetState() == want }
	}
	if err := drain("s9", false); status.Code(err) != codes.NotFound {
		t.Errorf("an unknown searcher: %v", err)
	}
	c.must(drain("s1", false))
	c.eventually("s2 is known to load what it takes over", func() bool { return state("s2").GetLoading() > 0 })
	c.eventually("s0 is done, s2 is not", func() bool { return slices.Equal(state("s1").GetAwaited(), []string{"s2"}) })
	c.eventually("s1 has shards still", func() bool { return state("s1").GetShards() > 0 && state("s1").GetShardBytes() > 0 })
	if got := state("s1").GetState(); got != adminv1.SearcherState_SEARCHER_STATE_DRAINING {
		t.Errorf("while s2 loads: %v", got)
	}
	close(gate.open)
	c.eventually("s1 is drained", in("s1", adminv1.SearcherState_SEARCHER_STATE_DRAINED))
	stop()
	c.eventually("s1 is gone", in("s1", adminv1.SearcherState_SEARCHER_STATE_GONE))
	c.find("needle", &searchv1.SearchOptions{RequireComplete: true})
	stop = c.startSearcher(1)
	c.eventually("it comes back as it went", in("s1", adminv1.SearcherState_SEARCHER_STATE_DRAINED))
	c.must(drain("s0", false))
	if remaining != 1 {
		t.Errorf("without s0 and s1 %d remain, not s2", remaining)
	}
	if err := drain("s2", false); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("the last one: %v", err)
	}
	c.must(drain("s1", true))
	if remaining != 2 {
		t.Errorf("with s1 again %d remain, not s1 and s2", remaining)
	}
	c.eventually("it takes shards", in("s1", adminv1.SearcherState_SEARCHER_STATE_ACTIVE))
	c.eventually("s0 is drained, too", in("s0", adminv1.SearcherState_SEARCHER_STATE_DRAINED))
	if replication == 2 {
		stop()
	}
}

// askAll searches for all files until stop is called. All answers must be complete.
func (c *cluster) askAll(files int) (stop func()) {
	done := make(chan struct{})
	var queries sync.WaitGroup
	queries.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				c.t.Logf("%d complete answers", n)
				return
			default:
			}
			resp, err := c.search.Search(c.t.Context(), &searchv1.SearchRequest{Query: "needle"})
			if err != nil || !resp.Coverage.Complete || len(resp.Files) != files {
				c.t.Errorf("%v, %v", resp.GetCoverage(), err)
				return
			}
		}
	})
	return func() { close(done); queries.Wait() }
}
