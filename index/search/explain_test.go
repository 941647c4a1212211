package search_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/testrun"
)

// TestExplanationsAddUp: the reads of an explanation's nodes add up to the statistics, and an
// explained search finds the same as any other.
func TestExplanationsAddUp(t *testing.T) {
	came := map[string]bool{}
	for seed := range testrun.Rounds[uint64](8, 20) {
		c := indextest.Random(seed)
		s := openShard(t, buildShard(t, c))
		for i, q := range indextest.Queries(c, seed+3000, 60) {
			ready, ok := preparable(t, q)
			if !ok {
				continue
			}
			opts := search.Options{MaxFiles: i % 9, MaxMatchesPerFile: 5, Mode: search.Mode(i % 2)}
			want := run(t, s, ready, opts)
			opts.Explain = true
			got := run(t, s, ready, opts)
			for i := range got.Files {
				got.Files[i].Explanation = ""
			}
			if !sameFiles(got.Files, want.Files) || !sameAnswer(got, want) {
				t.Fatalf("seed %d, %s: explained %+v\nwant %+v", seed, q.Text, got, want)
			}
			for _, method := range checkExplanation(t, q.Text, got) {
				came[method] = true
			}
		}
	}
	for _, method := range []string{ // but ByWordsAndText, which needs a larger shard
		search.ByWords, search.ByNgramsAndText, search.ByCandidates, search.ByEveryText, search.ByNames, search.ByEveryName, search.ByPaths,
		search.ByColumn, search.ByRanges, search.ByShardAll, search.ByShardNone, search.NotAsked,
	} {
		if !came[method] {
			t.Errorf("no text was answered by %q", method)
		}
	}
}

// checkExplanation compares an explanation with the statistics and returns all of its methods.
func checkExplanation(t *testing.T, text string, r *search.Result) (methods []string) {
	t.Helper()
	x := r.Explanation
	sum, took := x.Other, time.Duration(0)
	for _, n := range x.Nodes {
		sum.Lists += n.Lists
		sum.Bytes += n.Bytes
		sum.Units += n.Units
		sum.Time += n.Time
		methods = append(methods, n.Methods...)
		if n.Matched > n.Checked {
			t.Errorf("%s: %s matches %d of %d documents", text, n.Query, n.Matched, n.Checked)
		}
	}
	for _, phase := range x.Phases {
		took += phase
	}
	if s := r.Stats; sum.Lists != s.ListsRead || sum.Bytes != s.BytesDecoded || sum.Units != s.UnitsDecoded || sum.Time != took {
		t.Errorf("%s: nodes add up to %+v, phases to %s; the statistics are %+v", text, sum, took, s)
	}
	if root, s := x.Nodes[0], r.Stats; root.Checked != s.FilesConsidered || root.Matched+x.Bulk != s.FilesMatched {
		t.Errorf("%s: the root matches %d of %d documents and %d in bulk; the statistics are %+v", text, root.Matched, root.Checked, x.Bulk, s)
	}
	return methods
}

// TestOthersReposAreNotExplained: what a search reads in a shard depends on all of its repos, so
// only callers who may read all of them get an explanation.
func TestOthersReposAreNotExplained(t *testing.T) {
	s := openShard(t, buildShard(t, manyRepos(20)))
	q := prepare(t, parse(t, "common"))
	for _, tt := range []struct {
		allowed   int
		explained bool
	}{{20, true}, {19, false}, {0, false}} {
		r := run(t, s, q, search.Options{MaxFiles: 3, Explain: true, Repos: func(repo int) bool { return repo < tt.allowed }})
		if explained := r.Explanation != nil; explained != tt.explained || explained && (r.Explanation.Repo != "host/org/repo000000" || r.Explanation.Repos != 20) {
			t.Errorf("%d of 20 repos may be read: explained %v", tt.allowed, explained)
		}
	}
	if r := run(t, s, q, search.Options{MaxFiles: 3}); r.Explanation != nil {
		t.Error("explained without being asked")
	}
}

// TestMethods checks how texts are found in a shard of some size.
func TestMethods(t *testing.T) {
	s := openShard(t, buildShard(t, manyRepos(400)))
	for text, want := range map[string]string{
		"c:common":      search.ByWords,
		`c:needle\s`:    search.ByWordsAndText,
		`c:"in repo 1"`: search.ByWordsAndText,
		`c:=>:`:         search.ByNgramsAndText,
		`c:.`:           search.ByEveryText,
		"f:file":        search.ByNames,
		"f:e":           search.ByEveryName,
		"common":        search.ByWords + " + " + search.ByNames,
		"archived:yes":  search.ByShardNone,
		"public:yes":    search.ByColumn,
		"r:host":        search.ByShardAll,
		"b:main":        search.ByColumn,
		"common b:main": "",
	} {
		r := run(t, s, prepare(t, parse(t, text)), search.Options{MaxFiles: 3, Explain: true})
		if got := strings.Join(r.Explanation.Nodes[0].Methods, " + "); got != want {
			t.Errorf("%s: answered by %q, want %q", text, got, want)
		}
		checkExplanation(t, text, r)
	}
}

// TestRangesAreExplained: a node that paths and columns decide is asked about no document, and the
// number of documents that it lets through is known.
func TestRangesAreExplained(t *testing.T) {
	s := openShard(t, buildShard(t, manyRepos(400)))
	r := run(t, s, prepare(t, parse(t, "common public:yes -f:other")), search.Options{MaxFiles: 3, Explain: true})
	estimates := map[string]uint64{"public:yes": 200, "not": 400, `file substring:"other"`: 0}
	for _, n := range r.Explanation.Nodes {
		want, ranges := estimates[n.Query]
		if ranges && (!slices.Equal(n.Methods, []string{search.ByRanges}) || n.Estimate != want || n.Checked > 0) {
			t.Errorf("%s is answered by %q, estimate %d, checked %d", n.Query, n.Methods, n.Estimate, n.Checked)
		}
		delete(estimates, n.Query)
	}
	if len(estimates) > 0 {
		t.Errorf("not explained: %v", estimates)
	}
}
