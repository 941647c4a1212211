package shardcache_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/testrun"
	"github.com/trawl-search/trawl/services/searcher/internal/disk"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

// TestLostCacheFolder: shards can be searched, those that come too, after the cache folder was removed, and while it cannot be written.
// The folder comes back by itself, and once it can be written the shards are files again.
func TestLostCacheFolder(t *testing.T) {
	dir, b := t.TempDir()+"/cache", bucket.NewMemory(1<<30)
	refs := []shardcache.Ref{putShard(t, b, "one", 200_000), putShard(t, b, "two", 300_000), putShard(t, b, "three", 400_000)}
	var sum int64
	for _, ref := range refs {
		sum += disk.Rounded(ref.Size)
	}
	s := newBudgeted(t, dir, b, sum+64*disk.Page) // beside a file, there is room for what was kept of the shard by ranges
	serves := func(when string, refs ...shardcache.Ref) {
		t.Helper()
		s.Want(1, refs)
		for work := s.Next(); work != nil; work = s.Next() {
			work(t.Context())
		}
		for _, ref := range refs {
			if err := s.search(t.Context(), markerQuery(t), ref); err != nil {
				t.Errorf("when the folder %s: %s: %v", when, ref.Key, err)
			}
		}
	}
	serves("is there", refs[0])
	must(t, os.RemoveAll(dir))
	serves("was removed", refs[:2]...)
	checkWhole(t, "searched", refs[1:2], s.whole(refs))
	must(t, os.RemoveAll(dir))
	must(t, os.WriteFile(dir, nil, 0o600)) // which not even root can write below
	serves("cannot be written", refs...)
	must(t, os.Remove(dir))
	testrun.Eventually(t, "shards are files again", func(context.Context) error { // it is tried again after a pause
		if serves("can be written again", refs...); len(s.whole(refs)) == 0 {
			return errors.New("all are read by ranges")
		}
		return nil
	})
	checkWhole(t, "searched", refs[2:], s.whole(refs))
	s.stop()
}
