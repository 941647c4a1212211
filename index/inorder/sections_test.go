package inorder_test

import (
	"bytes"
	"testing"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/inorder"
)

// TestSectionsAreReplayed writes the same sections, some of them empty, to a shard and to
// memory, from which they are replayed.
func TestSectionsAreReplayed(t *testing.T) {
	write := func(w format.SectionWriter) {
		t.Helper()
		_ = w.WriteSection(format.TagNgrams, format.Required, nil)
		_ = w.Begin(format.TagPostings, format.Required)
		for i := range 1000 {
			_, _ = w.Write(bytes.Repeat([]byte{byte(i)}, i))
		}
		_ = w.End()
		_ = w.WriteSection(format.TagLines, 0, []byte("masks"))
		if err := w.WriteSection(format.TagLexicon, format.Required, nil); err != nil {
			t.Fatal(err)
		}
	}
	var direct bytes.Buffer
	w := format.NewWriter(&direct)
	write(w)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var sections inorder.Sections
	write(&sections)
	var replayed bytes.Buffer
	w = format.NewWriter(&replayed)
	if err := sections.Replay(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(replayed.Bytes(), direct.Bytes()) {
		t.Errorf("%d bytes are replayed, which differ from %d written", replayed.Len(), direct.Len())
	}
}
