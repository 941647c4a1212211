package search_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
)

// textOf returns size bytes of lines with a needle in every 100,000 bytes and one "rare".
func textOf(size int) []byte {
	random := rand.New(rand.NewPCG(8, 9))
	var text bytes.Buffer
	for next := 0; text.Len() < size-100; {
		fmt.Fprintf(&text, "line %d of some table: %s\n", random.IntN(1_000), strings.Repeat("0x", random.IntN(20)))
		if text.Len() > next {
			text.WriteString("here is a NEEDLE\n")
			next += 100_000
		}
	}
	text.WriteString("and this is Rare")
	return append(text.Bytes(), bytes.Repeat([]byte("\n"), size-text.Len())...)
}

// noiseOf returns text with nearly as many different n-grams as it has bytes.
func noiseOf(size int) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, size)
	for i := range noise {
		noise[i] = ' ' + byte(random.IntN(95))
	}
	return noise
}

// TestLargeText: a search finds a text of 20 MiB by content and counts its matches, and likewise
// text with very many different n-grams. A file over the limit is found by its name, and the match
// says why it was skipped.
func TestLargeText(t *testing.T) {
	text, noise := textOf(20<<20), noiseOf(1<<20)
	copy(noise[500_000:], "a NEEDLE in noise")
	over := textOf(33 << 20)
	s := openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{{
		Name: "r", Branches: []string{"main"}, Documents: []indextest.Document{
			{Path: "noise", Content: noise, Branches: []string{"main"}},
			{Path: "over", Content: over, Branches: []string{"main"}},
			{Path: "text", Content: text, Branches: []string{"main"}},
		},
	}}}))
	folded := bytes.ToLower(text)
	count := func(literal string) uint64 { return uint64(bytes.Count(folded, []byte(literal))) }
	for _, try := range []struct {
		query          string
		files, matches uint64
	}{
		{`needle`, 2, count("needle") + 1},
		{`f:text needle`, 1, count("needle")},
		{`rare`, 1, 1},
		{`f:text x`, 1, count("x")},
		{`f:text c:b c:0`, 1, count("b") + count("0")},
		{`c:"(?s)needle.*rare"`, 1, 1},
		{`f:over`, 1, 1},
		{`f:over c:line`, 0, 0},
	} {
		got := mustSearch(t, s, parse(t, try.query), search.Options{MaxFiles: 3, MaxMatchesPerFile: 2, MaxBytes: 1 << 20})
		if got.Stats.FilesMatched != try.files {
			t.Errorf("%s: %d files, want %d", try.query, got.Stats.FilesMatched, try.files)
		}
		if got.Stats.Matches != try.matches {
			t.Errorf("%s: %d matches, want %d", try.query, got.Stats.Matches, try.matches)
		}
		for _, f := range got.Files {
			if want := string(f.Path) == "over"; (f.Skip == docstore.TooLarge) != want {
				t.Errorf("%s: %s is found by name only because it is %v", try.query, f.Path, f.Skip)
			}
		}
	}
	f, err := s.File(t.Context(), "r", []byte("text"), "", search.Options{}, search.Part{})
	if err != nil || !bytes.Equal(f.Content, text) {
		t.Errorf("the file is not what was indexed: %v", err)
	}
}

// TestLinesWithoutRoom: showing files with lines longer than the room in the answer does not read
// them all.
func TestLinesWithoutRoom(t *testing.T) {
	const files, length = 20, 512 << 10
	repo := indextest.Repo{Name: "r", Branches: []string{"main"}}
	for i := range files {
		line := bytes.Repeat([]byte{'a' + byte(i)}, length)
		copy(line[length/2:], " needle ")
		repo.Documents = append(repo.Documents, indextest.Document{Path: fmt.Sprintf("%02d", i), Content: line, Branches: []string{"main"}})
	}
	s := openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{repo}}))
	got := mustSearch(t, s, parse(t, "needle"), search.Options{MaxFiles: files, MaxMatchesPerFile: 1, MaxBytes: 100_000})
	if len(got.Files) != 1 || !got.Cut || got.Stats.Matches != files {
		t.Errorf("%d files, cut %v, %d matches: want the best one, and all counted", len(got.Files), got.Cut, got.Stats.Matches)
	}
	if got.Stats.BytesDecoded > 5*length {
		t.Errorf("%d bytes were decoded to show one of %d files", got.Stats.BytesDecoded, files)
	}
}

// TestFileEndsInTime: reading a large file checks the context.
func TestFileEndsInTime(t *testing.T) {
	s := oneFile(t, textOf(2<<20))
	clock := &looks{Context: context.Background(), end: 5}
	if _, err := s.File(clock, "r", []byte("large"), "", search.Options{}, search.Part{}); !errors.Is(err, context.Canceled) || clock.n > 5 {
		t.Errorf("%v after %d looks, want that it was canceled after 5", err, clock.n)
	}
}

// TestPartsOfLargeFiles: a part of a file is decoded without the rest.
func TestPartsOfLargeFiles(t *testing.T) {
	text := textOf(2 << 20)
	s := oneFile(t, text)
	for _, part := range []search.Part{{}, {0, 1}, {1, 5000}, {1 << 20, 70_000}, {2<<20 - 10, 100}, {2 << 20, 1}, {1 << 60, 1 << 60}, {5, 1 << 60}} {
		want := text[min(part.Offset, uint64(len(text))):]
		if part.MaxBytes > 0 {
			want = want[:min(part.MaxBytes, uint64(len(want)))]
		}
		clock := &looks{Context: context.Background(), end: 1 << 30}
		f, err := s.File(clock, "r", []byte("large"), "", search.Options{}, part)
		if err != nil || !bytes.Equal(f.Content, want) || int(f.Size) != len(text) {
			t.Errorf("%+v: %d bytes of %d, %v: want %d", part, len(f.Content), f.Size, err, len(want))
		}
		if small := len(want) <= 70_000; small != (clock.n < 8) {
			t.Errorf("%+v: the clock was looked at %d times", part, clock.n)
		}
	}
}

// TestLimitIsOfTheOptions: the limit on the size of files is an option of the builder.
func TestLimitIsOfTheOptions(t *testing.T) {
	c := &indextest.Corpus{Repos: []indextest.Repo{{
		Name: "r", Branches: []string{"main"}, Documents: []indextest.Document{
			{Path: "a", Content: []byte("needle"), Branches: []string{"main"}}, {Path: "b", Content: []byte("needle!"), Branches: []string{"main"}},
		},
	}}}
	s := openShard(t, buildShardWith(t, c, build.Options{MaxFileSize: 6}))
	if got := mustSearch(t, s, parse(t, "needle"), search.Options{MaxFiles: 3}); got.Stats.FilesMatched != 1 {
		t.Errorf("%d files", got.Stats.FilesMatched)
	}
}
