package searchapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// drawFile draws a file. Most are small; some have a chunk, ranges or many chunks that
// do not fit into a message.
func drawFile(t *rapid.T, i int) *searchv1.FileMatch {
	f := &searchv1.FileMatch{
		Repo: "r", Path: fmt.Append(nil, "path", i), Blob: []byte{byte(i)}, Score: float64(i), Branches: []string{"main"}, MatchCount: 7,
		Language: "Go", Commit: "c0", Explanation: "because", SkipReason: searchv1.SkipReason_SKIP_REASON_BINARY,
	}
	for range rapid.SampledFrom([]int{0, 2, 3000}).Draw(t, "symbols") {
		f.Symbols = append(f.Symbols, &searchv1.Symbol{Name: strings.Repeat("n", 60), Scope: "scope", Kind: searchv1.SymbolKind_SYMBOL_KIND_MODULE})
	}
	for range rapid.SampledFrom([]int{0, 1, 2, 400}).Draw(t, "chunks") {
		c := &searchv1.ChunkMatch{
			ContentStart: &searchv1.Location{ByteOffset: 9, LineNumber: 3, Column: 1},
			FileName:     len(f.Chunks)%2 == 1, Content: make([]byte, 4000),
		}
		if len(f.Chunks) < 2 {
			c.Content = make([]byte, rapid.SampledFrom([]int{0, 7, 200_000, 1 << 20, 1_500_000}).Draw(t, "bytes"))
			for j := range rapid.SampledFrom([]int{1, 3, 3, 25_000}).Draw(t, "ranges") {
				at := &searchv1.Location{ByteOffset: uint32(j), LineNumber: 1 << 30, Column: 1 << 30}
				r := &searchv1.Range{Start: at, End: at}
				if len(f.Symbols) > 0 {
					r.Symbol, r.Definition = uint32(1+j%len(f.Symbols)), true
				}
				c.Ranges = append(c.Ranges, r)
			}
		}
		f.Chunks = append(f.Chunks, c)
	}
	return f
}

// TestPiecesAreTheWhole: for any files, each message is of bounded size, and the
// parts put together are the files.
func TestPiecesAreTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var files, want []*searchv1.FileMatch
		for i := range rapid.IntRange(0, 3).Draw(t, "files") {
			files = append(files, drawFile(t, i))
			want = append(want, proto.Clone(files[i]).(*searchv1.FileMatch))
		}
		var joined []*searchv1.FileMatch
		for piece := range searchapi.Pieces(slices.Values(files)) {
			m := &searchv1.StreamSearchResponse{Files: piece}
			if n := proto.Size(m); n > 1<<20 || len(piece) == 0 {
				t.Fatalf("a piece of %d files has %d bytes", len(piece), n)
			}
			for _, f := range proto.Clone(m).(*searchv1.StreamSearchResponse).Files {
				if !f.Continued {
					joined = append(joined, f)
				} else if err := searchapi.JoinFile(joined[len(joined)-1], f); err != nil {
					t.Fatal(err)
				}
			}
		}
		same := func(a, b *searchv1.FileMatch) bool { return proto.Equal(a, b) }
		if !slices.EqualFunc(joined, want, same) || !slices.EqualFunc(files, want, same) {
			t.Fatalf("%d files came out of %d", len(joined), len(want))
		}
	})
}

func TestPartsThatDoNotFollow(t *testing.T) {
	part := &searchv1.FileMatch{Continued: true, Chunks: []*searchv1.ChunkMatch{{Continued: true}}}
	if searchapi.JoinFile(&searchv1.FileMatch{}, part) == nil {
		t.Error("a part of no chunk was taken")
	}
}

// TestEntryPiecesAreTheWhole: a repo with very many skipped files comes in several messages.
func TestEntryPiecesAreTheWhole(t *testing.T) {
	var entries, want []*searchv1.RepoEntry
	for i, skipped := range []int{0, 30_000, 3, 100_000} {
		e := &searchv1.RepoEntry{Name: fmt.Sprint("repo", i), Shards: 1, Documents: 5, Branches: []*searchv1.BranchEntry{{Name: "main"}}}
		for j := range skipped {
			e.SkippedFiles = append(e.SkippedFiles, &searchv1.SkippedFile{Path: fmt.Appendf(nil, "a/rather/long/path/to/file%06d", j), SizeBytes: 9})
		}
		entries, want = append(entries, e), append(want, proto.Clone(e).(*searchv1.RepoEntry))
	}
	var parts []*searchv1.RepoEntry
	for piece := range searchapi.EntryPieces(slices.Values(entries)) {
		m := &searchv1.StreamListResponse{Repos: piece}
		if n := proto.Size(m); n > 1<<20 {
			t.Errorf("a piece of %d repos has %d bytes", len(piece), n)
		}
		parts = append(parts, proto.Clone(m).(*searchv1.StreamListResponse).Repos...)
	}
	if len(parts) <= len(want) {
		t.Errorf("%d parts of %d repos", len(parts), len(want))
	}
	got := searchapi.MergeEntries(1<<20, parts)
	if !slices.EqualFunc(got, want, func(a, b *searchv1.RepoEntry) bool { return proto.Equal(a, b) }) {
		t.Error("the repos are not the same when put together again")
	}
}
