package shard_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/shard"
)

// TestEachContentIsLookedAtOnce: a content that many documents share is looked at once to find out whether all have one
// language, and not once for each document.
func TestEachContentIsLookedAtOnce(t *testing.T) {
	const copies = 50
	var out bytes.Buffer
	b, err := build.NewBuilder(&out, build.Options{})
	if err == nil {
		err = b.AddRepo(docstore.Repo{Name: "r", Branches: []docstore.Branch{{Name: "main"}}})
	}
	add := func(path, language, content string) {
		if err == nil {
			err = b.Add(build.Document{Path: []byte(path), Content: []byte(content), Language: language, Branches: []uint32{0}})
		}
	}
	for i := range copies {
		add(fmt.Sprintf("a%03d", i), "Go", "of one language\n")
	}
	for i := range copies {
		add(fmt.Sprintf("b%03d", i), []string{"Go", "Python"}[i%2], "of two languages\n")
	}
	add("c", "Go", "of one file\n")
	if err == nil {
		_, err = b.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	f, err := format.NewFile("test.trawl", out.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	s, err := shard.OpenFile(f)
	if err != nil {
		t.Fatal(err)
	}
	ticks := 0
	found, err := s.OtherwiseMarked(func() error { ticks++; return nil })
	if err != nil || len(found) != 1 {
		t.Errorf("contents of several languages: %v, %v", found, err)
	}
	if ticks != 2 {
		t.Errorf("%d contents were looked at, want 2", ticks)
	}
}
