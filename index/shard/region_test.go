package shard

import (
	"bytes"
	"context"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
)

// oneDocument opens a shard of one document.
func oneDocument(t *rapid.T, content []byte) *Shard {
	var buf bytes.Buffer
	b, err := build.NewBuilder(&buf, build.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.AddRepo(docstore.Repo{Name: "r", Branches: []docstore.Branch{{Name: "main"}}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Add(build.Document{Path: []byte("x"), Content: content, Branches: []uint32{0}}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := format.NewFile("one.trawl", buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenFile(f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// within returns the first chunks that fit into room bytes.
func within(chunks []Chunk, room int64) []Chunk {
	for i, c := range chunks {
		if room -= int64(len(c.Content)); room < 0 {
			return chunks[:i]
		}
	}
	return chunks
}

// TestChunksOfPartsAreThoseOfTheWhole cuts chunks out of the content decoded
// near the spans and out of the whole content: they must be the same.
func TestChunksOfPartsAreThoseOfTheWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var content []byte
		for range rapid.IntRange(1, 30).Draw(t, "lines") {
			n := rapid.OneOf(rapid.IntRange(0, 60), rapid.IntRange(0, 9000)).Draw(t, "length")
			content = append(append(content, bytes.Repeat([]byte("é"), n/2)...), "x\n"[:rapid.IntRange(1, 2).Draw(t, "end")]...)
		}
		var spans []span
		for at := 0; at < len(content); {
			start := at + rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 20_000)).Draw(t, "gap")
			end := start + rapid.OneOf(rapid.IntRange(1, 20), rapid.IntRange(1, 5000)).Draw(t, "size")
			for start < len(content) && content[start] == 0xa9 { // the second byte of é
				start++
			}
			for end < len(content) && content[end] == 0xa9 {
				end++
			}
			if end > len(content) || start >= end {
				break
			}
			spans = append(spans, span{start: uint32(start), end: uint32(end)})
			at = end
		}
		lines := rapid.IntRange(0, 4).Draw(t, "context")
		s := oneDocument(t, content)
		err := s.with(context.Background(), Options{ContextLines: lines}, func(run *search) error {
			want := new(shelf).appendChunks(nil, content, Location{Line: 1}, spans, lines, 0)
			if rapid.Bool().Draw(t, "bounded") {
				run.room = int64(rapid.IntRange(0, 20_000).Draw(t, "room"))
				want = within(want, run.room)
			}
			got, err := run.contentChunks(0, slices.Clone(spans))
			got = within(got, run.room)
			if err == nil && len(spans) > 0 && (len(got) > 0 || len(want) > 0) && !reflect.DeepEqual(got, want) {
				t.Fatalf("%d chunks, want %d\n got %.2000v\nwant %.2000v", len(got), len(want), got, want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
