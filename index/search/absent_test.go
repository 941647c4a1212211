package search_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
)

// postingSections hold the posting lists. A search reads them only for the lists that it has
// chosen.
var postingSections = []format.Tag{
	format.TagPostings, format.TagNamePostings, format.TagWordPostings, format.TagUnits, format.TagNames,
}

// TestAbsentEndsTheSearch: a query for what a shard cannot hold ends before the search reads
// content or a posting list of another word.
func TestAbsentEndsTheSearch(t *testing.T) {
	repo := indextest.Repo{Name: "r", Branches: []string{"main"}}
	for i := range 4000 {
		repo.Documents = append(repo.Documents, indextest.Document{
			Path: fmt.Sprintf("folder/%05d.go", i), Branches: repo.Branches,
			Content: []byte(strings.Repeat(fmt.Sprintf("func foo%d() (bar, error) { return baz[%d] }\n", i, i), 20)),
		})
	}
	whole := buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{repo}})
	for _, text := range []string{
		"qqzzyx", "foo qqzzyx", "qqzzyx foo", "f:qqzzyx foo", "f:qqzzyx bar baz", `"foo qqzzyx"`, `"qqzzyx() {"`,
		"c:qqzzyx c:func", "lang:Cobol foo", "r:nothing foo",
		"return.*qqzzyx", "qqzzyx.*bar.*return", `return\s+qqzzyx\(`, "(func|return).*(bar|baz).*(qqzzyx|zzyxqq)",
	} {
		if read := sectionsRead(t, whole, text); len(read) > 0 {
			t.Errorf("%s reads of %v", text, read)
		}
	}
	if read := sectionsRead(t, whole, "bar baz return"); !slices.Contains(read, format.TagWordPostings) {
		t.Errorf("bar baz return reads of %v: the test sees too little", read)
	}
}

// sectionsRead returns the sections of postings and units that a search reads.
func sectionsRead(t *testing.T, whole []byte, text string) (read []format.Tag) {
	t.Helper()
	known, err := format.NewFile("whole", whole)
	if err != nil {
		t.Fatal(err)
	}
	begun := false
	data := make([]byte, len(whole))
	f, err := format.NewSparse("sparse", data, func(off, n int64) error {
		copy(data[off:off+n], whole[off:])
		for _, s := range known.Sections() {
			// Blocks of checksums reach into neighbours: only reads within a section count as reads
			// of it.
			if begun && off >= s.Offset && off+n <= s.Offset+s.Length && slices.Contains(postingSections, s.Tag) {
				read = append(read, s.Tag)
			}
		}
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := search.OpenFile(f)
	if err != nil {
		t.Fatal(err)
	}
	begun = true
	if res := mustSearch(t, s, parse(t, text), search.Options{MaxFiles: 10}); text != "bar baz return" && res.Stats.FilesMatched > 0 {
		t.Fatalf("%s matches %d files", text, res.Stats.FilesMatched)
	}
	return slices.Compact(read)
}
