package compact

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/internal/catalog"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// TestRelatedFollowEachOther: the order has each repo once, and no stranger is between two relatives.
func TestRelatedFollowEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var repos []*repo
		for i := range rapid.IntRange(0, 20).Draw(t, "repos") {
			ids := rapid.SliceOfN(rapid.Uint32Range(1, 30), 0, 3).Draw(t, "sketch")
			repos = append(repos, &repo{Root: catalog.Root{Record: &catalogv1.Root{Repo: fmt.Sprint(i), Sketch: ids}}})
		}
		families := map[*repo]int{}
		for i, r := range repos {
			families[r] = i
		}
		for range repos { // as slowly as can be
			for _, a := range repos {
				for _, b := range repos {
					if slices.ContainsFunc(a.Record.Sketch, func(id uint32) bool { return slices.Contains(b.Record.Sketch, id) }) {
						families[a] = min(families[a], families[b])
					}
				}
			}
		}
		var order []int
		seen := map[*repo]bool{}
		for _, r := range related(repos) {
			seen[r] = true
			if len(order) == 0 || order[len(order)-1] != families[r] {
				order = append(order, families[r])
			}
		}
		if len(seen) != len(repos) || len(order) != len(slices.Compact(slices.Sorted(maps.Values(families)))) {
			t.Fatalf("families in the order %v of %v", order, families)
		}
	})
}

// TestForksShareAShard: shards of the target's size, each with some forks of every project, become shards with all forks
// of some projects.
func TestForksShareAShard(t *testing.T) {
	m := newModel(t, 1)
	const projects, forks, size = 60, 20, 2 << 20
	for i := range projects * forks {
		name := fmt.Sprintf("fork-%02d-of-%02d", i/projects, i%projects)
		m.lives[name] = m.next()
		root := &catalogv1.Root{Repo: name, Generation: 1, Shards: []*catalogv1.ShardRef{m.ref(size, false)}, Sketch: []uint32{uint32(i), uint32(1e6 + i%projects)}}
		m.roots[name] = catalog.Root{Record: root, Revision: m.next()}
	}
	m.now = m.now.Add(time.Hour)
	for range 5 {
		for _, c := range m.cfg.Plan(m.state()) {
			m.do(c)
		}
		m.now = m.now.Add(time.Hour)
	}
	shards := map[string]map[string]bool{} // by project
	for name, root := range m.roots {
		project := name[len(name)-2:]
		if shards[project] == nil {
			shards[project] = map[string]bool{}
		}
		shards[project][root.Record.GetShards()[0].GetKey()] = true
	}
	_, _, all := m.amplification()
	apart := 0
	for _, keys := range shards {
		apart += len(keys) - 1
	}
	if all < 2 || apart >= all {
		t.Errorf("%d projects in %d shards, %d times divided", projects, all, apart)
	}
}
