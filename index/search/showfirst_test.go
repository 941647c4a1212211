package search_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/testrun"
)

// TestShownRangesAreSomeOfAll: with a limit on matches, a file shows as many of the ranges that it shows without one, beside letters in
// words. Words overlap, cross superblocks and are next to runes that fold to letters, and some are too long for an index.
func TestShownRangesAreSomeOfAll(t *testing.T) {
	queries := []string{
		"content:alpha", "content:alpha content:beta", "content:alpha content:lphabet content:gamma", "content:beta content:tag content:x",
		`content:kelvin content:alpha`, `content:/\balpha\b/ content:beta`, `content:/\b\w+9\b/ content:x`, `content:/(alpha|gamma)\w/ content:eta`,
		"alpha beta", "(content:alpha or content:beta)", "content:alpha -content:nowhere content:a",
	}
	for seed := range testrun.Rounds[uint64](2, 6) {
		rng := rand.New(rand.NewPCG(seed, 11))
		var documents []indextest.Document
		for i := range 16 {
			documents = append(documents, indextest.Document{Path: fmt.Sprintf("%d.txt", i), Content: acrossSuperblocks(rng), Branches: []string{"main"}})
		}
		s := openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}, Documents: documents}}}))
		for _, text := range queries {
			tree, err := query.Parse(text, query.ParseOptions{})
			if err != nil {
				t.Fatal(err)
			}
			ready, err := search.Prepare(tree)
			if err != nil {
				t.Fatal(err)
			}
			all := shownRanges(run(t, s, ready, search.Options{MaxFiles: 100, MaxMatchesPerFile: 1 << 30}))
			for limit := 1; limit < 100; limit += 1 + limit/16 {
				for _, mode := range []search.Mode{search.Exhaustive, search.TopK} {
					for path, got := range shownRanges(run(t, s, ready, search.Options{Mode: mode, MaxFiles: 100, MaxMatchesPerFile: limit})) {
						if want := all[path]; !indextest.Shows(want, got, limit) {
							t.Fatalf("seed %d: %s with up to %d matches shows %v of %s, all are %v", seed, text, limit, got, path, want)
						}
					}
				}
			}
		}
	}
}

// acrossSuperblocks makes a text with a few words in each superblock, one of them across its end. Of some texts most words are the
// same, so that one word of a query is in all superblocks and another in few.
func acrossSuperblocks(rng *rand.Rand) []byte {
	within := []string{"alpha", "alphabet", "beta", "alphabetagamma", "gamma_alpha", "x", "Kelvin", "naïve"}
	across := append(slices.Clone(within), "filler")
	if long := strings.Repeat("alphabeta9", 30); rng.IntN(2) == 0 { // too long for an index
		across = append(across, long, long+"z", "\u212Aelvin", "\u212Aelvin"+long)
	}
	switch rng.IntN(4) {
	case 0:
		within = []string{"alpha"}
	case 1:
		within = []string{"beta9"}
	}
	var b bytes.Buffer
	for end := docstore.SuperblockSize; end < (2+rng.IntN(12))*docstore.SuperblockSize; end += docstore.SuperblockSize {
		for range 1 + rng.IntN(8) {
			for pad := rng.IntN(max(end-700-b.Len(), 1)); pad > 0; pad -= 7 {
				b.WriteString("filler\n")
			}
			b.WriteString(within[rng.IntN(len(within))] + " ")
		}
		word := across[rng.IntN(len(across))]
		for ahead := rng.IntN(len(word) + 2); b.Len() < end-ahead; {
			b.WriteByte(". \n"[rng.IntN(3)])
		}
		b.WriteString(word)
		if rng.IntN(2) == 0 {
			b.WriteString(" " + across[rng.IntN(len(across))] + " ")
		}
	}
	return b.Bytes()
}

// shownRanges returns the ranges shown, by path.
func shownRanges(res *search.Result) map[string][]indextest.Range {
	ranges := map[string][]indextest.Range{}
	for _, f := range res.Files {
		for _, c := range f.Chunks {
			for _, r := range c.Ranges {
				ranges[string(f.Path)] = append(ranges[string(f.Path)], indextest.Range{Start: int(r.Start.Offset), End: int(r.End.Offset)})
			}
		}
	}
	return ranges
}
