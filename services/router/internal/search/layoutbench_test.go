package search_test

import (
	"crypto/sha256"
	"fmt"
	"iter"
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
func manyRoots(n int) iter.Seq[*catalogv1.Root] {
	return func(yield func(*catalogv1.Root) bool) {
		for i := 0; i < n && yield(oneOfMany(i)); i++ {
		}
	}
}

func nameOfMany(i int) string {
	return fmt.Sprintf("github.com/organisation%04d/repository%04d", i/10_000, i%10_000)
}

func oneOfMany(i int) *catalogv1.Root {
	shard, manifest := sha256.Sum256(fmt.Append(nil, i/1000)), sha256.Sum256(fmt.Append(nil, i))
	name := nameOfMany(i)
	root := &catalogv1.Root{
		Repo: name, Generation: 17, Epoch: 17, Fence: int64(1e9 + i), Url: "https://" + name, Inputs: manifest[:],
		Branches:    []*catalogv1.Branch{{Name: "main", Commit: fmt.Sprintf("%040x", i)}},
		ManifestKey: catalog.ManifestKey(int64(1e9+i), name, 17, manifest), ManifestDigest: manifest[:],
		PublishedAt: timestamppb.Now(),
	}
	root.Shards = []*catalogv1.ShardRef{{
		Digest: shard[:], Key: catalog.ShardKey(int64(1e9+i/1000), shard), SizeBytes: 50 << 20, FormatVersion: 1,
		Documents: 100, ContentBytes: 700 << 10, Languages: []string{"Go", "Markdown", "YAML"}, Repos: 1000, RepoNumber: uint32(i % 1000),
	}}
	return root
}

// BenchmarkLayout measures what a router needs for very many repos (docs/scale.md).
func BenchmarkLayout(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			stored, names := 0, 0
			for root := range manyRoots(n) {
				stored, names = stored+proto.Size(root), names+len(root.Repo)+1
			}
			before := testrun.LiveHeap()
			chunks := catalog.ChunksOf(manyRoots(n))
			kept := testrun.LiveHeap() - before - int64(names)
			var layout *search.Layout
			for b.Loop() {
				var err error
				if layout, err = search.NewLayout(1, nil); err == nil {
					layout, err = layout.Next(1, chunks)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(stored)/float64(n), "stored-B/repo")
			b.ReportMetric(float64(names)/float64(n), "name-B/repo")
			b.ReportMetric(float64(kept)/float64(n), "chunks-B/repo")
			b.ReportMetric(float64(testrun.LiveHeap()-before-int64(names)-kept)/float64(n), "layout-B/repo")
			runtime.KeepAlive(chunks)
			runtime.KeepAlive(layout)
		})
	}
}

// BenchmarkNext measures what one change of a root costs a router (docs/scale.md).
func BenchmarkNext(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			chunks := catalog.ChunksOf(manyRoots(n))
			at := func(i int) int { return i * 7919 % len(chunks) }
			layout, err := search.NewLayout(1, nil)
			if err == nil {
				layout, err = layout.Next(1, chunks)
			}
			if err != nil {
				b.Fatal(err)
			}
			var versions [64][2]*catalog.Chunk // of some chunks
			for i := range versions {
				var roots []*catalogv1.Root
				for _, r := range chunks[at(i)].All() {
					roots = append(roots, r.Root())
				}
				for j := range versions[i] {
					roots[i].Generation++
					versions[i][j] = catalog.ChunksOf(slices.Values(roots))[0]
				}
			}
			start := processorTime(b)
			for i := 0; b.Loop(); i++ {
				chunks = slices.Clone(chunks)
				chunks[at(i%64)] = versions[i%64][i/64%2]
				if layout, err = layout.Next(int64(i), chunks); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processorTime(b)-start).Nanoseconds())/float64(b.N), "processor-ns/op")
		})
	}
}

// BenchmarkSelect measures what one query costs a router before it asks a searcher. A filter that is new is in a
// query for the first time.
func BenchmarkSelect(b *testing.B) {
	layout, err := search.NewLayout(1, nil)
	if err == nil {
		layout, err = layout.Next(1, catalog.ChunksOf(manyRoots(1_000_000)))
	}
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
		{"language", "needle lang:Go", layout},
		{"no such language", "needle lang:rust", layout},
		{"no such branch", "needle branch:develop", layout},
		{"all but one", "needle", layout.Only(func(repo string) bool { return repo != "github.com/organisation0042/repository0042" })},
		{"every other", "needle", layout.Only(func(repo string) bool { return repo[len(repo)-1]%2 == 0 })},
		{"one", "needle", layout.Only(func(repo string) bool { return repo == "github.com/organisation0042/repository0042" })},
		{"may see all", "needle repo:organisation0042/", layout.Only(all)},
	} {
		b.Run(m.name, func(b *testing.B) {
			size, start := 0, processorTime(b)
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
			b.ReportMetric(float64((processorTime(b)-start).Nanoseconds())/float64(b.N), "processor-ns/op")
			b.ReportMetric(float64(size), "plan-B")
		})
	}
}
