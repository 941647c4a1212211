package search_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/index/shard"
	"github.com/trawl-search/trawl/internal/testrun"
)

func parse(t fataler, text string) query.Q {
	t.Helper()
	q, err := query.Parse(text, query.ParseOptions{})
	if err != nil {
		t.Fatalf("parse %s: %v", text, err)
	}
	return q
}

func prepare(t fataler, q query.Q) *search.Query {
	t.Helper()
	ready, err := search.Prepare(q)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return ready
}

// preparable prepares a query, unless it is one of those that shards refuse, as the oracle's tests know.
func preparable(t testing.TB, q indextest.Query) (*search.Query, bool) {
	t.Helper()
	tree, err := query.Parse(q.Text, query.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ready, err := search.Prepare(tree)
	return ready, err == nil
}

// searchTree prepares a query and searches one shard.
func searchTree(s *search.Shard, q query.Q, opts search.Options) (*search.Result, error) {
	ready, err := search.Prepare(q)
	if err != nil {
		return nil, err
	}
	return s.Search(context.Background(), ready, opts)
}

func mustSearch(t fataler, s *search.Shard, q query.Q, opts search.Options) *search.Result {
	t.Helper()
	res, err := searchTree(s, q, opts)
	if err != nil {
		t.Fatalf("search %s: %v", q, err)
	}
	return res
}

// TestPagesMakeTheWhole reads an answer in pages of random sizes and compares them with the whole.
func TestPagesMakeTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := openShard(t, buildShard(t, indextest.Random(rapid.Uint64Range(0, 50).Draw(t, "corpus"))))
		q := parse(t, rapid.SampledFrom([]string{"", "a", "e or f:c", "lo"}).Draw(t, "query"))
		all := search.Options{MaxFiles: 1 << 20, MaxMatchesPerFile: 1 << 20}
		whole := mustSearch(t, s, q, all)
		var paged []search.FileMatch
		opts := all
		for {
			opts.MaxFiles = rapid.IntRange(1, 5).Draw(t, "page")
			page := mustSearch(t, s, q, opts)
			if page.Stats.FilesMatched != whole.Stats.FilesMatched || page.Stats.Matches != whole.Stats.Matches {
				t.Fatalf("a page counts %+v, the whole answer %+v", page.Stats, whole.Stats)
			}
			if len(page.Files) == 0 {
				break
			}
			paged = append(paged, page.Files...)
			key := page.Files[len(page.Files)-1].Key()
			opts.After = &key
		}
		if !sameFiles(paged, whole.Files) {
			t.Fatalf("pages hold\n%v\nwant\n%v", paged, whole.Files)
		}
		for i := 1; i < len(paged); i++ {
			if search.Compare(paged[i-1].Key(), paged[i].Key()) >= 0 {
				t.Fatalf("files %d and %d are not in the total order", i-1, i)
			}
		}
	})
}

// TestHiddenReposLeaveNoTrace compares a search that may see some repos with a search of a shard
// that holds only those: files and counts must be equal.
func TestHiddenReposLeaveNoTrace(t *testing.T) {
	for seed := range testrun.Rounds[uint64](10, 30) {
		c := indextest.Random(seed)
		if len(c.Repos) < 2 {
			continue
		}
		visible := &indextest.Corpus{Repos: c.Repos[1:]}
		hidden := numberOf(c, c.Repos[0].Name)
		only := func(repo int) bool { return repo != hidden }
		all, some := openShard(t, buildShard(t, c)), openShard(t, buildShard(t, visible))
		for _, d := range c.Repos[0].Documents {
			if f, err := all.File(t.Context(), c.Repos[0].Name, []byte(d.Path), "", search.Options{Repos: only}, search.Part{}); !errors.Is(err, search.ErrNoFile) {
				t.Fatalf("a file of a hidden repo: %v, %v", f, err)
			}
		}
		for _, branch := range c.Repos[0].Branches {
			opts := search.TreeOptions{Branch: branch, Depth: 1, MaxEntries: 9, MaxBytes: 9999}
			if tree, err := all.Tree(t.Context(), c.Repos[0].Name, search.Options{Repos: only}, opts); err != nil || len(tree.Entries) > 0 {
				t.Fatalf("a tree of a hidden repo: %v, %v", tree, err)
			}
		}
		for _, q := range indextest.Queries(c, seed, 60) {
			tree, err := query.Parse(q.Text, query.ParseOptions{})
			if err != nil {
				t.Fatal(err)
			}
			opts := search.Options{MaxFiles: 1 << 20, MaxMatchesPerFile: 1 << 20}
			want, wantErr := searchTree(some, tree, opts)
			opts.Repos = only
			got, gotErr := searchTree(all, tree, opts)
			if wantErr != nil || gotErr != nil {
				if (wantErr == nil) != (gotErr == nil) {
					t.Fatalf("%s: %v, want %v", q.Text, gotErr, wantErr)
				}
				continue
			}
			if !sameFiles(got.Files, want.Files) || got.Stats.Matches != want.Stats.Matches || got.Stats.FilesMatched != want.Stats.FilesMatched {
				t.Fatalf("seed %d, %s: found %v\nwant %v", seed, q.Text, got, want)
			}
		}
	}
}

func TestEndedContextIsIncomplete(t *testing.T) {
	c := &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}}}}
	for i := range 500 {
		c.Repos[0].Documents = append(c.Repos[0].Documents, indextest.Document{
			Path: fmt.Sprintf("%04d", i), Content: fmt.Appendf(nil, "document %d", i), Branches: []string{"main"}})
	}
	s := openShard(t, buildShard(t, c))
	past, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
	defer cancel()
	canceled, cancelNow := context.WithCancel(context.Background())
	cancelNow()
	for want, ctx := range map[error]context.Context{context.DeadlineExceeded: past, context.Canceled: canceled} {
		for _, text := range []string{"", "document", "o", "f:0"} {
			res, err := s.Search(ctx, prepare(t, parse(t, text)), search.Options{MaxFiles: 10})
			if err != nil || !errors.Is(res.Incomplete, want) || len(res.Files) > 10 {
				t.Errorf("search %q with an ended context: %+v, %v, want %v", text, res, err, want)
			}
		}
		list, err := s.List(ctx, prepare(t, parse(t, "nowhere")), search.ListOptions{})
		if err != nil || !errors.Is(list.Incomplete, want) {
			t.Errorf("list with an ended context: %+v, %v, want %v", list, err, want)
		}
	}
}

func TestLimitsOfWhatIsShown(t *testing.T) {
	c := &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}, Documents: []indextest.Document{
		{Path: "a", Content: []byte("x y\nx y\nx y\n"), Branches: []string{"main"}},
		{Path: "b", Content: []byte("x y\nx y\n"), Branches: []string{"main"}},
	}}}}
	s := openShard(t, buildShard(t, c))
	res := mustSearch(t, s, parse(t, "c:x"), search.Options{MaxFiles: 10, MaxMatchesPerFile: 2})
	if res.Stats.Matches != 5 || res.Files[0].MatchCount != 3 || len(res.Files[0].Chunks) != 2 {
		t.Errorf("at most two matches a file: %+v", res)
	}
	res = mustSearch(t, s, parse(t, "c:x"), search.Options{})
	if len(res.Files) != 0 || res.Stats.FilesMatched != 2 {
		t.Errorf("counting only: %+v", res)
	}
	if res = mustSearch(t, s, parse(t, "c:x"), search.Options{MaxFiles: 1, Explain: true}); res.Files[0].Explanation == "" {
		t.Error("no explanation")
	}
}

// TestOverlappedRangesCountForTheScore: a range in the path that overlaps an earlier one and is not
// shown counts for the score as if it were shown.
func TestOverlappedRangesCountForTheScore(t *testing.T) {
	c := &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}, Documents: []indextest.Document{
		{Path: "d/foo", Content: []byte("x"), Branches: []string{"main"}}}}}}
	s := openShard(t, buildShard(t, c))
	scored := rank.Document{Terms: []rank.Term{{Name: rank.Directory}, {Name: rank.Base}, {Name: rank.BasePartial}}, Spelled: true}
	want := scored.Score()
	for _, text := range []string{"f:d/f f:foo f:oo", "f:oo f:foo f:d/f"} {
		files := mustSearch(t, s, parse(t, text), search.Options{MaxFiles: 1, MaxMatchesPerFile: 9}).Files
		if len(files) != 1 || files[0].MatchCount != 2 || files[0].Score != want {
			t.Errorf("%s: %+v, want two matches and the score %g", text, files, want)
		}
	}
}

func TestListDescribesRepos(t *testing.T) {
	c := &indextest.Corpus{Repos: []indextest.Repo{
		{Name: "a", Branches: []string{"main"}, Documents: []indextest.Document{
			{Path: "a.go", Content: []byte("foo"), Branches: []string{"main"}, Language: "Go"},
			{Path: "b.go", Content: []byte("bar!"), Branches: []string{"main"}, Language: "Go"},
			{Path: "c.png", Skipped: true, Branches: []string{"main"}},
		}},
		{Name: "b", Branches: []string{"main"}, Documents: []indextest.Document{
			{Path: "x", Content: []byte("bar"), Branches: []string{"main"}}}},
	}}
	s := openShard(t, buildShard(t, c))
	list, err := s.List(context.Background(), prepare(t, parse(t, "foo")), search.ListOptions{MaxSkippedFiles: 5})
	if err != nil || len(list.Repos) != 1 {
		t.Fatalf("list: %+v, %v", list, err)
	}
	r := list.Repos[0]
	if r.Repo.Name != "a" || r.Documents != 3 || r.Skipped != 1 || r.ContentBytes != 7 {
		t.Errorf("repo a: %+v", r)
	}
	if len(r.Languages) != 1 || r.Languages[0] != (shard.LanguageShare{Language: "Go", Documents: 2, Bytes: 7}) {
		t.Errorf("languages: %+v", r.Languages)
	}
	if f, err := s.File(t.Context(), "a", []byte("c.png"), "", search.Options{}, search.Part{}); err != nil || len(f.Content) > 0 || f.Size != r.SkippedFiles[0].Size || f.Size == 0 {
		t.Errorf("the skipped file: %+v, %v, listed as %+v", f, err, r.SkippedFiles)
	}
	if len(r.SkippedFiles) != 1 || string(r.SkippedFiles[0].Path) != "c.png" || r.SkippedFiles[0].Reason != docstore.Binary {
		t.Errorf("skipped files: %+v", r.SkippedFiles)
	}
}

func TestFileIsWhatWasIndexed(t *testing.T) {
	for seed := range uint64(20) {
		c := indextest.Random(seed)
		s := openShard(t, buildShard(t, c))
		for _, r := range c.Repos {
			for _, d := range r.Documents {
				for _, branch := range d.Branches {
					f, err := s.File(context.Background(), r.Name, []byte(d.Path), branch, search.Options{}, search.Part{})
					if err != nil || string(f.Content) != string(d.Content) || f.Language != d.Language {
						t.Fatalf("seed %d: %s %q on %s = %+v, %v", seed, r.Name, d.Path, branch, f, err)
					}
				}
			}
			for _, path := range []string{"no/such/file", "", "\xff"} {
				if _, err := s.File(context.Background(), r.Name, []byte(path), "", search.Options{}, search.Part{}); !errors.Is(err, search.ErrNoFile) {
					t.Fatalf("file %q: %v, want ErrNoFile", path, err)
				}
			}
		}
		if _, err := s.File(context.Background(), "no/such/repo", []byte("a"), "", search.Options{}, search.Part{}); !errors.Is(err, search.ErrNoFile) {
			t.Fatalf("file of an unknown repo: %v, want ErrNoFile", err)
		}
	}
}
