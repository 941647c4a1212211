package search_test

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

// TestBranchesGoWithTheShard: the plan of a shard has the root's names for its branches, and none
// of another repo.
func TestBranchesGoWithTheShard(t *testing.T) {
	d := searchapi.Digest{1}
	root := func(name string, number uint32, places []uint32, branches ...string) *catalogv1.Root {
		r := &catalogv1.Root{Repo: name, Shards: []*catalogv1.ShardRef{{Digest: d[:], Branches: places, RepoNumber: number}}}
		for _, b := range branches {
			r.Branches = append(r.Branches, &catalogv1.Branch{Name: b})
		}
		return r
	}
	layout, err := search.NewLayout(5, []*catalogv1.Root{root("a", 0, nil, "main"), root("b", 1, []uint32{2, 1}, "trunk", "next")})
	if err != nil {
		t.Fatal(err)
	}
	want := []*searchv1.ServedBranches{{Repo: 1, Names: []string{"trunk", "next"}, Places: []uint32{2, 1}}}
	if got := layout.All()[0].Planned().Branches; len(got) != 1 || !proto.Equal(got[0], want[0]) {
		t.Errorf("all: %v", got)
	}
	if got := layout.ShardsOf("b")[0].Planned().Branches; len(got) != 1 || got[0].Repo != 1 || got[0].Names[1] != "next" {
		t.Errorf("one repo: %v", got)
	}
	if got := layout.ShardsOf("a")[0].Planned().Branches; len(got) > 0 {
		t.Errorf("the other: %v", got)
	}
}

// TestHiddenGoesWithTheShard: however a shard is planned, the plan has the documents that its repos
// hide in it, and none of other repos.
func TestHiddenGoesWithTheShard(t *testing.T) {
	ref := func(number uint32, hidden string) []*catalogv1.ShardRef {
		d := searchapi.Digest{1}
		return []*catalogv1.ShardRef{{Digest: d[:], Hidden: []byte(hidden), RepoNumber: number}}
	}
	layout, err := search.NewLayout(5, []*catalogv1.Root{
		{Repo: "a", Shards: ref(0, "A")}, {Repo: "b", Shards: ref(1, "")}, {Repo: "c", Shards: ref(2, "C"), Branches: []*catalogv1.Branch{{Name: "main", Commit: "new"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, shards []searchapi.Shard, want map[string]string) {
		t.Helper()
		p := shards[0].Planned()
		if len(shards) != 1 || len(p.Hidden) != len(want) {
			t.Fatalf("%s: %v", what, p)
		}
		for _, h := range p.Hidden {
			if name := string(rune('a' + h.Repo)); !bytes.Equal(h.Documents, []byte(want[name])) {
				t.Errorf("%s: %q of %s", what, h.Documents, name)
			}
		}
	}
	wanted, err := layout.Select(t.Context(), &query.Const{Value: true})
	if err != nil {
		t.Fatal(err)
	}
	both := map[string]string{"a": "A", "c": "C"}
	check("a query", wanted, both)
	check("all", layout.All(), both)
	check("one repo", layout.ShardsOf("c"), map[string]string{"c": "C"})
	check("one that hides nothing", layout.ShardsOf("b"), nil)
	only := layout.Only(func(repo string) bool { return repo != "a" })
	check("a part of the repos", only.All(), map[string]string{"c": "C"})
	if got := layout.Commit("c", "main", "old"); got != "new" {
		t.Errorf("commit %s", got)
	}
	if got := layout.Commit("a", "main", "old"); got != "old" {
		t.Errorf("commit %s where the root names none", got)
	}
}
