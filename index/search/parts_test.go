package search_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/testrun"
)

// partStems are what words are made of: some overlap themselves or hold others, and have the least and the most letters of a part, or one more.
var partStems = []string{"ana", "banana", "aaa", "aaaa", "key", "miss", "sixteenletterpar", "seventeenletters", "field", "Fields", "HTTP", "http", "https", "kk", "abc", "long"}

// partWord appends a word that holds a stem, or what keeps a part from being answered by lists alone.
func partWord(b *strings.Builder, rnd *rand.Rand, k int) {
	stem, other := partStems[rnd.IntN(len(partStems))], partStems[rnd.IntN(len(partStems))]
	switch rnd.IntN(9) {
	case 0:
		stem = strings.ToUpper(stem)
	case 1:
		stem = strings.ToUpper(stem[:1]) + stem[1:]
	}
	rare := rnd.IntN(20) == 0
	switch kind := rnd.IntN(14); {
	case kind == 0:
		fmt.Fprintf(b, "%s%d", stem, k%90)
	case kind == 1:
		fmt.Fprintf(b, "%d_%s", k%90, stem)
	case kind == 2:
		fmt.Fprintf(b, "x%d%s%sY", k%90, stem, other)
	case kind == 3:
		b.WriteString(stem)
	case kind == 4:
		b.WriteString(stem + "_" + stem + stem)
	case kind == 5:
		fmt.Fprintf(b, "get%sOf%d", stem, k%80)
	case kind == 6:
		fmt.Fprintf(b, "func %s%d(%s int) {}\n", stem, k%70, other)
	case kind == 7 && rare: // too long for a word
		b.WriteString(strings.Repeat(stem, 40))
	case kind == 8 && rare:
		b.WriteString("\u212Aey" + stem + " mi\u017Fs" + stem)
	case kind == 9 && rare: // data
		for range 300 {
			fmt.Fprintf(b, "%016x%016x ", rnd.Uint64(), rnd.Uint64())
		}
		b.WriteString(stem + " " + stem + "9")
	case kind == 10 && rare:
		b.WriteString(strings.Repeat(".", rnd.IntN(5000)))
	default:
		fmt.Fprintf(b, "%s%s%d", other, stem, k%90)
	}
	b.WriteString([]string{" ", "\n", "", ".", "é", "("}[rnd.IntN(6)])
}

// partsCorpus has words with parts, about as many of some as have them listed.
func partsCorpus(rnd *rand.Rand) *indextest.Corpus {
	pick := func(from ...string) string { return from[rnd.IntN(len(from))] }
	languages := map[string]string{".go": "Go", ".py": "Python", ".c": "C"}
	c := &indextest.Corpus{}
	for r := range 3 {
		repo := indextest.Repo{Name: fmt.Sprintf("r%d", r), Branches: []string{"main", "next"}}
		for i := range 12 {
			var b strings.Builder
			n := rnd.IntN(400)
			if rnd.IntN(3) == 0 {
				n = 63 + rnd.IntN(3)
			}
			for k := range n {
				partWord(&b, rnd, k)
			}
			path := fmt.Sprintf("%s/%02d%s", pick("a", "tests", "field", "ana"), i, pick(".go", ".py", ".c", ".txt", "banana.go"))
			repo.Documents = append(repo.Documents, indextest.Document{Path: path, Content: []byte(b.String()), Branches: []string{pick("main", "next")}, Language: languages[filepath.Ext(path)]})
		}
		slices.SortFunc(repo.Documents, func(a, b indextest.Document) int { return strings.Compare(a.Path, b.Path) })
		c.Repos = append(c.Repos, repo)
	}
	return c
}

// TestPartsOfWords searches for parts of words, and for texts that are nearly one, in a shard that was built and in one that was merged: what is found
// is what brute force finds, and the best are the first of all.
func TestPartsOfWords(t *testing.T) {
	texts := []string{
		"ana", "banana", "aaa", "aaaa", "key", "miss", "c:field", "fields", "http", "HTTP", "case:yes http", "case:yes HTTP", "https", "sixteenletterpar", "seventeenletters", "long", "abc",
		"sym:field", "sym:ana", "sym:aaa", "sym:http", "sym:key", "field key", "ana banana", "key miss long", "field -key", "field or sixteenletterpar", "(ana or key) miss", "-(field miss) ana", "f:ana ana", "f:tests field long",
		"/fie?ld/", "/(ana|key)/", `/\bana\b/`, "field lang:go", "ana b:next", "kk", "ielda", "iss", "K\u017F", "mi\u017Fs", "\u212Aey", `"field ana"`, "r:r1 field miss", "type:filename field",
	}
	var queries []indextest.Query
	for i, text := range texts {
		queries = append(queries, indextest.Query{Text: text, Kind: "part", Number: i})
	}
	for seed := range testrun.Rounds[uint64](2, 30) {
		rnd := rand.New(rand.NewPCG(seed, 63))
		c := partsCorpus(rnd)
		for _, s := range []*search.Shard{openShard(t, buildShard(t, c)), mergedShard(t, c, rnd)} {
			indextest.Check(t, c, append(indextest.Queries(c, seed, 60), queries...), engine(s))
			for _, text := range texts {
				q, opts := prepare(t, parse(t, text)), search.Options{MaxFiles: 1 + rnd.IntN(30), MaxMatchesPerFile: 1 + rnd.IntN(20)}
				if rnd.IntN(3) == 0 {
					opts.Repos = func(repo int) bool { return repo != numberOf(c, "r1") }
				}
				if rnd.IntN(3) == 0 {
					opts = search.WithHelpers(opts, 2)
				}
				want := run(t, s, q, opts)
				opts.Mode = search.TopK
				if got := run(t, s, q, opts); !sameFiles(got.Files, want.Files) {
					t.Fatalf("seed %d, %s: %+v\nwant %+v", seed, text, got.Files, want.Files)
				}
			}
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}
