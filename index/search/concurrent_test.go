package search_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/index/search"
)

// The race detector runs these tests. Together they use everything that goroutines share.

// answered is a query with its whole answer.
type answered struct {
	text  string
	query *search.Query
	files []search.FileMatch
}

var concurrentOptions = search.Options{MaxFiles: 5, MaxMatchesPerFile: 3}

// answeredQueries prepares queries of each kind, which share the memory of their expressions.
func answeredQueries(t *testing.T, c *indextest.Corpus, data []byte) (all []answered) {
	t.Helper()
	alone, process := openShard(t, data), regex.NewProcessMemory()
	for version, queries := range map[int][]indextest.Query{
		1: indextest.Queries(c, 1, indextest.Kinds()), 2: indextest.OwnQueries(c, 1, 20),
	} {
		for _, q := range queries {
			tree, err := query.Parse(q.Text, query.ParseOptions{SyntaxVersion: version})
			if err != nil {
				t.Fatal(err)
			}
			ready, err := search.PrepareIn(process, tree)
			if err != nil {
				continue // type:repo is the caller's
			}
			all = append(all, answered{q.Text, ready, run(t, alone, ready, concurrentOptions).Files})
		}
	}
	return all
}

// openLazily opens a shard whose blocks are loaded when they are first read.
func openLazily(t *testing.T, whole []byte) *search.Shard {
	t.Helper()
	var mu sync.Mutex
	data, loaded := make([]byte, len(whole)), map[int64]bool{}
	load := func(off, n int64) {
		mu.Lock()
		defer mu.Unlock()
		for at := off / format.ChecksumBlock; at*format.ChecksumBlock < off+n; at++ {
			if from := at * format.ChecksumBlock; !loaded[at] {
				loaded[at] = true
				copy(data[from:min(from+format.ChecksumBlock, int64(len(data)))], whole[from:])
			}
		}
	}
	f, err := format.NewSparse("sparse", data, func(off, n int64) error { load(off, n); return nil }, load)
	if err != nil {
		t.Fatal(err)
	}
	s, err := search.OpenFile(f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestConcurrentSearches: many searches with helpers use a shard for the first time at once: its checksums, its tables, buffers, the
// automata of a query, what a search knows of repos, its floor and the files that it shows.
func TestConcurrentSearches(t *testing.T) {
	c := someTests(indextest.Random(5))
	data := buildShard(t, c)
	queries := answeredQueries(t, c, data)
	if len(queries) < indextest.Kinds() {
		t.Fatalf("only %d queries", len(queries))
	}
	path := filepath.Join(t.TempDir(), "mapped.trawl")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	mapped, err := search.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer mapped.Close()
	hidden := formOf(t, "hidden", c, rand.New(rand.NewPCG(1, 1))).parts[0]
	for name, p := range map[string]part{"mapped": {shard: mapped}, "sparse": {shard: openLazily(t, data)}, "hidden": hidden} {
		var all sync.WaitGroup
		for worker := range 4 {
			all.Go(func() {
				opts := search.WithHelpers(concurrentOptions, 2)
				opts.Overlays, opts.Mode = p.overlays, search.Mode(worker%2)
				for i := range queries {
					q := queries[(i+worker/2*len(queries)/2)%len(queries)]
					opts.Repos = func(int) bool { return true }
					got, err := p.shard.Search(context.Background(), q.query, opts)
					if err != nil || got.Incomplete != nil || !sameFiles(got.Files, q.files) {
						t.Errorf("%s, %s, mode %d: %v, %+v\nwant %v", name, q.text, opts.Mode, err, got, q.files)
					}
				}
			})
		}
		all.Wait()
	}
}

// TestConcurrentHelpers: searches that take long share the processors of the process.
func TestConcurrentHelpers(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	s := openShard(t, buildShard(t, manyFiles(1000)))
	var all sync.WaitGroup
	for _, text := range []string{`c:w\w+d`, "c:a", "common word", `c:(common|rare)`} {
		q := prepare(t, parse(t, text))
		all.Go(func() {
			got, err := s.Search(context.Background(), q, search.Options{MaxFiles: 20, MaxMatchesPerFile: 2})
			if err != nil || got.Stats.FilesMatched != 1000 || len(got.Files) != 20 || string(got.Files[19].Path) != "000019.go" {
				t.Errorf("%s: %v, %+v", text, err, got)
			}
		})
	}
	all.Wait()
}

// TestConcurrentFloors searches shards at once, each with the floor that the others raise.
func TestConcurrentFloors(t *testing.T) {
	parts := eighths(t, 400)
	for _, text := range []string{"common", `c:w\w+d`, "common word"} {
		q := prepare(t, parse(t, text))
		for _, mode := range []search.Mode{search.Exhaustive, search.TopK} {
			opts := search.Options{MaxFiles: 5, MaxMatchesPerFile: 1, Mode: mode}
			want, err := searchParts(parts, q, opts)
			if err != nil {
				t.Fatal(err)
			}
			opts = search.WithHelpers(opts, 2)
			ranking := search.NewRanking(opts.MaxFiles, 0)
			var mu sync.Mutex // of ranking
			var floor atomic.Pointer[search.Key]
			opts.FloorNow = floor.Load
			var all sync.WaitGroup
			for _, p := range parts {
				all.Go(func() {
					found, err := p.shard.Find(context.Background(), q, opts)
					if err != nil || found.Incomplete != nil {
						t.Errorf("%s: %v, %+v", text, err, found)
						return
					}
					mu.Lock()
					defer mu.Unlock()
					ranking.Add(found)
					floor.Store(ranking.Floor())
				})
			}
			all.Wait()
			shown := 0
			for i := range parts {
				shown += ranking.Count(i)
			}
			if last := ranking.Floor(); shown != len(want.Files) || last == nil || string(last.Path) != string(want.Files[shown-1].Path) {
				t.Errorf("%s, mode %d: the last of %d files is %v, want %s", text, mode, shown, last, want.Files[len(want.Files)-1].Path)
			}
		}
	}
}
