package searchapi_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestPartsKeepEveryField: a file and a repo that are sent in parts keep all fields,
// including future ones and unknown ones of a later searcher.
func TestPartsKeepEveryField(t *testing.T) {
	f := &searchv1.FileMatch{}
	fill(t, f.ProtoReflect())
	f.Chunks[0].Content = make([]byte, 3<<20)
	var joined *searchv1.FileMatch
	for piece := range searchapi.Pieces(slices.Values([]*searchv1.FileMatch{proto.CloneOf(f)})) {
		for _, part := range piece {
			if joined == nil {
				joined = part
			} else if err := searchapi.JoinFile(joined, part); err != nil {
				t.Fatal(err)
			}
		}
	}
	if f.Chunks, joined.Chunks = nil, nil; !proto.Equal(joined, f) {
		t.Errorf("a file came out as %v, want %v", joined, f)
	}

	e := &searchv1.RepoEntry{}
	fill(t, e.ProtoReflect())
	for range 40_000 {
		e.SkippedFiles = append(e.SkippedFiles, &searchv1.SkippedFile{Path: make([]byte, 40)})
	}
	var parts []*searchv1.RepoEntry
	for piece := range searchapi.EntryPieces(slices.Values([]*searchv1.RepoEntry{e})) {
		parts = append(parts, piece...)
	}
	if len(parts) < 2 {
		t.Fatalf("a large repo came in %d parts", len(parts))
	}
	e.SkippedFiles, parts[0].SkippedFiles = nil, nil
	if !proto.Equal(parts[0], e) {
		t.Errorf("a repo came out as %v, want %v", parts[0], e)
	}
}

func TestWithChunks(t *testing.T) {
	f, other := &searchv1.FileMatch{}, []*searchv1.ChunkMatch{{FileName: true}}
	fill(t, f.ProtoReflect())
	before := proto.CloneOf(f)
	got := searchapi.WithChunks(f, other)
	want := proto.CloneOf(f)
	want.Chunks = other
	if !proto.Equal(got, want) || !proto.Equal(f, before) {
		t.Errorf("got %v, want %v", got, want)
	}
}
