package job

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/gitsource"
	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/indexer/internal/compact"
	"github.com/trawl-search/trawl/services/indexer/internal/shardio"
)

// TestHistories pushes random histories. After each push, in deltas or in full, and after
// compactions in between, it compares what is published with a fresh build of the same commits.
func TestHistories(t *testing.T) {
	seeds := testrun.Rounds(3, 8)
	deltas, compactions := 0, 0
	for i := range uint64(seeds) {
		seed := i + 4 // an early history in which a branch goes
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			d, c := runHistory(t, seed)
			deltas, compactions = deltas+d, compactions+c
		})
	}
	if deltas < seeds*2 || compactions < seeds {
		t.Errorf("only %d deltas and %d compactions in %d histories", deltas, compactions, seeds)
	}
}

// history is a repository that is pushed to.
type history struct {
	repo     *gitsourcetest.Repo
	rnd      *rand.Rand
	branches []string
	trees    map[string]map[string][3]string // by branch and path: mode, object, path
}

func runHistory(t *testing.T, seed uint64) (deltas, compactions int) {
	r := gitsourcetest.New(t)
	if seed%4 == 2 {
		r = gitsourcetest.NewSHA256(t)
	}
	e := newEnv(t, filepath.Dir(r.Dir), nil)
	e.Build.MaxSourceBytes = 3000
	e.Limits.MaxDepth = 6
	h := &history{repo: r, rnd: rand.New(rand.NewPCG(seed, 9)), branches: []string{"main", "dev", "old"}[:1+seed%3], trees: map[string]map[string][3]string{}}
	h.begin()
	for step := range 8 {
		if step > 0 {
			h.push()
			h.rearrange()
		}
		if h.rnd.IntN(5) == 0 { // another indexer has the job
			e.dropMirror(r.Dir)
		}
		root := e.done(e.want(r.Dir, h.branches...))
		if strings.HasPrefix(root.GetBuilt(), "delta") {
			deltas++
		}
		src, err := gitsource.OpenRepository(t.Context(), r.Dir, h.branches, e.Limits)
		if err != nil {
			t.Fatal(err)
		}
		c := corpusOf(t, src)
		fresh := shardio.Builder{Bucket: e.bucket, Fence: 1, TempDir: t.TempDir(), Options: build.Options{}}
		built, err := fresh.Build(t.Context(), docstore.Repo{Name: repoName, URL: r.Dir, Branches: src.Branches()}, src)
		if err != nil {
			t.Fatal(err)
		}
		what := fmt.Sprintf("seed %d, step %d (%s)", seed, step, root.GetBuilt())
		want := e.serve(&catalogv1.Root{Repo: repoName, Shards: built.Shards})
		compareServed(t, what, e.serve(root), want, c, seed*100+uint64(step))
		if h.rnd.IntN(2) == 0 && e.compact() {
			compactions++
			compareServed(t, what+", compacted", e.serve(e.root()), want, c, seed*100+uint64(step)+50)
		}
	}
	return deltas, compactions
}

// compact merges shards of the repo as soon as there are two to merge, and reports whether it did.
func (e *env) compact() (did bool) {
	e.t.Helper()
	before := e.root()
	var cfg compact.Config
	cfg.SetDefaults()
	cfg.Deltas, cfg.Settle = 1, 0
	metrics := compact.NewMetrics(prometheus.NewRegistry())
	s := compact.Scheduler{Config: cfg, Store: e.Store, Metrics: metrics, Log: e.Log}
	w := compact.Worker{
		Config: cfg, Store: e.Store, Bucket: e.bucket, TempDir: e.t.TempDir(), LeaseTTL: e.LeaseTTL,
		Waiting: func(context.Context) bool { return false }, Jobs: &compact.Jobs{}, Version: "test", Metrics: metrics, Log: e.Log,
	}
	if err := s.Pass(e.t.Context(), time.Now()); err != nil {
		e.t.Fatal(err)
	}
	did, err := w.Next(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	after := e.root()
	if did != (after.GetGeneration() == before.GetGeneration()+1) || did && len(after.GetShards()) > len(before.GetShards()) {
		e.t.Fatalf("compacted: %v; generation %d with %d shards, before %d with %d", did,
			after.GetGeneration(), len(after.GetShards()), before.GetGeneration(), len(before.GetShards()))
	}
	return did
}

// begin commits some folders of files on each branch, most of them the same.
func (h *history) begin() {
	base := map[string][3]string{}
	for i := range 48 {
		path := fmt.Sprintf("%s/f%02d.%s", []string{"src", "src/deep", "doc"}[i%3], i, []string{"go", "md", "h"}[i%3])
		base[path] = [3]string{"100644", h.repo.Blob(h.text(i)), path}
	}
	for _, b := range h.branches {
		h.trees[b] = maps.Clone(base)
		h.edit(h.trees[b], 2)
		h.commit(b)
	}
}

// words make the contents: few, so that queries find several files.
var words = strings.Fields("needle Needle haystack func main return package ſtraße Kelvin 日本語 foo_bar fooBar x1 λ import type")

func (h *history) text(i int) string {
	var s strings.Builder
	for range 3 + h.rnd.IntN(25) {
		s.WriteString(words[h.rnd.IntN(len(words))] + []string{" ", "\n", "\r\n", "("}[h.rnd.IntN(4)])
	}
	return s.String() + strconv.Itoa(i%7)
}

// oddities are contents and paths that are not only text.
var (
	oddContents = []string{"", "\x00binary", "needle", "a", "not \xff utf-8 needle"}
	oddNames    = []string{"README", "readme", "new\nline.go", "bad\xff.h", "src", "x/needle.go", "x", "d/d/d/d/d/d/d/deep.go", "tests/a.go"}
)

// edit changes some paths of a tree.
func (h *history) edit(tree map[string][3]string, n int) {
	for range n {
		paths := []string{}
		for p := range tree {
			paths = append(paths, p)
		}
		slices.Sort(paths)
		path := oddNames[h.rnd.IntN(len(oddNames))]
		if len(paths) > 0 && h.rnd.IntN(3) > 0 {
			path = paths[h.rnd.IntN(len(paths))]
		}
		old, had := tree[path]
		delete(tree, path)
		switch kind := h.rnd.IntN(8); {
		case kind == 0: // gone
		case kind == 1 && had: // renamed, maybe in case only
			to := []string{strings.ToUpper(path), path + ".orig", "moved/" + filepath.Base(path)}[h.rnd.IntN(3)]
			h.put(tree, [3]string{old[0], old[1], to})
		case kind == 2 && had: // another mode
			h.put(tree, [3]string{[]string{"100755", "100644", "120000"}[h.rnd.IntN(3)], old[1], path})
		case kind == 3:
			h.put(tree, [3]string{"100644", h.repo.Blob(oddContents[h.rnd.IntN(len(oddContents))]), path})
		case kind == 4:
			h.put(tree, [3]string{"160000", h.repo.Blob(strconv.Itoa(h.rnd.IntN(9))), path})
		case kind == 5 && len(paths) > 0: // a content that is there already
			h.put(tree, [3]string{"100644", tree[paths[0]][1], path})
		default:
			h.put(tree, [3]string{"100644", h.repo.Blob(h.text(h.rnd.IntN(100))), path})
		}
	}
}

// put adds an entry where no file is a folder of another.
func (h *history) put(tree map[string][3]string, e [3]string) {
	if e[1] == "" {
		return
	}
	for p := range tree {
		if strings.HasPrefix(p, e[2]+"/") || strings.HasPrefix(e[2], p+"/") {
			delete(tree, p)
		}
	}
	tree[e[2]] = e
}

func (h *history) commit(branch string) {
	var entries [][3]string
	for _, e := range h.trees[branch] {
		entries = append(entries, e)
	}
	slices.SortFunc(entries, func(a, b [3]string) int { return strings.Compare(a[2], b[2]) })
	h.repo.Commit(branch, entries...)
}

// push moves some branches: a few edits, a merge, a rewrite, or nothing left. No
// commit has a parent, so that every push rewrites history.
func (h *history) push() {
	for i, b := range h.branches {
		if len(h.trees[b]) < 20 { // it was emptied
			h.edit(h.trees[b], 60)
		}
		switch h.rnd.IntN(10) {
		case 0: // stays
			if i > 0 {
				continue
			}
		case 1: // merged: as another branch
			other := h.branches[h.rnd.IntN(len(h.branches))]
			h.trees[b] = maps.Clone(h.trees[other])
		case 2:
			if h.rnd.IntN(3) == 0 {
				clear(h.trees[b])
			}
		case 3:
			h.edit(h.trees[b], 30)
		}
		h.edit(h.trees[b], h.rnd.IntN(5))
		h.commit(b)
	}
}

// rearrange cuts a branch from another, deletes one, renames one, or puts another one
// first, as a changed default branch is.
func (h *history) rearrange() {
	i := h.rnd.IntN(len(h.branches))
	b := h.branches[i]
	next := fmt.Sprintf("%s-%d", b, h.rnd.IntN(100))
	if slices.Contains(h.branches, next) {
		return
	}
	switch kind := h.rnd.IntN(8); {
	case kind == 0 && len(h.branches) < 5:
		h.trees[next] = maps.Clone(h.trees[b])
		h.edit(h.trees[next], h.rnd.IntN(3))
		h.branches = slices.Insert(h.branches, h.rnd.IntN(len(h.branches)+1), next)
		h.commit(next)
	case kind == 1 && len(h.branches) > 1:
		h.branches = slices.Delete(h.branches, i, i+1)
	case kind == 2:
		h.branches[i], h.trees[next] = next, h.trees[b]
		h.commit(next)
	case kind == 3:
		h.branches[0], h.branches[i] = h.branches[i], h.branches[0]
	}
}

// corpusOf reads what queries are made from.
func corpusOf(t *testing.T, src gitsource.Source) *indextest.Corpus {
	t.Helper()
	repo := indextest.Repo{Name: repoName}
	for _, b := range src.Branches() {
		repo.Branches = append(repo.Branches, b.Name)
	}
	for doc, err := range src.Documents(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		d := indextest.Document{Path: string(doc.Path), Content: slices.Clone(doc.Content), Language: doc.Language, Skipped: doc.Skip != docstore.NotSkipped}
		for _, b := range doc.Branches {
			d.Branches = append(d.Branches, repo.Branches[b])
		}
		repo.Documents = append(repo.Documents, d)
	}
	return &indextest.Corpus{Name: "history", Repos: []indextest.Repo{repo}}
}

// compareServed compares the answers of both to every kind of request.
func compareServed(t *testing.T, what string, got, want served, c *indextest.Corpus, seed uint64) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 2))
	compareList(t, what, got, want)
	compareContents(t, what, got, c)
	if len(c.Repos[0].Documents) == 0 {
		return
	}
	for _, q := range indextest.Queries(c, seed, 24) {
		tree, err := query.Parse(q.Text, query.ParseOptions{SyntaxVersion: query.MaxSyntaxVersion})
		if err == nil {
			tree, err = indextest.Resolve(c, tree)
		}
		if err != nil {
			t.Fatal(err)
		}
		ready, err := search.Prepare(tree)
		if err != nil {
			continue // symbols
		}
		opts := search.Options{MaxFiles: 1 + rnd.IntN(40), MaxMatchesPerFile: 4, ContextLines: 1}
		gotFiles, gotStats := got.search(ready, opts)
		wantFiles, wantStats := want.search(ready, opts)
		if !sameFiles(gotFiles, wantFiles) || gotStats.FilesMatched != wantStats.FilesMatched || gotStats.Matches != wantStats.Matches {
			t.Fatalf("%s: %s finds %d files, %d ranges\n%+v\nwant %d, %d\n%+v", what, q.Text, gotStats.FilesMatched, gotStats.Matches, gotFiles,
				wantStats.FilesMatched, wantStats.Matches, wantFiles)
		}
		opts.Mode = search.TopK
		if best, _ := got.search(ready, opts); !sameFiles(best, wantFiles) {
			t.Fatalf("%s: the best %d of %s\n%+v\nwant\n%+v", what, opts.MaxFiles, q.Text, best, wantFiles)
		}
	}
}
