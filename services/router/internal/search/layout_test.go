package search_test

import (
	"testing"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

// TestLanguagesOfEachRepo: repos in one shard have their own languages in it, and
// the shard is left out only if none of them has the one that is asked for.
func TestLanguagesOfEachRepo(t *testing.T) {
	d := searchapi.Digest{1}
	ref := func(language string, number uint32) []*catalogv1.ShardRef {
		return []*catalogv1.ShardRef{{Digest: d[:], SizeBytes: 100, Languages: []string{language}, RepoNumber: number}}
	}
	layout, err := search.NewLayout(5, []*catalogv1.Root{{Repo: "b", Shards: ref("Go", 1)}, {Repo: "a", Shards: ref("C", 0)}})
	if err != nil {
		t.Fatal(err)
	}
	both := func(repo string, language query.Q) query.Q {
		return &query.And{Children: []query.Q{&query.RepoSet{Names: map[string]bool{repo: true}}, language}}
	}
	for _, tt := range []struct {
		q      query.Q
		wanted int
	}{
		{&query.Language{Name: "C"}, 1},
		{&query.Language{Name: "Go"}, 1},
		{&query.Language{Name: "Rust"}, 0},
		{both("a", &query.Language{Name: "C"}), 1},
		{both("a", &query.Language{Name: "Go"}), 0},
		{both("b", &query.Language{Name: "Go"}), 1},
	} {
		if wanted, err := layout.Select(t.Context(), tt.q); err != nil || len(wanted) != tt.wanted {
			t.Errorf("%v: %d shards, want %d, %v", tt.q, len(wanted), tt.wanted, err)
		}
	}
}
