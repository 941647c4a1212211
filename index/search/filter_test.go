package search_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/testrun"
)

// folders is a corpus of many small files in folders of all sizes. Some files have the same
// content.
func folders(seed uint64, files int) *indextest.Corpus {
	rng := rand.New(rand.NewPCG(seed, 1))
	part := func() string {
		return []string{"test", "tests", "src", "jdk-17", "a", "b.rs", "Test", "teſt", "x_test_y", "deep"}[rng.IntN(10)]
	}
	word := func() string { return []string{"foo", "bar", "foobar", "Foo", "baz"}[rng.IntN(5)] }
	c := &indextest.Corpus{Name: "folders"}
	for i := range 2 {
		repo := indextest.Repo{Name: fmt.Sprint("repo", i), Branches: []string{"main"}}
		seen := map[string]bool{}
		dir := part()
		for range files / 2 {
			switch rng.IntN(20) {
			case 0:
				dir = part()
			case 1, 2:
				dir += "/" + part()
			case 3:
				dir = dir[:max(strings.LastIndexByte(dir, '/'), 1)]
			}
			path := fmt.Sprintf("%s/%s%d.%s", strings.TrimSuffix(dir, "/"), part(), rng.IntN(100), []string{"go", "rs", "txt"}[rng.IntN(3)])
			if len(path) > 500 {
				dir = part()
			}
			if seen[path] || len(path) > 500 {
				continue
			}
			seen[path] = true
			var content []string
			for range rng.IntN(12) {
				content = append(content, word())
			}
			if rng.IntN(3) > 0 {
				content = append(content, fmt.Sprint("file", i, path))
			}
			repo.Documents = append(repo.Documents, indextest.Document{
				Path: path, Content: []byte(strings.Join(content, " ")), Branches: repo.Branches, Language: []string{"", "Go", "Rust"}[rng.IntN(3)],
			})
		}
		slices.SortFunc(repo.Documents, func(a, b indextest.Document) int { return strings.Compare(a.Path, b.Path) })
		c.Repos = append(c.Repos, repo)
	}
	return c
}

// filters are conditions on paths; for some of them, what follows a match decides.
var filters = []string{
	`f:test`, `f:jdk`, `f:src/`, `f:/src/`, `f:(?-i)Test`, `f:\btest\b`, `f:test$`, `f:\.rs$`, `f:^test`, `f:test\B`, `f:te.t`,
	`f:[^/]*/src/`, `f:src.*rs`, `f:nothing_at_all`, `f:a/`, `f:1`, `f:(jdk|deep)/`, `f:x*`, `f:case`,
}

// TestMatchingPaths compares the documents whose paths match with a look at each path, for several
// budgets of looks.
func TestMatchingPaths(t *testing.T) {
	for seed := range uint64(2) {
		c := folders(seed, 1200)
		s := openShard(t, buildShard(t, c))
		for _, text := range filters {
			q := prepare(t, parse(t, text))
			all := mustSearch(t, s, parse(t, text), search.Options{MaxFiles: 1 << 20})
			want := map[string]bool{}
			for _, f := range all.Files {
				want[f.Repo+" "+string(f.Path)] = true
			}
			var docs []uint32
			doc := uint32(0)
			for _, r := range c.Repos {
				for _, d := range r.Documents {
					if want[r.Name+" "+d.Path] {
						docs = append(docs, doc)
					}
					doc++
				}
			}
			if diff := indextest.Compare(c, text, engine(s)); diff != "" {
				t.Fatalf("corpus %d, %s: %s", seed, text, diff)
			}
			for _, step := range []uint64{1, 100, math.MaxUint64} {
				got, _, err := s.MatchingPaths(context.Background(), q, step)
				if err != nil || !slices.Equal(got, docs) {
					t.Fatalf("corpus %d, %s, %d looks at a time: %d documents and error %v, want %d", seed, text, step, len(got), err, len(docs))
				}
			}
		}
	}
}

// TestFolderTakesFewLooks: if a folder's path matches, few paths in it are looked at.
func TestFolderTakesFewLooks(t *testing.T) {
	repo := indextest.Repo{Name: "r", Branches: []string{"main"}}
	for i := range 20_000 {
		repo.Documents = append(repo.Documents, indextest.Document{
			Path: fmt.Sprintf("openjdk/%03d/File%05d.java", i/100, i), Content: []byte(fmt.Sprint(i)), Branches: repo.Branches,
		})
	}
	s := openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{repo}}))
	for text, want := range map[string]int{"f:jdk": 20_000, "f:o[^/]*jdk": 20_000, "f:/12": 1000, "f:/012/": 100, "f:[^/]/150/": 100} {
		docs, looks, err := s.MatchingPaths(context.Background(), prepare(t, parse(t, text)), math.MaxUint64)
		if err != nil || len(docs) != want || looks > 2000 {
			t.Errorf("%s: %d documents by %d looks at paths and error %v, want %d by few", text, len(docs), looks, err, want)
		}
	}
}

// TestBestBesideFilters: where paths and columns let documents through and the others are only
// counted, the best files and the counts are those of a search that shows everything.
func TestBestBesideFilters(t *testing.T) {
	words := []string{"foo", "bar", "c:foo", "foo bar", "(?-i)Foo", "foo or bar", "test", "foo test"}
	for seed := range testrun.Rounds[uint64](1, 2) {
		c := folders(seed, 600)
		s := openShard(t, buildShard(t, c))
		for i, filter := range append(slices.Clone(filters), "lang:Go", "r:repo1", "f:test -f:src", "f:test lang:Rust", "(f:src or f:jdk)") {
			for _, sign := range []string{"", "-"} {
				if sign == "-" && strings.ContainsAny(filter, " ") {
					continue
				}
				text := sign + filter + " " + words[(i+int(seed))%len(words)]
				if i%2 == 1 {
					text = sign + filter + " (" + words[(i+int(seed))%len(words)] + ")"
				}
				if diff := indextest.Compare(c, text, engine(s)); diff != "" {
					t.Fatalf("corpus %d, %s: %s", seed, text, diff)
				}
				sameBest(t, s, parse(t, text), text)
			}
		}
	}
}

// sameBest compares searches for few files with a search for all.
func sameBest(t *testing.T, s *search.Shard, q query.Q, text string) {
	t.Helper()
	all := mustSearch(t, s, q, search.Options{MaxFiles: 1 << 20})
	for _, limit := range []int{0, 1, 3, 20} {
		for _, opts := range []search.Options{{MaxFiles: limit}, {MaxFiles: limit, Mode: search.TopK}, search.WithHelpers(search.Options{MaxFiles: limit}, 2)} {
			got := mustSearch(t, s, q, opts)
			if !sameFiles(got.Files, all.Files[:min(limit, len(all.Files))]) {
				t.Fatalf("%s, the best %d of mode %d: %v, want %v", text, limit, opts.Mode, got.Files, all.Files[:min(limit, len(all.Files))])
			}
			if opts.Mode == search.Exhaustive && (got.Stats.FilesMatched != all.Stats.FilesMatched || got.Stats.Matches != all.Stats.Matches) {
				t.Fatalf("%s, the best %d: counted %+v, want %+v", text, limit, got.Stats, all.Stats)
			}
		}
	}
}

// TestRuns compares sets of numbers with sets of bits.
func TestRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const n = 40
		draw := func(name string) (numbers []uint32, bits uint64) {
			bits = rapid.Uint64Range(0, 1<<n-1).Draw(t, name)
			return bitsOf(bits), bits
		}
		a, as := draw("a")
		b, bs := draw("b")
		for name, c := range map[string]struct {
			got  []uint32
			want uint64
		}{
			"not": {search.NotRuns(slices.Clone(a), n), ^as & (1<<n - 1)},
			"and": {search.AndRuns(slices.Clone(a), slices.Clone(b)), as & bs},
			"or":  {search.OrRuns(slices.Clone(a), slices.Clone(b)), as | bs},
		} {
			if !slices.Equal(c.got, bitsOf(c.want)) {
				t.Fatalf("%s of %v and %v is %v", name, a, b, c.got)
			}
		}
	})
}

func bitsOf(bits uint64) (numbers []uint32) {
	for i := range uint32(64) {
		if bits>>i&1 == 1 {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

// TestNoPathNoWords: if a few paths decide that no document is left, no word is looked up.
func TestNoPathNoWords(t *testing.T) {
	s := openShard(t, buildShard(t, folders(1, 400)))
	for text, none := range map[string]bool{`foo f:\.nothing$`: true, `c:foobar bar f:nothing lang:go`: true, `foo f:\.rs$`: false} {
		res, err := s.Search(context.Background(), prepare(t, parse(t, text)), search.Options{MaxFiles: 10})
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Stats.ListsRead == 0; got != none || none != (len(res.Files) == 0) {
			t.Errorf("%s: %d files, %d lists read", text, len(res.Files), res.Stats.ListsRead)
		}
	}
}
