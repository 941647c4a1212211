package search_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
)

// manyRepos returns a corpus of n small repos. Every tenth contains "tenth", and
// one contains "needle".
func manyRepos(n int) *indextest.Corpus {
	c := &indextest.Corpus{}
	for i := range n {
		content := fmt.Sprintf("common in repo %d\n", i)
		if i%10 == 0 {
			content += "tenth\n"
		}
		if i == n/2 {
			content += "needle\n"
		}
		c.Repos = append(c.Repos, indextest.Repo{
			Name: fmt.Sprintf("host/org/repo%06d", i), Branches: []string{"main"}, Public: i%2 == 0,
			Documents: []indextest.Document{{Path: "file.txt", Content: []byte(content), Branches: []string{"main"}}},
		})
	}
	return c
}

// TestReposAreAskedOnce counts how often a search asks whether it may read a repo:
// for documents that it looks at, or, with a condition on repos, for those that
// show whether the result is the same for all.
func TestReposAreAskedOnce(t *testing.T) {
	const n = 500
	s := openShard(t, buildShard(t, manyRepos(n)))
	for _, c := range []struct {
		query       string
		most, found int
	}{
		{"c:needle", 1, 1},
		{"c:tenth", n / 10, n / 10},
		{"c:common", n, n},
		{"c:nothing", 0, 0},
		{"c:needle r:repo0002", 10, 1},
		{"c:needle r:nothing", 0, 0},
		{"c:common r:repo00010", 20, 10},
		{"c:tenth public:yes", n/10 + 2, n / 10},
		{"c:tenth public:no", n/10 + 2, 0},
	} {
		for _, helpers := range []int{0, 3} {
			var mu sync.Mutex
			asked := map[int]bool{}
			opts := search.Options{MaxFiles: 1000, Repos: func(repo int) bool {
				mu.Lock()
				defer mu.Unlock()
				asked[repo] = true
				return true
			}}
			got := run(t, s, prepare(t, parse(t, c.query)), search.WithHelpers(opts, helpers))
			if len(got.Files) != c.found || len(asked) > c.most {
				t.Errorf("%s: %d files, want %d; %d repos asked, at most %d", c.query, len(got.Files), c.found, len(asked), c.most)
			}
		}
	}
}

// TestOneRepoOfMany searches one repo by its name, without looking at the others.
func TestOneRepoOfMany(t *testing.T) {
	many := openShard(t, buildShard(t, manyRepos(3000)))
	opts := search.Options{MaxFiles: 10}
	for _, text := range []string{"c:common r:repo000042", "c:co r:repo000042", "r:repo000042", "c:needle"} {
		q := prepare(t, parse(t, text))
		got := run(t, many, q, opts)
		if len(got.Files) != 1 || got.Stats.FilesConsidered != 1 {
			t.Errorf("%s: %d files, %d looked at, want 1 and 1", text, len(got.Files), got.Stats.FilesConsidered)
		}
	}
}

func BenchmarkManyRepos(b *testing.B) {
	s := openShard(b, buildShard(b, manyRepos(10_000)))
	for _, text := range []string{"c:needle", "c:needle r:repo0050", "c:tenth r:repo000", "c:common", "public:no"} {
		q := prepare(b, parse(b, text))
		b.Run(text, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Search(context.Background(), q, search.Options{Mode: search.TopK, MaxFiles: 50}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestListLooksAtTheClock: a list counts what it decodes, and describes no further documents of a large repo once its time is over.
func TestListLooksAtTheClock(t *testing.T) {
	repo := indextest.Repo{Name: "host/large", Branches: []string{"main"}}
	for i := range 3000 {
		repo.Documents = append(repo.Documents, indextest.Document{Path: fmt.Sprintf("file%06d", i), Content: fmt.Appendf(nil, "some words %d", i), Branches: repo.Branches})
	}
	s := openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{repo}}))
	q := prepare(t, parse(t, `c:"w.r.s"`))
	all := &looks{Context: context.Background(), end: 1 << 30}
	listed, err := s.List(all, q, search.ListOptions{})
	if err != nil || listed.Incomplete != nil || len(listed.Repos) != 1 || listed.BytesDecoded == 0 {
		t.Fatalf("%+v, %v", listed, err)
	}
	some := &looks{Context: context.Background(), end: all.n - 50} // while the repo is described
	listed, err = s.List(some, q, search.ListOptions{})
	if err != nil || !errors.Is(listed.Incomplete, context.Canceled) || len(listed.Repos) > 0 || some.n > some.end {
		t.Errorf("%+v, %v after %d looks of %d, want %d", listed, err, some.n, all.n, some.end)
	}
}

// TestListWithinBounds: a list within bounds has what a list of all repos has there, also if only some of them may be read.
func TestListWithinBounds(t *testing.T) {
	s := openShard(t, buildShard(t, manyRepos(100)))
	q := prepare(t, parse(t, "c:tenth"))
	names := func(t fataler, opts search.ListOptions) (names []string) {
		listed, err := s.List(context.Background(), q, opts)
		if err != nil || listed.Incomplete != nil {
			t.Fatalf("%v", err)
		}
		for _, r := range listed.Repos {
			names = append(names, r.Repo.Name)
		}
		return names
	}
	rapid.Check(t, func(t *rapid.T) {
		bound := rapid.OneOf(rapid.Just(""), rapid.Just("z"), rapid.StringMatching(`host/org/repo0000[0-9]{2}[0-9]?`))
		opts := search.ListOptions{After: bound.Draw(t, "after"), Last: bound.Draw(t, "last")}
		if step := rapid.IntRange(0, 3).Draw(t, "step"); step > 0 {
			opts.Repos = func(repo int) bool { return repo%step == 0 }
		}
		want := slices.DeleteFunc(names(t, search.ListOptions{Repos: opts.Repos}), func(name string) bool {
			return name <= opts.After || opts.Last != "" && name > opts.Last
		})
		if got := names(t, opts); !slices.Equal(got, want) {
			t.Fatalf("after %q up to %q: %q, want %q", opts.After, opts.Last, got, want)
		}
	})
}
