package searchapi_test

import (
	"math"
	"runtime"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/testrun"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestMemoryIsMeasured: FileMemory and EntryMemory agree with the heap that decoded
// files and repos take. They say 0.88 to 1.02 of it; half and twice leave room for other
// allocators.
func TestMemoryIsMeasured(t *testing.T) {
	at := &searchv1.Location{ByteOffset: 1000, LineNumber: 20, Column: 30}
	few := &searchv1.FileMatch{Repo: "github.com/org/name", Path: []byte("src/some/file.go"), Branches: []string{"main"}, Blob: make([]byte, 20), Commit: "c0"}
	many := proto.Clone(few).(*searchv1.FileMatch)
	few.Chunks = []*searchv1.ChunkMatch{{Content: make([]byte, 80), ContentStart: at, Ranges: []*searchv1.Range{{Start: at, End: at}}}}
	many.Chunks = []*searchv1.ChunkMatch{{Content: make([]byte, 4000), ContentStart: at, Ranges: slices.Repeat([]*searchv1.Range{{Start: at, End: at}}, 2000)}}
	repo := &searchv1.RepoEntry{
		Name: "github.com/org/name", Url: "https://github.com/org/name", Branches: []*searchv1.BranchEntry{{Name: "main", Commit: "c0"}},
		Languages:    slices.Repeat([]*searchv1.LanguageShare{{Language: "Go", Documents: 3, Bytes: 9}}, 5),
		SkippedFiles: slices.Repeat([]*searchv1.SkippedFile{{Path: []byte("some/path/to/a/file")}}, 20),
	}
	for name, c := range map[string]struct {
		message proto.Message
		said    int64
	}{
		"few matches":  {few, searchapi.FileMemory(few)},
		"many matches": {many, searchapi.FileMemory(many)},
		"repo":         {repo, searchapi.EntryMemory(repo)},
	} {
		taken := heapOf(t, c.message)
		if ratio := float64(c.said) / float64(taken); ratio < 0.5 || ratio > 2 {
			t.Errorf("%s: said to take %d bytes, takes %d", name, c.said, taken)
		}
	}
}

// heapOf is what one decoded copy of the message takes on the heap.
func heapOf(t *testing.T, m proto.Message) int64 {
	t.Helper()
	raw, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	copies := make([]proto.Message, 2<<20/len(raw)) // megabytes, beside which the rest of the heap hardly changes
	before := testrun.LiveHeap()
	for i := range copies {
		copies[i] = m.ProtoReflect().New().Interface()
		if err := proto.Unmarshal(raw, copies[i]); err != nil {
			t.Fatal(err)
		}
	}
	after := testrun.LiveHeap()
	runtime.KeepAlive(copies)
	return (after - before) / int64(len(copies))
}

// TestCutFileFits: a file is cut to the room, from its end, and marked as cut.
func TestCutFileFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole := drawFile(t, 0)
		f := proto.Clone(whole).(*searchv1.FileMatch)
		room := rapid.SampledFrom([]int{0, 300, 5000, 200_000, 1 << 20, 8 << 20, 64 << 20}).Draw(t, "room")
		searchapi.CutFile(f, room)
		size, full := proto.Size(&searchv1.SearchResponse{Files: []*searchv1.FileMatch{f}}), proto.Size(&searchv1.SearchResponse{Files: []*searchv1.FileMatch{whole}})
		switch {
		case full <= room:
			if !proto.Equal(f, whole) {
				t.Fatal("a file that fits was changed")
			}
			return
		case len(whole.Chunks) > 0 && !f.Cut && len(f.Symbols) == len(whole.Symbols):
			t.Fatal("it does not say that it was cut")
		case size > room && len(f.Chunks) > 0:
			t.Fatalf("%d bytes where there is room for %d", size, room)
		}
		checkSymbols(t, f)
		forgetSymbols(f)
		forgetSymbols(whole)
		for i, c := range f.Chunks {
			last := i == len(f.Chunks)-1
			if !proto.Equal(c, whole.Chunks[i]) && (!last || len(c.Ranges) == 0 || len(c.Content) != len(whole.Chunks[i].Content)) {
				t.Fatalf("chunk %d is not that of the file", i)
			}
		}
	})
}

// checkSymbols checks that each range is in a symbol that the file has.
func checkSymbols(t *rapid.T, f *searchv1.FileMatch) {
	for _, c := range f.Chunks {
		for _, r := range c.Ranges {
			if int(r.Symbol) > len(f.Symbols) || r.Definition && r.Symbol == 0 {
				t.Fatalf("%v of %d symbols", r, len(f.Symbols))
			}
		}
	}
}

func forgetSymbols(f *searchv1.FileMatch) {
	for _, c := range f.Chunks {
		for _, r := range c.Ranges {
			r.Symbol, r.Definition = 0, false
		}
	}
}

func TestTrimCoverage(t *testing.T) {
	c := &searchv1.Coverage{Requested: 1000, Searched: 1, Failed: 999}
	for i := range 999 {
		c.Uncovered = append(c.Uncovered, &searchv1.UncoveredShard{Digest: make([]byte, 32), Repos: []string{"github.com/org/name"}, Message: string(rune('a' + i%26))})
	}
	for _, room := range []int{0, 100, 10_000, 1 << 20} {
		got := searchapi.TrimCoverage(c, room)
		if n := proto.Size(got); n > max(room, 20) {
			t.Errorf("%d bytes where there is room for %d", n, room)
		}
		if got.Requested != 1000 || got.Failed != 999 || len(got.Uncovered)+int(got.UncoveredLeftOut) != 999 {
			t.Errorf("with room for %d: %d are named, %d left out, failed %d", room, len(got.Uncovered), got.UncoveredLeftOut, got.Failed)
		}
	}
	if searchapi.TrimCoverage(c, 1<<20) != c {
		t.Error("a coverage that fits was copied")
	}
}

// TestFittingFiles: the number of files that fit follows from their exact sizes.
func TestFittingFiles(t *testing.T) {
	largest := &searchv1.Location{ByteOffset: math.MaxUint32, LineNumber: math.MaxUint32, Column: math.MaxUint32}
	rapid.Check(t, func(t *rapid.T) {
		var files []*searchv1.FileMatch
		for range rapid.IntRange(0, 5).Draw(t, "files") {
			f := drawFile(t, 0)
			f.Score, f.MatchCount, f.SkipReason, f.Cut, f.Continued = -1, math.MaxUint64, -1, true, true
			for _, c := range f.Chunks {
				c.FileName, c.Continued, c.ContentStart = true, true, largest
				for _, r := range c.Ranges {
					r.Start, r.End = largest, largest
				}
			}
			files = append(files, f)
		}
		size := proto.Size(&searchv1.SearchResponse{Files: files})
		room := max(size+rapid.OneOf(rapid.IntRange(-100, 100), rapid.IntRange(-size, size)).Draw(t, "more"), 0)
		if got, want := searchapi.FittingFiles(files, room), searchapi.Fitting(files, room); got != want {
			t.Fatalf("%d of %d files fit into %d bytes of %d, want %d", got, len(files), room, size, want)
		}
	})
}
