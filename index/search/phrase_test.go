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
