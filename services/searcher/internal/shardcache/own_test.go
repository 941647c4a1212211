package shardcache_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/membership"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

func chunkOf(roots ...*catalogv1.Root) []*catalog.Chunk {
	return catalog.ChunksOf(slices.Values(roots))
}

// root is a root of one shard.
func root(i, shard int) *catalogv1.Root {
	digest := make([]byte, 32)
	digest[0], digest[1] = byte(shard), byte(shard>>8)
	return &catalogv1.Root{Repo: fmt.Sprintf("r%04d", i), Shards: []*catalogv1.ShardRef{{Digest: digest, Key: fmt.Sprint("k", shard), SizeBytes: 5}}}
}

func roots(n int) []*catalog.Chunk {
	var list []*catalogv1.Root
	for i := range n {
		list = append(list, root(i, i))
	}
	return chunkOf(list...)
}

// mine are the keys of the shards that are placed on self.
func mine(t *testing.T, chunks []*catalog.Chunk, members []membership.Member, self membership.Member, replication int) []string {
	t.Helper()
	own := shardcache.NewOwn(self, replication)
	if err := own.Follow(chunks, members); err != nil {
		t.Fatal(err)
	}
	return keys(own)
}

func keys(own *shardcache.Own) (keys []string) {
	for _, r := range own.Refs() {
		keys = append(keys, r.Key)
	}
	slices.Sort(keys)
	return keys
}

// TestEveryShardIsPlaced: the searchers of a cluster, each by itself, hold every
// shard as often as the replication says.
func TestEveryShardIsPlaced(t *testing.T) {
	members := []membership.Member{{ID: "a", Zone: "x"}, {ID: "b", Zone: "x"}, {ID: "c", Zone: "y"}, {ID: "d"}}
	for replication := 1; replication <= 5; replication++ {
		held := make(map[string]int)
		for _, self := range members {
			for _, key := range mine(t, roots(300), members, self, replication) {
				held[key]++
			}
		}
		for i := range 300 {
			if key := fmt.Sprint("k", i); held[key] != min(replication, len(members)) {
				t.Errorf("replication %d: %s is held %d times", replication, key, held[key])
			}
		}
	}
}

// TestNotRegisteredYet: a searcher that is not among the members takes what
// will be its own once it is.
func TestNotRegisteredYet(t *testing.T) {
	before := mine(t, roots(100), []membership.Member{{ID: "a"}}, membership.Member{ID: "b"}, 1)
	after := mine(t, roots(100), []membership.Member{{ID: "a"}, {ID: "b"}}, membership.Member{ID: "b"}, 1)
	if !slices.Equal(before, after) || len(before) == 0 || len(before) == 100 {
		t.Errorf("%d before, %d after", len(before), len(after))
	}
}

func TestBadDigestIsTold(t *testing.T) {
	bad := root(0, 0)
	bad.Shards[0].Digest = []byte("short")
	own := shardcache.NewOwn(membership.Member{ID: "a"}, 1)
	if err := own.Follow(chunkOf(bad, root(1, 1)), nil); err == nil || len(own.Refs()) != 1 {
		t.Errorf("%v, %v", own.Refs(), err)
	}
}

func TestSharedShardOnce(t *testing.T) {
	if refs := mine(t, append(chunkOf(root(0, 0), root(1, 0)), chunkOf(root(2, 0))...), nil, membership.Member{ID: "a"}, 1); len(refs) != 1 {
		t.Errorf("%v", refs)
	}
}

// TestOwnFollows: shards that followed any changes of roots and members are those of a fresh start.
func TestOwnFollows(t *testing.T) {
	for range testrun.Rounds(20, 200) {
		rng := testrun.Rand(t)
		self := membership.Member{ID: "a"}
		own, members := shardcache.NewOwn(self, 2), []membership.Member{{ID: "b"}, {ID: "c"}}
		shardOf, chunks := make(map[int]int), make(map[int][]*catalog.Chunk)
		for range 50 {
			for range rng.IntN(4) { // some roots change
				i := rng.IntN(300)
				if shardOf[i] = rng.IntN(100); rng.IntN(3) == 0 {
					delete(shardOf, i)
				}
				var list []*catalogv1.Root
				for j := i / 30 * 30; j < i/30*30+30; j++ {
					if shard, published := shardOf[j]; published {
						list = append(list, root(j, shard))
					}
				}
				chunks[i/30] = chunkOf(list...)
			}
			if rng.IntN(5) == 0 {
				members = []membership.Member{{ID: "b"}, {ID: "c"}, {ID: fmt.Sprint("d", rng.IntN(3))}}[:1+rng.IntN(3)]
			}
			var now []*catalog.Chunk
			for _, key := range slices.Sorted(maps.Keys(chunks)) {
				now = append(now, chunks[key]...)
			}
			if err := own.Follow(now, members); err != nil {
				t.Fatal(err)
			}
			if got, want := keys(own), mine(t, now, members, self, 2); !slices.Equal(got, want) {
				t.Fatalf("shards %v, want %v", got, want)
			}
		}
	}
}
