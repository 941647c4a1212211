package search_test

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

// manyRoots are roots as indexers publish them: one branch, and one shard for a
// thousand repos.
func manyRoots(n int) []*catalogv1.Root {
	roots := make([]*catalogv1.Root, n)
	for i := range roots {
		shard, manifest := sha256.Sum256(fmt.Append(nil, i/1000)), sha256.Sum256(fmt.Append(nil, i))
		name := fmt.Sprintf("github.com/organisation%04d/repository%04d", i/10_000, i%10_000)
		root := &catalogv1.Root{
			Repo: name, Generation: 17, Epoch: 17, Fence: int64(1e9 + i), Url: "https://" + name, Inputs: manifest[:],
			Branches:    []*catalogv1.Branch{{Name: "main", Commit: fmt.Sprintf("%040x", i)}},
			ManifestKey: catalog.ManifestKey(int64(1e9+i), name, 17, manifest), ManifestDigest: manifest[:],
			PublishedAt: timestamppb.Now(),
		}
		root.Shards = []*catalogv1.ShardRef{{
			Digest: shard[:], Key: catalog.ShardKey(int64(1e9+i), shard), SizeBytes: 50 << 20, FormatVersion: 1,
			Documents: 100, ContentBytes: 700 << 10, Languages: []string{"Go", "Markdown", "YAML"}, Repos: 1000, RepoNumber: uint32(i % 1000),
		}}
		roots[i] = root
	}
	return roots
}

// BenchmarkLayout measures what a router needs for very many repos (docs/scale.md).
func BenchmarkLayout(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			before := testrun.LiveHeap()
			roots := manyRoots(n)
			stored := 0
			for _, root := range roots {
				stored += proto.Size(root)
			}
			decoded := testrun.LiveHeap() - before
			var layout *search.Layout
			for b.Loop() {
				var err error
				if layout, err = search.NewLayout(1, roots); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(stored)/float64(n), "stored-B/repo")
			b.ReportMetric(float64(decoded)/float64(n), "roots-heap-B/repo")
			b.ReportMetric(float64(testrun.LiveHeap()-before-decoded)/float64(n), "layout-heap-B/repo")
			runtime.KeepAlive(layout)
		})
	}
}

// BenchmarkNext measures what one change of a root costs a router (docs/scale.md).
func BenchmarkNext(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var roots []catalog.Root
			for _, root := range manyRoots(n) {
				roots = append(roots, catalog.Root{Record: root})
			}
			var chunks []*catalog.Chunk
			for part := range slices.Chunk(roots, 128) {
				chunks = append(chunks, &catalog.Chunk{Roots: part})
			}
			layout, err := search.NewLayout(1, nil)
			if err == nil {
				layout, err = layout.Next(1, chunks)
			}
			if err != nil {
				b.Fatal(err)
			}
			for i := 0; b.Loop(); i++ {
				at := i * 7919 % len(chunks)
				changed := &catalog.Chunk{Roots: slices.Clone(chunks[at].Roots)}
				changed.Roots[i%len(changed.Roots)].Record = proto.CloneOf(changed.Roots[i%len(changed.Roots)].Record)
				chunks = slices.Clone(chunks)
				chunks[at] = changed
				if layout, err = layout.Next(int64(i), chunks); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkSelect measures what one query costs a router before it asks a searcher. A filter that is new is in a
// query for the first time.
func BenchmarkSelect(b *testing.B) {
	layout, err := search.NewLayout(1, manyRoots(1_000_000))
	if err != nil {
		b.Fatal(err)
	}
	all := func(string) bool { return true }
	for _, m := range []struct {
		name, text string
		layout     *search.Layout
	}{
		{"all", "needle", layout},
		{"repo", "needle repo:organisation0042/", layout},
		{"new repo", "needle repo:organisation00%d/", layout},
		{"new expression", "needle repo:^github.*0042/.*%d", layout},
		{"language", "needle lang:rust", layout},
		{"all but one", "needle", layout.Only(func(repo string) bool { return repo != "github.com/organisation0042/repository0042" })},
		{"every other", "needle", layout.Only(func(repo string) bool { return repo[len(repo)-1]%2 == 0 })},
		{"one", "needle", layout.Only(func(repo string) bool { return repo == "github.com/organisation0042/repository0042" })},
		{"may see all", "needle repo:organisation0042/", layout.Only(all)},
	} {
		b.Run(m.name, func(b *testing.B) {
			size := 0
			for i := 0; b.Loop(); i++ {
				text := m.text
				if strings.Contains(text, "%d") {
					text = fmt.Sprintf(text, i)
				}
				tree, err := query.Parse(text, query.ParseOptions{})
				if err != nil {
					b.Fatal(err)
				}
				wanted, err := m.layout.Select(b.Context(), tree)
				if err != nil {
					b.Fatal(err)
				}
				if size == 0 {
					plan := &searchv1.Plan{}
					for j := range wanted {
						plan.Shards = append(plan.Shards, wanted[j].Planned())
					}
					size = proto.Size(plan)
				}
			}
			b.ReportMetric(float64(size), "plan-B")
		})
	}
}
