package search_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/testrun"
)

// TestMaxBytesKeepsTheBeginning: under any limit of bytes, the files are the
// beginning of the whole answer, as many as have room, and the counts cover
// everything.
func TestMaxBytesKeepsTheBeginning(t *testing.T) {
	cuts := 0
	rapid.Check(t, func(t *rapid.T) {
		s := openShard(t, buildShard(t, indextest.Random(rapid.Uint64Range(0, 50).Draw(t, "corpus"))))
		q := parse(t, rapid.SampledFrom([]string{"", "a", "e or f:c", "(a|e)", "lo"}).Draw(t, "query"))
		opts := search.Options{MaxFiles: rapid.IntRange(1, 40).Draw(t, "files"), MaxMatchesPerFile: rapid.IntRange(1, 1000).Draw(t, "matches")}
		opts.After = somewhereOrNot(t, s, q)
		whole := mustSearch(t, s, q, opts)
		opts.MaxBytes = rapid.Int64Range(1, 6000).Draw(t, "bytes")
		if helpers := rapid.IntRange(0, 3).Draw(t, "helpers"); helpers > 0 {
			opts = search.WithHelpers(opts, helpers)
		}
		for _, mode := range []search.Mode{search.Exhaustive, search.TopK} {
			opts.Mode = mode
			got := mustSearch(t, s, q, opts)
			checkBeginning(t, got, whole, opts)
			if got.Cut {
				cuts++
			}
		}
	})
	if cuts == 0 {
		t.Error("no answer was cut")
	}
}

func somewhereOrNot(t *rapid.T, s *search.Shard, q query.Q) *search.Key {
	all := mustSearch(t, s, q, search.Options{MaxFiles: 1000}).Files
	if i := rapid.IntRange(-1, len(all)-1).Draw(t, "after"); i >= 0 {
		key := all[i].Key()
		return &key
	}
	return nil
}

func checkBeginning(t *rapid.T, got, whole *search.Result, opts search.Options) {
	t.Helper()
	n := len(got.Files)
	if n > len(whole.Files) || !sameFiles(got.Files, whole.Files[:n]) {
		t.Fatalf("%d files are not the first of %d", n, len(whole.Files))
	}
	if !got.Stats.CountsInexact && (got.Stats.FilesMatched != whole.Stats.FilesMatched || got.Stats.Matches != whole.Stats.Matches) {
		t.Fatalf("counts %+v, want %+v", got.Stats, whole.Stats)
	}
	var size int64
	for i := range got.Files {
		size += got.Files[i].Size()
	}
	switch {
	case size > opts.MaxBytes && n > 1:
		t.Fatalf("%d files of %d bytes, at most %d are wanted", n, size, opts.MaxBytes)
	case n < len(whole.Files) && (!got.Cut || size+whole.Files[n].Size() <= opts.MaxBytes):
		t.Fatalf("%d of %d files in %d of %d bytes, cut %v", n, len(whole.Files), size, opts.MaxBytes, got.Cut)
	case n == len(whole.Files) && got.Cut && opts.Mode == search.Exhaustive && size < opts.MaxBytes:
		t.Fatalf("all %d files, but it says that some are left out", n)
	}
}

// TestMaxBytesBoundsMemory: ranges without room are not kept until the end.
func TestMaxBytesBoundsMemory(t *testing.T) {
	c := &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}}}}
	const files = 100
	for i := range files {
		content := append(fmt.Appendf(nil, "%d ", i), bytes.Repeat([]byte("x"), 20_000)...)
		c.Repos[0].Documents = append(c.Repos[0].Documents, indextest.Document{Path: fmt.Sprint(i), Content: content, Branches: []string{"main"}})
	}
	s, q := openShard(t, buildShard(t, c)), parse(t, "(x|y)")
	allocated := func(limit int64) (uint64, *search.Result) {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		r := mustSearch(t, s, q, search.Options{MaxFiles: 10_000, MaxMatchesPerFile: 100_000, MaxBytes: limit})
		runtime.GC()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc, r
	}
	allocated(1 << 20) // allocates what searches share
	all, whole := allocated(0)
	some, cut := allocated(1 << 20)
	if whole.Stats.Matches != files*20_000 || cut.Stats.Matches != whole.Stats.Matches || !cut.Cut || len(cut.Files) != 2 {
		t.Fatalf("%d matches, %d with a limit; %d files, cut %v", whole.Stats.Matches, cut.Stats.Matches, len(cut.Files), cut.Cut)
	}
	if some > all/4 { // measured: a twentieth
		t.Errorf("%d bytes were allocated with a limit, %d without", some, all)
	}
	t.Logf("%d bytes were allocated with a limit, %d without", some, all)
}

// TestMaxBytesCountsWhatIsShown: files whose few lines have room are not left out for the many matches that are not shown.
func TestMaxBytesCountsWhatIsShown(t *testing.T) {
	c := &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}}}}
	for i := range 5 {
		content := append(fmt.Appendf(nil, "%d\n", i), bytes.Repeat([]byte("needle here\n"), 5_000)...)
		c.Repos[0].Documents = append(c.Repos[0].Documents, indextest.Document{Path: fmt.Sprint(i), Content: content, Branches: []string{"main"}})
	}
	s := openShard(t, buildShard(t, c))
	for _, text := range []string{"needle", "needl.", "needle here", `"needle here"`} {
		opts := search.Options{MaxFiles: 20, MaxMatchesPerFile: 100_000, MaxLinesPerFile: 2, MaxBytes: 20_000}
		if got := mustSearch(t, s, parse(t, text), opts); len(got.Files) != 5 || got.Cut {
			t.Errorf("%s: %d of 5 files, cut %t", text, len(got.Files), got.Cut)
		}
	}
}

// TestCutShowsNothingHidden: whether files are left out for want of room does not depend on what a repo holds that the caller may not see.
func TestCutShowsNothingHidden(t *testing.T) {
	cut, left := 0, 0
	for seed := range testrun.Rounds[uint64](40, 300) {
		rnd := rand.New(rand.NewPCG(seed, 8))
		one := commonWords(seed)
		one.Repos = one.Repos[:2]
		one.Repos[0].Documents = one.Repos[0].Documents[:1+seed%3] // so that all may have room
		other := &indextest.Corpus{Repos: slices.Clone(one.Repos)}
		other.Repos[1].Documents = one.Repos[1].Documents[:1]
		var shards [2]*search.Shard
		for i, c := range []*indextest.Corpus{one, other} {
			shards[i] = openShard(t, buildShard(t, c))
		}
		for _, text := range []string{"foo", "x", "c:foo c:x", "foo or x", "food", "f:go", "go c:k", "foo x go", "/fo+/ x", "(foo|x).*go", "foo -rarely"} {
			q := prepare(t, parse(t, text))
			for range 20 {
				opts := search.Options{
					Mode: search.Mode(rnd.IntN(2)), MaxFiles: 1 + rnd.IntN(20), MaxMatchesPerFile: 1 + rnd.IntN(3), MaxLinesPerFile: 2 * rnd.IntN(2), MaxBytes: int64(100 + rnd.IntN(200)),
					Repos: func(repo int) bool { return repo != 1 },
				}
				want, got := run(t, shards[0], q, opts), run(t, shards[1], q, opts)
				if !sameFiles(got.Files, want.Files) || got.Cut != want.Cut {
					t.Fatalf("seed %d, %s, %+v: cut %t, with others hidden %t:\n%+v\n%+v", seed, text, opts, want.Cut, got.Cut, want.Files, got.Files)
				}
				if left++; got.Cut {
					cut++
				}
			}
		}
	}
	if cut == 0 || cut == left {
		t.Errorf("%d of %d answers were cut", cut, left)
	}
}
