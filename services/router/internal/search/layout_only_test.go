package search_test

import (
	"slices"
	"testing"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

// TestOnlyTellsNothingOfOthers: a shard that also holds hidden repos, or repos that no root names
// anymore, shows neither size nor languages. A shard of visible repos alone keeps both.
func TestOnlyTellsNothingOfOthers(t *testing.T) {
	ref := func(n byte, repos, number uint32) *catalogv1.ShardRef {
		d := searchapi.Digest{n}
		return &catalogv1.ShardRef{Digest: d[:], SizeBytes: 100, Languages: []string{"C"}, Repos: repos, RepoNumber: number}
	}
	layout, err := search.NewLayout(5, []*catalogv1.Root{
		{Repo: "a", Shards: []*catalogv1.ShardRef{ref(1, 1, 0), ref(2, 2, 0)}}, {Repo: "b", Shards: []*catalogv1.ShardRef{ref(2, 2, 1)}},
		{Repo: "c", Shards: []*catalogv1.ShardRef{ref(3, 1, 0)}}, {Repo: "d", Shards: []*catalogv1.ShardRef{ref(4, 2, 0)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		repos   []string
		size    uint64 // of a
		partial bool
		pruned  int // for another language
	}{
		{[]string{"a", "b", "c"}, 150, false, 3}, {[]string{"a", "b"}, 150, false, 2}, {[]string{"a"}, 100, true, 1}, {[]string{"c"}, 0, false, 1}, {[]string{"d"}, 0, true, 0},
		{nil, 0, false, 0},
	} {
		only := layout.Only(func(repo string) bool { return slices.Contains(tt.repos, repo) })
		wanted, err := only.Select(t.Context(), &query.Language{Name: "Go"})
		if pruned := len(only.All()) - len(wanted); err != nil || pruned != tt.pruned || only.IndexBytes("a") != tt.size || only.Partial != tt.partial {
			t.Errorf("%v: wants %v, a has %d bytes, partial %v, %v", tt.repos, wanted, only.IndexBytes("a"), only.Partial, err)
		}
		again := only.Only(func(string) bool { return true })
		if again.Partial != tt.partial || again.IndexBytes("a") != tt.size {
			t.Errorf("%v, and all of those: %d bytes, partial %v, %v", tt.repos, again.IndexBytes("a"), again.Partial, err)
		}
	}
}
