package searchwire_test

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/shard"
	"github.com/trawl-search/trawl/internal/searchwire"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// drawFiles draws files with many ties, each with its own path.
func drawFiles(t *rapid.T, most int) []*searchv1.FileMatch {
	files := make([]*searchv1.FileMatch, rapid.IntRange(0, most).Draw(t, "files"))
	for i := range files {
		files[i] = &searchv1.FileMatch{
			Score: float64(rapid.IntRange(0, 3).Draw(t, "score")),
			Repo:  rapid.SampledFrom([]string{"a", "b"}).Draw(t, "repo"),
			Path:  fmt.Append(nil, rapid.IntRange(0, 5).Draw(t, "path"), "/", i),
		}
	}
	return files
}

func inOrder(a, b *searchv1.FileMatch) int {
	return shard.Compare(searchwire.Key(a), searchwire.Key(b))
}

func TestMergeIsTheGlobalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := drawFiles(t, 60)
		lists := make([][]*searchv1.FileMatch, rapid.IntRange(1, 8).Draw(t, "lists"))
		for _, f := range all {
			i := rapid.IntRange(0, len(lists)-1).Draw(t, "list")
			lists[i] = append(lists[i], f)
		}
		for _, l := range lists {
			slices.SortFunc(l, inOrder)
		}
		limit := rapid.IntRange(0, 70).Draw(t, "limit")
		got := searchwire.Merge(limit, lists...)
		slices.SortFunc(all, inOrder)
		if want := all[:min(limit, len(all))]; !slices.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestLimitBytes(t *testing.T) {
	chunk := func(n int) *searchv1.ChunkMatch { return &searchv1.ChunkMatch{Content: bytes.Repeat([]byte("x"), n)} }
	files := []*searchv1.FileMatch{
		{Chunks: []*searchv1.ChunkMatch{chunk(4), chunk(7)}, MatchCount: 2},
		{Chunks: []*searchv1.ChunkMatch{chunk(6), chunk(1)}, MatchCount: 2},
	}
	searchwire.LimitBytes(files, 10)
	if len(files[0].Chunks) != 1 || len(files[1].Chunks) != 1 || len(files[1].Chunks[0].Content) != 6 {
		t.Errorf("wrong chunks left: %v", files)
	}
	if files[0].MatchCount != 2 {
		t.Error("the count of matches must not depend on what is shown")
	}
}

func TestPiecesAreTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var files []*searchv1.FileMatch
		for range rapid.IntRange(0, 12).Draw(t, "files") {
			size := rapid.IntRange(0, 1<<20+100).Draw(t, "size")
			files = append(files, &searchv1.FileMatch{Chunks: []*searchv1.ChunkMatch{{Content: make([]byte, size)}}})
		}
		var joined []*searchv1.FileMatch
		for piece := range searchwire.Pieces(files) {
			if len(piece) == 0 {
				t.Fatal("an empty piece")
			}
			if n := proto.Size(&searchv1.StreamSearchResponse{Files: piece}); len(piece) > 1 && n > 1<<20+1<<10 {
				t.Fatalf("a piece of %d files has %d bytes", len(piece), n)
			}
			joined = append(joined, piece...)
		}
		if !slices.Equal(joined, files) {
			t.Fatalf("%d files came out of %d", len(joined), len(files))
		}
	})
}
