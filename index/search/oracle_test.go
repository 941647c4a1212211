package search_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/testrun"
)

// fataler has the methods common to testing.TB and rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// buildShard builds a shard of a whole corpus in memory.
func buildShard(t fataler, c *indextest.Corpus) []byte {
	t.Helper()
	return buildShardWith(t, c, build.Options{})
}

// buildShardWith is buildShard with other options.
func buildShardWith(t fataler, c *indextest.Corpus, opts build.Options) []byte {
	t.Helper()
	var buf bytes.Buffer
	b, err := build.NewBuilder(&buf, opts)
	if err != nil {
		t.Fatalf("new builder: %v", err)
	}
	for _, r := range c.Repos {
		addRepo(t, b, r)
	}
	res, err := b.Close()
	if err != nil {
		t.Fatalf("close builder: %v", err)
	}
	if res.Size != int64(buf.Len()) {
		t.Fatalf("builder says %d bytes, wrote %d", res.Size, buf.Len())
	}
	return buf.Bytes()
}

func addRepo(t fataler, b *build.Builder, r indextest.Repo) {
	t.Helper()
	if err := b.AddRepo(repoRecord(r)); err != nil {
		t.Fatalf("%v", err)
	}
	var docs []build.Document
	for _, d := range r.Documents {
		doc := build.Document{Path: []byte(d.Path), Content: d.Content, Language: d.Language, OID: d.Object()}
		for _, name := range d.Branches {
			doc.Branches = append(doc.Branches, uint32(slices.Index(r.Branches, name)))
		}
		slices.Sort(doc.Branches)
		if d.Skipped {
			doc.Skip, doc.Size = docstore.Binary, 1
		}
		docs = append(docs, doc)
	}
	slices.SortFunc(docs, func(a, b build.Document) int {
		return cmp.Or(bytes.Compare(a.Path, b.Path), bytes.Compare(a.OID, b.OID))
	})
	for _, doc := range docs {
		if err := b.Add(doc); err != nil {
			t.Fatalf("%v", err)
		}
	}
}

// repoRecord returns the shard's record of the repo.
func repoRecord(r indextest.Repo) docstore.Repo {
	repo := docstore.Repo{Name: r.Name, Archived: r.Archived, Fork: r.Fork, Public: r.Public, Meta: r.Meta, Rank: r.Rank}
	for _, name := range r.Branches {
		repo.Branches = append(repo.Branches, docstore.Branch{Name: name, Commit: "c0ffee"})
	}
	return repo
}

func gitID(content []byte) []byte {
	id := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content))
	return id[:]
}

func openShard(t fataler, data []byte) *search.Shard {
	t.Helper()
	f, err := format.NewFile("test.trawl", data)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	s, err := search.OpenFile(f)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return s
}

// engine answers as the oracle does, by searching the shard. It also checks that the counts of a
// search that shows everything agree with what it shows.
func engine(s *search.Shard) func(query.Q) ([]indextest.Result, error) {
	return func(q query.Q) ([]indextest.Result, error) {
		res, err := searchTree(s, q, search.Options{MaxFiles: 1 << 20, MaxMatchesPerFile: 1 << 30, ContextLines: 1})
		if err != nil {
			return nil, err
		}
		files, results := uint64(len(res.Files)), toResults(res)
		if res.Stats.FilesMatched != files || res.Stats.CountsInexact {
			return nil, fmt.Errorf("%d files were counted as %+v", files, res.Stats)
		}
		return results, res.Incomplete
	}
}

func toResults(res *search.Result) []indextest.Result {
	var out []indextest.Result
	for _, f := range res.Files {
		out = append(out, toResult(f))
	}
	slices.SortFunc(out, func(a, b indextest.Result) int {
		return cmp.Or(cmp.Compare(a.Repo, b.Repo), cmp.Compare(a.Path, b.Path), slices.Compare(a.Branches, b.Branches))
	})
	return out
}

func toResult(f search.FileMatch) indextest.Result {
	r := indextest.Result{Repo: f.Repo, Path: string(f.Path), Branches: f.Branches, Object: f.Blob, Score: f.Score, Matches: f.MatchCount}
	for _, c := range f.Chunks {
		for _, m := range c.Ranges {
			span := indextest.Range{Start: int(m.Start.Offset), End: int(m.End.Offset)}
			if c.FileName {
				r.Name = append(r.Name, span)
			} else {
				r.Content = append(r.Content, span)
			}
		}
	}
	return r
}

// TestRandomCorpora compares the engine with brute force on corpora that are hard for an index,
// with queries of every kind.
func TestRandomCorpora(t *testing.T) {
	for seed := range testrun.Rounds[uint64](12, 40) {
		c := indextest.Random(seed)
		s := openShard(t, buildShard(t, c))
		if err := s.Verify(context.Background()); err != nil {
			t.Fatalf("corpus %s: %v", c.Name, err)
		}
		indextest.Check(t, c, indextest.Queries(c, seed, 120), engine(s))
	}
}

// TestDrawnCorpora lets rapid look for a corpus and a query whose answers differ.
func TestDrawnCorpora(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := indextest.Random(rapid.Uint64().Draw(t, "corpus"))
		s := openShard(t, buildShard(t, c))
		for _, q := range indextest.Queries(c, rapid.Uint64().Draw(t, "queries"), 8) {
			if diff := indextest.Compare(c, q.Text, engine(s)); diff != "" {
				t.Fatalf("corpus %s, query %s: %s\n%s", c.Name, q.Kind, q.Text, diff)
			}
		}
	})
}

// TestRealTree compares the engine with brute force on a large part of real code: the Go standard
// library. TestRealTreeParts runs many more queries over small parts.
func TestRealTree(t *testing.T) {
	tree, err := indextest.OpenTree(goSource(t))
	if err != nil {
		t.Fatal(err)
	}
	const seed = 1
	c, err := tree.Part(seed, int64(testrun.Rounds(1<<20, 4<<20))) // large enough that some posting lists have several blocks
	if err != nil {
		t.Fatal(err)
	}
	s := openShard(t, buildShard(t, c))
	// Answers with millions of ranges become garbage immediately.
	defer debug.SetGCPercent(debug.SetGCPercent(25))
	queries := indextest.Queries(c, seed, testrun.Rounds(1, 2)*indextest.Kinds())
	t.Logf("%d queries with seed %d over %d documents, %d bytes", len(queries), seed, s.Documents(), s.ContentBytes())
	indextest.Check(t, c, queries, engine(s))
}

// goSource returns the source folder of the Go toolchain.
func goSource(t *testing.T) string {
	t.Helper()
	goroot, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatalf("the source of the Go toolchain is the corpus of this test: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(goroot)), "src")
}
