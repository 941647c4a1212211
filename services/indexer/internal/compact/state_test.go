package compact

import (
	"fmt"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/internal/catalog"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// TestPacksKnowWhoIsDeleted: a shared shard counts as having a deleted repo exactly if a repo that was
// packed into it is not desired, or was put again after that, or if its pack may lack repos.
func TestPacksKnowWhoIsDeleted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const packed = 10
		key := catalog.ShardKey(packed, [32]byte{1})
		pack := &catalogv1.Pack{Key: key, MadeAt: timestamppb.Now(), Unknown: rapid.IntRange(0, 9).Draw(t, "unknown") == 0}
		s := State{Lives: map[string]int64{}}
		want := pack.Unknown
		for i := range rapid.IntRange(1, 4).Draw(t, "repos") {
			name := fmt.Sprint("repo", i)
			pack.Repos = append(pack.Repos, name)
			// 0 is a repo that is not desired. Most are older than the shard.
			life := rapid.OneOf(rapid.Int64Range(0, packed+5), rapid.Int64Range(1, packed-1)).Draw(t, "life")
			if want = want || life == 0 || life > packed; life > 0 {
				s.Lives[name] = life
			}
			// Some of the repos do not have the shard any more.
			if i == 0 || rapid.Bool().Draw(t, "has it") {
				s.Roots = append(s.Roots, catalog.Root{Record: &catalogv1.Root{Repo: name, Shards: []*catalogv1.ShardRef{{Key: key}}}})
			}
		}
		s.Packs = []catalog.Pack{{Record: pack, Revision: packed + 3}}
		if o := newView(s).byKey[key]; o.deleted != want || !o.shared || !o.made.Equal(pack.MadeAt.AsTime()) {
			t.Fatalf("deleted: %v, want %v; shared: %v, made at %v", o.deleted, want, o.shared, o.made)
		}
	})
}
