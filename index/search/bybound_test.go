package search_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/testrun"
)

// phraseShard has many files with the words of phrases: whole and within other words, adjacent and apart, in short and long files, some
// with opaque superblocks. A third of them is in a second repo, which has a rank.
func phraseShard(t *testing.T, repo string, rng *rand.Rand) *search.Shard {
	t.Helper()
	main := []string{"main"}
	words := []string{"int", "i", "i", "INT", "print", "index", "an_int", "\u212Aint", "x"}
	between := []string{" ", " ", " ", "  ", "(", "\n"}
	repos := []indextest.Repo{{Name: repo, Branches: main}, {Name: repo + "/ranked", Branches: main, Rank: 40}}
	for i := range 1500 {
		var b strings.Builder
		for range rng.IntN(20) {
			b.WriteString(words[min(rng.IntN(len(words)), rng.IntN(len(words)))] + between[rng.IntN(len(between))])
		}
		if rng.IntN(8) == 0 {
			b.WriteString(strings.Repeat("- ", 4<<10) + strings.Repeat("int i\n", rng.IntN(10)))
		}
		if rng.IntN(40) == 0 {
			b.WriteString(strings.Repeat("long", 40) + " int i")
		}
		path := fmt.Sprintf("%d/%d", i%7, i)
		if rng.IntN(4) == 0 {
			path = "tests/" + path
		}
		r := &repos[0]
		if i%3 == 0 {
			r = &repos[1]
		}
		r.Documents = append(r.Documents, indextest.Document{Path: path, Content: []byte(b.String()), Branches: main})
	}
	return openShard(t, buildShard(t, &indextest.Corpus{Repos: repos}))
}

// TestBestPhrases compares the best files of phrases with the first of all files, also in pages.
func TestBestPhrases(t *testing.T) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 45))
		s := phraseShard(t, "r", rng)
		for _, text := range []string{"int i", "t i", "int i ", "int(i", " int", "i i i", "print index", "i int i", "x i"} {
			for _, sensitive := range []bool{false, true} {
				q := prepare(t, &query.Substring{Pattern: text, CaseSensitive: sensitive, Scope: query.Content})
				opts := search.Options{MaxFiles: 1 + rng.IntN(40), MaxMatchesPerFile: 5, After: somewhere(s, q, rng)}
				want := run(t, s, q, opts)
				opts.Mode = search.TopK
				if got := run(t, s, q, opts); !sameFiles(got.Files, want.Files) {
					t.Fatalf("seed %d, %q, case sensitive %t, best %d after %v:\n%v\nwant\n%v",
						seed, text, sensitive, opts.MaxFiles, opts.After, got.Files, want.Files)
				}
			}
		}
	}
}

// TestFloorRises searches two shards for the best files. While the second is searched, the floor rises to that of the first. The best
// of both are the same as without a floor, and the search looks at fewer files.
func TestFloorRises(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 45))
	first, second := phraseShard(t, "b", rng), phraseShard(t, "b", rng)
	other := phraseShard(t, "a", rng)
	earlier := 0
	for _, text := range []string{`"int i"`, `"t i"`, "int", "i", "print int", "index x print", "(print|index)", `int\s+i`, "in f:3", "-x index", "case:yes INT"} {
		q := prepare(t, parse(t, text))
		for range testrun.Rounds(1, 3) {
			opts := search.Options{MaxFiles: 1 + rng.IntN(40), MaxMatchesPerFile: 5, Mode: search.Mode(rng.IntN(2))}
			for _, parts := range [][]part{{{shard: first}, {shard: second}}, {{shard: first}, {shard: other}}} {
				want, err := searchParts(parts, q, opts)
				if err != nil {
					t.Fatal(err)
				}
				parts[1].late = 1 + rng.IntN(60)
				got, err := searchParts(parts, q, opts)
				if err != nil || !sameFiles(got.Files, want.Files) {
					t.Fatalf("%s, best %d, the floor at call %d: %v\n%v\nwant\n%v", text, opts.MaxFiles, parts[1].late, err, got.Files, want.Files)
				}
				parts[1].late = 1 << 30
				if never, err := searchParts(parts, q, opts); err != nil {
					t.Fatal(err)
				} else if never.Stats.FilesConsidered > got.Stats.FilesConsidered {
					earlier++
				}
			}
		}
	}
	if earlier < testrun.Rounds(2, 5) {
		t.Errorf("%d searches ended earlier for a floor that rose", earlier)
	}
}
