package cluster

import (
	"context"
	"fmt"
	"strings"
	"testing"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"

	"github.com/trawl-search/trawl/internal/testrun"
)

// TestSearcherDiskFull: no searcher has room for one shard. It is read past the disk: answers are complete.
func TestSearcherDiskFull(t *testing.T) {
	c := newCluster(t, layout{searchers: 2, searcherTmpfs: "size=4m"})
	small := c.newRepositories("small", 3)
	large := c.newRepository("large")
	large.commit(c.rng, 8, 40_000)
	all := append([]*repository{large}, small...)
	c.index(all...)
	c.expect(all...)
	for _, n := range c.searchers {
		if state, err := n.State(t.Context()); err != nil || !state.Running {
			t.Errorf("%s does not run any more: %v", n.name, err)
		}
	}
	small[0].commit(c.rng, 3, 20)
	c.index(small[0])
	c.finds("r:small0 "+small[0].token(2), small[0])
	if _, err := c.clients[0].ingest.DeleteRepo(t.Context(), &ingestv1.DeleteRepoRequest{Name: large.name}); err != nil {
		t.Fatal(err)
	}
	c.expect(small...)
}

// TestIndexerDiskFull: an indexer without room says so and keeps the request
// until there is room.
func TestIndexerDiskFull(t *testing.T) {
	c := newCluster(t, layout{indexerTmpfs: "size=24m"})
	r := c.newRepository("repo")
	r.commit(c.rng, 4, 10_000)
	const ballast = "/var/cache/trawl/indexer/ballast"
	c.indexers[0].run(t, "/bin/sh", "-c", "head -c 25000000 /dev/zero > "+ballast+" || true")
	put := c.put(r)
	testrun.Eventually(t, "the status says that the disk is full", func(ctx context.Context) error {
		s, err := c.clients[0].ingest.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: r.name})
		if err != nil {
			return err
		}
		if s.GetStatus().GetState() == ingestv1.State_STATE_FAILED {
			t.Fatalf("it failed for good: %v", s)
		}
		if !strings.Contains(s.GetStatus().GetReason(), "disk is full") {
			return fmt.Errorf("its status is %v", s.GetStatus())
		}
		return nil
	})
	c.indexers[0].run(t, "/bin/rm", ballast)
	c.published(put)
	c.expect(r)
}
