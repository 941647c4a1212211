package shardcache_test

import (
	"fmt"
	"testing"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/membership"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

func roots(n int) []catalog.Root {
	var list []catalog.Root
	for i := range n {
		digest := make([]byte, 32)
		digest[0], digest[1] = byte(i), byte(i>>8)
		list = append(list, catalog.Root{Record: &catalogv1.Root{
			Repo: fmt.Sprint("r", i), Shards: []*catalogv1.ShardRef{{Digest: digest, Key: fmt.Sprint("k", i), SizeBytes: 5}},
		}})
	}
	return list
}

// TestEveryShardIsPlaced: the searchers of a cluster, each by itself, hold every
// shard as often as the replication says.
func TestEveryShardIsPlaced(t *testing.T) {
	all := roots(300)
	members := []membership.Member{{ID: "a", Zone: "x"}, {ID: "b", Zone: "x"}, {ID: "c", Zone: "y"}, {ID: "d"}}
	for replication := 1; replication <= 5; replication++ {
		held := make(map[string]int)
		for _, self := range members {
			refs, err := shardcache.Mine(all, members, self, replication)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range refs {
				held[r.Key]++
			}
		}
		for _, root := range all {
			if key := root.Record.Shards[0].Key; held[key] != min(replication, len(members)) {
				t.Errorf("replication %d: %s is held %d times", replication, key, held[key])
			}
		}
	}
}

// TestNotRegisteredYet: a searcher that is not among the members takes what
// will be its own once it is.
func TestNotRegisteredYet(t *testing.T) {
	all := roots(100)
	before, err := shardcache.Mine(all, []membership.Member{{ID: "a"}}, membership.Member{ID: "b"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	after, err := shardcache.Mine(all, []membership.Member{{ID: "a"}, {ID: "b"}}, membership.Member{ID: "b"}, 1)
	if err != nil || len(before) != len(after) || len(before) == 0 || len(before) == 100 {
		t.Errorf("%d before, %d after, %v", len(before), len(after), err)
	}
}

func TestBadDigestIsTold(t *testing.T) {
	all := roots(2)
	all[0].Record.Shards[0].Digest = []byte("short")
	refs, err := shardcache.Mine(all, nil, membership.Member{ID: "a"}, 1)
	if err == nil || len(refs) != 1 {
		t.Errorf("%v, %v", refs, err)
	}
}

func TestSharedShardOnce(t *testing.T) {
	all := roots(1)
	all = append(all, all[0])
	if refs, _ := shardcache.Mine(all, nil, membership.Member{ID: "a"}, 1); len(refs) != 1 {
		t.Errorf("%v", refs)
	}
}
