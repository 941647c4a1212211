package search_test

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

// manyRoots are roots as indexers publish them: one branch, and one shard for a
// hundred repos.
func manyRoots(n int) []*catalogv1.Root {
	roots := make([]*catalogv1.Root, n)
	for i := range roots {
		shard, manifest := sha256.Sum256(fmt.Append(nil, i/100)), sha256.Sum256(fmt.Append(nil, i))
		name := fmt.Sprintf("github.com/organisation%04d/repository%04d", i/10_000, i%10_000)
		root := &catalogv1.Root{
			Repo: name, Generation: 17, Epoch: 17, Fence: int64(1e9 + i), Url: "https://" + name, Inputs: manifest[:],
			Branches:    []*catalogv1.Branch{{Name: "main", Commit: fmt.Sprintf("%040x", i)}},
			ManifestKey: catalog.ManifestKey(int64(1e9+i), name, 17, manifest), ManifestDigest: manifest[:],
			PublishedAt: timestamppb.Now(),
		}
		root.Shards = []*catalogv1.ShardRef{{
			Digest: shard[:], Key: catalog.ShardKey(int64(1e9+i), shard), SizeBytes: 50 << 20, FormatVersion: 1,
			Documents: 100, ContentBytes: 700 << 10, Languages: []string{"Go", "Markdown", "YAML"}, Repos: 100, RepoNumber: uint32(i % 100),
		}}
		roots[i] = root
	}
	return roots
}

// BenchmarkLayout measures what a router needs for very many repos (docs/scale.md).
func BenchmarkLayout(b *testing.B) {
	for _, n := range []int{100_000, 1_000_000} {
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

// BenchmarkSelect measures what one query costs a router before it asks a searcher.
func BenchmarkSelect(b *testing.B) {
	layout, err := search.NewLayout(1, manyRoots(1_000_000))
	if err != nil {
		b.Fatal(err)
	}
	for _, text := range []string{"needle", "needle repo:organisation0042/"} {
		b.Run(text, func(b *testing.B) {
			tree, err := query.Parse(text, query.ParseOptions{})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := layout.Select(b.Context(), tree); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
