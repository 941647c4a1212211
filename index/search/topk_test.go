package search_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/testrun"
)

// TestTopKIsTheBeginningOfTheWhole searches random corpora for the best few, in pages and with helpers. The files
// must be those of the exhaustive search, and the counts no higher.
func TestTopKIsTheBeginningOfTheWhole(t *testing.T) {
	ended, seeds := 0, testrun.Rounds[uint64](12, 40)
	for seed := range seeds {
		c := someTests(indextest.Random(seed))
		s := openShard(t, buildShard(t, c))
		rnd := rand.New(rand.NewPCG(seed, 1))
		for _, q := range indextest.Queries(c, seed+1000, 100) {
			if rnd.IntN(4) == 0 { // an expression that may find nothing but empty matches, which count for no score
				q.Text = []string{"f:^ ", "f:x* ", `f:"a|" `, `f:\b `, "c:x* ", "sym:x* ", "ref:(a|) "}[rnd.IntN(7)] + q.Text
			}
			ready, ok := preparable(t, q)
			if !ok {
				continue
			}
			opts := search.Options{MaxFiles: 1 + rnd.IntN(10), MaxMatchesPerFile: 5, After: somewhere(s, ready, rnd)}
			whole := run(t, s, ready, opts)
			for helpers := range 3 {
				opts.Mode = search.Exhaustive
				if got := run(t, s, ready, search.WithHelpers(opts, helpers)); !sameAnswer(got, whole) {
					t.Fatalf("seed %d, %s, %d helpers: %+v\nwant %+v", seed, q.Text, helpers, got, whole)
				}
				opts.Mode = search.TopK
				got := run(t, s, ready, search.WithHelpers(opts, helpers))
				if !sameFiles(got.Files, whole.Files) {
					t.Fatalf("seed %d, %s, best %d after %v, %d helpers:\n%v\nwant\n%v", seed, q.Text, opts.MaxFiles, opts.After, helpers, got.Files, whole.Files)
				}
				if less := got.Stats.FilesMatched < whole.Stats.FilesMatched; less && !got.Stats.CountsInexact ||
					got.Stats.FilesMatched > whole.Stats.FilesMatched || got.Stats.Matches > whole.Stats.Matches {
					t.Fatalf("seed %d, %s: counts %+v of %+v", seed, q.Text, got.Stats, whole.Stats)
				} else if less {
					ended++
				}
			}
		}
	}
	if ended < int(seeds)*25/2 {
		t.Errorf("only %d searches ended early", ended)
	}
}

// TestEmptyMatchesBoundNoScore: an expression that finds nothing but empty matches has no range and counts for no score, so that a definition beside it
// counts as in a query without it.
func TestEmptyMatchesBoundNoScore(t *testing.T) {
	repo := indextest.Repo{Name: "r", Branches: []string{"main"}}
	for i := range 40 {
		content := bytes.Repeat([]byte("// alpha\n"), 20)
		if i%10 == 9 {
			content = append(bytes.Repeat([]byte("// something else\n"), 3000), "func alpha() {}\n"...)
		}
		repo.Documents = append(repo.Documents, indextest.Document{Path: fmt.Sprintf("d/%02d.go", i), Content: content, Branches: repo.Branches, Language: "Go"})
	}
	s := openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{repo}}))
	for _, text := range []string{"f:^ c:alpha", "f:x* alpha", `f:"a|" f:\b c:alpha`, "match:any c:alpha f:^", "f:(|go) sym:alpha", "sym:y* c:alpha", "c:y* c:alpha", "ref:(y|) c:alpha"} {
		q := prepare(t, parse(t, text))
		for _, most := range []int{1, 3, 10} {
			opts := search.Options{MaxFiles: most, MaxMatchesPerFile: 5}
			whole := run(t, s, q, opts)
			opts.Mode = search.TopK
			if got := run(t, s, q, opts); !sameFiles(got.Files, whole.Files) {
				t.Errorf("%s, best %d:\n%v\nwant\n%v", text, most, got.Files, whole.Files)
			}
		}
	}
}

// TestFloorLeavesTheMergeAsItIs searches the repos of a corpus in two shards, with the last file of the first as
// the floor of the second.
func TestFloorLeavesTheMergeAsItIs(t *testing.T) {
	fewer, seeds := 0, testrun.Rounds[uint64](12, 40)
	for seed := range seeds {
		c := someTests(indextest.Random(seed))
		half := len(c.Repos) / 2
		whole := openShard(t, buildShard(t, c))
		low := openShard(t, buildShard(t, &indextest.Corpus{Repos: c.Repos[:half]}))
		high := openShard(t, buildShard(t, &indextest.Corpus{Repos: c.Repos[half:]}))
		for i, q := range indextest.Queries(c, seed+2000, 60) {
			ready, ok := preparable(t, q)
			if !ok {
				continue
			}
			opts := search.Options{MaxFiles: 1 + i%7, MaxMatchesPerFile: 5, Mode: search.Mode(i % 2)}
			want := run(t, whole, ready, opts)
			first, second := low, high
			if i%3 == 0 {
				first, second = high, low
			}
			got, err := searchParts([]part{{shard: first}, {shard: second}}, ready, opts)
			if err != nil || !sameFiles(got.Files, want.Files) {
				t.Fatalf("seed %d, %s, best %d: %v, %v\nwant %v", seed, q.Text, opts.MaxFiles, got, err, want.Files)
			}
			ranking := search.NewRanking(opts.MaxFiles, 0)
			ranking.Add(find(t, first, ready, opts))
			all := len(find(t, second, ready, opts).Hits)
			opts.Floor = ranking.Floor()
			if len(find(t, second, ready, opts).Hits) < all {
				fewer++
			}
		}
	}
	if fewer < int(seeds)*5/4 {
		t.Errorf("the floor left files out of %d searches only", fewer)
	}
}

// someTests moves a third of the documents into folders of tests.
func someTests(c *indextest.Corpus) *indextest.Corpus {
	for _, r := range c.Repos {
		for i := range r.Documents {
			if i%3 == 0 {
				r.Documents[i].Path = "tests/" + r.Documents[i].Path
			}
		}
	}
	return c
}

func run(t *testing.T, s *search.Shard, q *search.Query, opts search.Options) *search.Result {
	t.Helper()
	res, err := s.Search(context.Background(), q, opts)
	if err != nil || res.Incomplete != nil {
		t.Fatalf("search %s: %v, %v", q, err, res)
	}
	return res
}

// sameFiles reports whether files are equal.
func sameFiles(a, b []search.FileMatch) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

func sameAnswer(a, b *search.Result) bool {
	return sameFiles(a.Files, b.Files) && a.Stats.FilesMatched == b.Stats.FilesMatched &&
		a.Stats.Matches == b.Stats.Matches && a.Stats.CountsInexact == b.Stats.CountsInexact
}

// somewhere returns the place of a random result, or nil for the start.
func somewhere(s *search.Shard, q *search.Query, rnd *rand.Rand) *search.Key {
	all, err := s.Search(context.Background(), q, search.Options{MaxFiles: 1 << 20})
	if err != nil || len(all.Files) == 0 || rnd.IntN(2) == 0 {
		return nil
	}
	key := all.Files[rnd.IntN(len(all.Files))].Key()
	return &key
}

// manyFiles returns a corpus of n files with the same content.
func manyFiles(n int) *indextest.Corpus {
	c := &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}}}}
	for i := range n {
		c.Repos[0].Documents = append(c.Repos[0].Documents, indextest.Document{
			Path: fmt.Sprintf("%06d.go", i), Branches: []string{"main"}, Language: "Go",
			Content: fmt.Appendf(bytes.Repeat([]byte("a common word\n"), 10), "// %d\n", i),
		})
	}
	return c
}

// TestTopKEndsEarly searches for what every document has: the search looks at only about as many as are wanted,
// and counts the others by words or leaves them out.
func TestTopKEndsEarly(t *testing.T) {
	s := openShard(t, buildShard(t, manyFiles(2000)))
	for _, text := range []string{"common", "c:common", "c:a", "common word", "comm?on", "lang:Go", "c:(common|rare)", `c:w\w+d`} {
		q := prepare(t, parse(t, text))
		got := run(t, s, q, search.Options{Mode: search.TopK, MaxFiles: 10})
		if got.Stats.FilesConsidered > 20 || len(got.Files) != 10 || got.Stats.CountsInexact != (got.Stats.FilesMatched < 2000) {
			t.Errorf("%s: best 10 of 2000 equal files: %d found, %+v", text, len(got.Files), got.Stats)
		}
	}
}
