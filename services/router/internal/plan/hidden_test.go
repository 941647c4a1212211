package plan_test

import (
	"bytes"
	"testing"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchwire"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/router/internal/plan"
)

// TestHiddenGoesWithTheShard: however a shard is planned, what a repo of the plan
// hides in it goes along, and nothing of other repos does.
func TestHiddenGoesWithTheShard(t *testing.T) {
	ref := func(hidden string) []*catalogv1.ShardRef {
		d := searchwire.Digest{1}
		return []*catalogv1.ShardRef{{Digest: d[:], Hidden: []byte(hidden)}}
	}
	layout, err := plan.NewLayout(5, []*catalogv1.Root{
		{Repo: "a", Shards: ref("A")}, {Repo: "b", Shards: ref("")}, {Repo: "c", Shards: ref("C"), Branches: []*catalogv1.Branch{{Name: "main", Commit: "new"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, shards []searchwire.Shard, want map[string]string) {
		t.Helper()
		p := shards[0].Planned()
		if len(shards) != 1 || len(p.Hidden) != len(want) {
			t.Fatalf("%s: %v", what, p)
		}
		for _, h := range p.Hidden {
			if name := p.Repos[h.Repo]; !bytes.Equal(h.Documents, []byte(want[name])) {
				t.Errorf("%s: %q of %s", what, h.Documents, name)
			}
		}
	}
	wanted, _, err := layout.Select(&query.Const{Value: true})
	if err != nil {
		t.Fatal(err)
	}
	both := map[string]string{"a": "A", "c": "C"}
	check("a query", wanted, both)
	check("all", layout.All(), both)
	check("one repo", layout.ShardsOf("c"), map[string]string{"c": "C"})
	check("one that hides nothing", layout.ShardsOf("b"), nil)
	only, err := layout.Only(func(repo string) bool { return repo != "a" })
	if err != nil {
		t.Fatal(err)
	}
	check("a part of the repos", only.All(), map[string]string{"c": "C"})
	if got := layout.Commit("c", "main", "old"); got != "new" {
		t.Errorf("commit %s", got)
	}
	if got := layout.Commit("a", "main", "old"); got != "old" {
		t.Errorf("commit %s where the root does not tell", got)
	}
}
