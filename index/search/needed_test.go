package search_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
)

// TestWholeTextsAreReadLast: before whole texts are read for an expression, all that it needs is looked up.
func TestWholeTextsAreReadLast(t *testing.T) {
	repo := indextest.Repo{Name: "r", Branches: []string{"main"}}
	var words strings.Builder // many blocks of the lexicon have a word that ends in others
	for i := range 4000 {
		fmt.Fprintf(&words, "w%dothers\n", i*7919)
	}
	repo.Documents = append(repo.Documents, indextest.Document{Path: "words.go", Content: []byte(words.String()), Branches: repo.Branches})
	for i := range 3 {
		text := fmt.Sprintf("// %d\nfunc rarest() {}\n", i) + strings.Repeat("// nothing of them\n", 5000)
		repo.Documents = append(repo.Documents, indextest.Document{Path: fmt.Sprintf("%d.go", i), Language: "Go", Content: []byte(text), Branches: repo.Branches})
	}
	s := openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{repo}}))
	for _, text := range []string{`rarest(?s:.*)others`, `(?s:rarest.*others)\z`, `sym:rarest.*others`} {
		if res := mustSearch(t, s, parse(t, text), search.Options{MaxFiles: 10}); res.Stats.BytesDecoded > 0 {
			t.Errorf("%s reads %d bytes of %d files", text, res.Stats.BytesDecoded, res.Stats.FilesConsidered)
		}
	}
}
