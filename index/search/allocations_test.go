//go:build !race

// Under the race detector, pools drop some of what they are given.

package search_test

import (
	"testing"

	"github.com/trawl-search/trawl/index/search"
)

// room is how many more allocations a search may make: measured are up to 7. One for each candidate
// or repo would be a thousand.
const room = 100

// TestAllocationsAreOfTheResult searches twice as many candidates for the same
// number of files: the number of allocations must not grow.
func TestAllocationsAreOfTheResult(t *testing.T) {
	small, large := openShard(t, buildShard(t, manyFiles(1000))), openShard(t, buildShard(t, manyFiles(2000)))
	for _, text := range []string{"common", "c:a", "co", "common word", `w\w+d`, "c:(common|rare)", "f:1 common", "lang:Go", "-x"} {
		q := prepare(t, parse(t, text))
		for _, mode := range []search.Mode{search.Exhaustive, search.TopK} {
			opts := search.Options{Mode: mode, MaxFiles: 20, MaxMatchesPerFile: 10}
			one, two := allocations(t, small, q, opts), allocations(t, large, q, opts)
			if two > one+room {
				t.Errorf("%s, mode %d: %.0f allocations for 1000 candidates, %.0f for 2000", text, mode, one, two)
			}
		}
	}
}

// allocations returns the fewest allocations of a few runs: the collector
// empties pools now and then.
func allocations(t *testing.T, s *search.Shard, q *search.Query, opts search.Options) float64 {
	t.Helper()
	least := testing.AllocsPerRun(1, func() { run(t, s, q, opts) })
	for range 4 {
		least = min(least, testing.AllocsPerRun(1, func() { run(t, s, q, opts) }))
	}
	return least
}

// TestOtherReposCostNoMemory searches a shard of few repos and one of many.
func TestOtherReposCostNoMemory(t *testing.T) {
	few, many := openShard(t, buildShard(t, manyRepos(100))), openShard(t, buildShard(t, manyRepos(3000)))
	q, opts := prepare(t, parse(t, "c:needle")), search.Options{MaxFiles: 10}
	if one, two := allocations(t, few, q, opts), allocations(t, many, q, opts); two > one+room {
		t.Errorf("%.0f allocations with 100 repos, %.0f with 3000", one, two)
	}
}
