package merge_test

import (
	"errors"
	"os"
	"testing"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/merge"
)

// TestVerify: shards are what their documents make up, whatever rules found the definitions. Verifying leaves no file behind.
func TestVerify(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for seed := range uint64(4) {
		repos := modelOf(indextest.Words(seed))
		data, _ := shardOf(t, repos, build.Options{})
		for _, f := range []*format.File{open(t, "built", data), byOtherRules(t, repos)} {
			if err := merge.Verify(context(), f); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		}
	}
	if names, err := os.ReadDir(os.TempDir()); err != nil || len(names) > 0 {
		t.Errorf("left behind: %v (%v)", names, err)
	}
}

// TestVerifyComparesPostingsOfOtherRules: posting lists that another version of the rules marked are compared with the content, too.
func TestVerifyComparesPostingsOfOtherRules(t *testing.T) {
	of := func(content string) []repository {
		main := []string{"main"}
		return modelOf(&indextest.Corpus{Repos: []indextest.Repo{{Name: "a", Branches: main, Documents: []indextest.Document{
			{Path: "a.txt", Content: []byte(content), Branches: main},
		}}}})
	}
	repos := of("alpha alpha beta\n")
	if err := merge.Verify(context(), withPostings(t, repos, of("alpha alpha beta\n"))); err != nil {
		t.Error(err)
	}
	var corrupt *format.CorruptError
	if err := merge.Verify(context(), withPostings(t, repos, of("alpha beta alpha\n"))); err != nil {
		t.Error(err) // the same postings
	}
	if err := merge.Verify(context(), withPostings(t, repos, of("alpha beta beta\n"))); !errors.As(err, &corrupt) || corrupt.Section != format.TagWordPostings.String() {
		t.Errorf("postings of another content: %v", err)
	}
}

// TestVerifyHoldsContentsAgainstTheirIDs: a content that is not that of its Git object is damage, also if it is not UTF-8. Only a text that may have been
// decoded from other bytes is taken as it is.
func TestVerifyHoldsContentsAgainstTheirIDs(t *testing.T) {
	for content, sound := range map[string]bool{"caf\xe9 one\n": false, "plain\n": false, "decoded \ufffd\n": true} {
		data, _ := shardOf(t, []repository{{
			record:    docstore.Repo{Name: "r", Branches: []docstore.Branch{{Name: "main"}}},
			documents: []document{{path: "a", content: []byte(content), branches: []string{"main"}, oid: gitID([]byte("another\n"))}},
		}}, build.Options{})
		err := merge.Verify(t.Context(), open(t, "built", data))
		if sound != (err == nil) || err != nil && !errors.Is(err, format.ErrCorrupt) {
			t.Errorf("%q: %v", content, err)
		}
	}
}
