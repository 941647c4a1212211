package search_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/testrun"
)

// phraseText returns text with words of all frequencies, in both cases, and with opaque
// places.
func phraseText(rng *rand.Rand, size int) string {
	vocabulary := []string{"the", "a", "if", "int", "Static", "static", "return", "THE", "x", "of"}
	for i := range 400 {
		vocabulary = append(vocabulary, fmt.Sprintf("%s_%c%d", vocabulary[i%10], 'a'+i%26, i), fmt.Sprintf("w%dif", i), fmt.Sprintf("an%d", i))
	}
	between := []string{" ", " ", " ", ", ", " (", ")", ".", "\n", "  ", " *", "; ", "日本", "\xff"}
	var b strings.Builder
	for b.Len() < size {
		switch rng.IntN(1500) {
		case 0:
			b.WriteString(strings.Repeat("long", 40))
		case 1:
			b.WriteString("the \u212A")
		default:
			b.WriteString(vocabulary[min(rng.IntN(len(vocabulary)), rng.IntN(len(vocabulary)), rng.IntN(len(vocabulary)))])
		}
		b.WriteString(between[rng.IntN(len(between))])
	}
	return b.String()
}

// TestPhrases compares the matches of phrases from anywhere in large texts, with and without
// case, with those that the standard library finds.
func TestPhrases(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 11))
	main, texts := []string{"main"}, map[string]string{}
	var documents []indextest.Document
	for i := range 6 {
		path := fmt.Sprintf("file%d", i)
		texts[path] = phraseText(rng, 200_000)
		documents = append(documents, indextest.Document{Path: path, Content: []byte(texts[path]), Branches: main})
	}
	s := openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: main, Documents: documents}}}))
	for range testrun.Rounds(60, 250) {
		text := texts[fmt.Sprintf("file%d", rng.IntN(len(texts)))]
		at := rng.IntN(len(text) - 100)
		phrase := strings.ToValidUTF8(text[at:at+4+rng.IntN(30)], "")
		if rng.IntN(20) == 0 {
			phrase = strings.ToValidUTF8(text[at:][:min(700, len(text)-at)], "")
		}
		sensitive := rng.IntN(2) == 0
		expression := regexp.QuoteMeta(phrase)
		if !sensitive {
			expression = "(?i)" + expression
			phrase = []func(string) string{strings.ToUpper, strings.ToLower}[rng.IntN(2)](phrase)
		}
		re, want := regexp.MustCompile(expression), 0
		for _, text := range texts {
			want += len(re.FindAllStringIndex(text, -1))
		}
		res, err := searchTree(s, &query.Substring{Pattern: phrase, CaseSensitive: sensitive, Scope: query.Content}, search.Options{MaxFiles: 10, MaxMatchesPerFile: 10})
		if err != nil || res.Stats.Matches != uint64(want) {
			t.Fatalf("seed %d: %q, case sensitive %t: %+v %v, want %d matches", seed, phrase, sensitive, res.Stats, err, want)
		}
	}
}

// beyondASCII returns a shard of many files that all have a text with letters beyond ASCII, and how many they are.
func beyondASCII(t *testing.T) (s *search.Shard, documents int) {
	t.Helper()
	main := []string{"main"}
	var all []indextest.Document
	for i := range 300 {
		text := fmt.Sprintf("%s an %d und Größe des Baums\n返回 %d\n", []string{"Die Größe", "die GRÖSSE", "eine Größe", "die grösse, größe"}[i%4], i, i)
		all = append(all, indextest.Document{Path: fmt.Sprintf("%c/file%d", 'a'+i%3, i), Content: []byte(text), Branches: main})
	}
	documents = len(all)
	all = append(all, indextest.Document{Path: "b/empty", Branches: main}) // its content has no superblock
	return openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: main, Documents: all}}})), documents
}

// TestPlacesOfCandidates: the n-grams of a text with letters beyond ASCII are looked up only where the rest of the query matches.
func TestPlacesOfCandidates(t *testing.T) {
	s, documents := beyondASCII(t)
	for text, most := range map[string]uint64{
		"c:返回 f:file7$": 1, "c:größe f:file7$": 1, "c:größe c:7 f:^a/": 40, `c:"größe des baums" f:/file1[0-9]$`: 10, "c:größe": uint64(documents), "(c:größe or c:返回) f:file7$": 1,
	} {
		r := run(t, s, prepare(t, parse(t, text)), search.Options{MaxFiles: 3, Explain: true})
		places := uint64(0)
		for _, n := range r.Explanation.Nodes {
			if len(n.Methods) == 1 && n.Methods[0] == search.ByNgramsAndText {
				places = max(places, n.Estimate)
			}
		}
		if r.Stats.FilesMatched == 0 || places == 0 || places > most {
			t.Errorf("%s: %d files, %d places are looked at, want at most %d", text, r.Stats.FilesMatched, places, most)
		}
	}
}

// TestTextInSeveralParts: a text that is looked up in few files for one part of a query is found in all files for another.
func TestTextInSeveralParts(t *testing.T) {
	s, documents := beyondASCII(t)
	third := documents / 3
	for text, want := range map[string]int{
		"c:größe": documents, "c:größe (f:empty or f:file295)": 1, "c:größe f:empty": 0, "(c:größe f:file7$) or (c:größe f:^b/)": third, "(c:größe f:^a/) or (c:größe f:^b/)": 2 * third, "c:größe (f:^a/ or c:größe)": documents,
		"(f:file7$ c:größe) or c:größe": documents, "f:^a/ -c:größe": 0, "(f:file7$ -c:返回) or c:返回": documents, "f:^a/ (c:größe or f:nothing)": third, "(c:größe f:nothing) or c:größe": documents,
	} {
		for _, mode := range []search.Mode{search.Exhaustive, search.TopK} {
			r := run(t, s, prepare(t, parse(t, text)), search.Options{Mode: mode, MaxFiles: documents, MaxMatchesPerFile: 9})
			if len(r.Files) != want {
				t.Errorf("%s, mode %d: %d files, want %d", text, mode, len(r.Files), want)
			}
		}
	}
}
