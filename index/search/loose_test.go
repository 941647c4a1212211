package search_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/testrun"
)

// looseQueries returns match:any queries with up to that many words, some from the corpus and some that no document has.
func looseQueries(c *indextest.Corpus, rng *rand.Rand, n, words int) (queries []indextest.Query) {
	texts := c.Repos[rng.IntN(len(c.Repos))].Documents
	if len(texts) == 0 {
		return nil
	}
	for i := range n {
		text := "match:any"
		for range 1 + rng.IntN(words) {
			var word string
			if fields := strings.FieldsFunc(string(texts[rng.IntN(len(texts))].Content), func(r rune) bool { return r > 'z' || r < '0' }); len(fields) > 0 {
				word = fields[rng.IntN(len(fields))]
			}
			if word == "" || rng.IntN(8) == 0 {
				word = fmt.Sprintf("nobody%d", rng.IntN(100))
			}
			if content := texts[rng.IntN(len(texts))].Content; len(content) > 8 && rng.IntN(6) == 0 { // with spaces, punctuation and other letters
				at := rng.IntN(len(content) - 8)
				if part := string(content[at : at+3+rng.IntN(6)]); utf8.ValidString(part) && !strings.ContainsAny(part, "\n\r\x00") {
					word = part
				}
			}
			text += " " + query.Quote(expressionAround(word, rng))
		}
		text += []string{"", "", " -f:a", " lang:Go", " c:e"}[rng.IntN(5)]
		queries = append(queries, indextest.Query{Text: text, Kind: "any", Number: i})
	}
	return queries
}

// expressionAround returns, in one of four calls, an expression that the word begins, ends or may be left out of; otherwise the word alone.
func expressionAround(word string, rng *rand.Rand) string {
	forms := [...]string{`%s.`, `%s.*[ei]`, `\b%s\b`, `^\s*%s`, `%s|nobody`, `(%s)?`, `\w%s`, `[^x]{2}%s$`}
	word = regexp.QuoteMeta(word)
	if rng.IntN(4) == 0 {
		return fmt.Sprintf(forms[rng.IntN(len(forms))], word)
	}
	return word
}

// TestAny compares match:any results and their scores with the oracle, and the best with the beginning of the whole answer: with floors and
// pages, in one goroutine and in several.
func TestAny(t *testing.T) {
	for seed := range testrun.Rounds[uint64](2, 12) {
		rng := rand.New(rand.NewPCG(seed, 10))
		for i, c := range []*indextest.Corpus{someTests(indextest.Random(seed)), scatteredWords(seed)} {
			s := openShard(t, buildShard(t, c))
			queries := looseQueries(c, rng, testrun.Rounds(6, 12), 1+rng.IntN(30))
			indextest.Check(t, c, queries, engine(s))
			for _, q := range queries {
				ready := prepareOwn(t, q.Text)
				for helpers := range 3 {
					opts := search.Options{MaxFiles: 1 + rng.IntN(12), MaxMatchesPerFile: 5, After: somewhere(s, ready, rng)}
					whole := run(t, s, ready, opts)
					opts.Mode = search.TopK
					if n := len(whole.Files); n == opts.MaxFiles && i == 0 {
						key := whole.Files[n-1].Key()
						opts.Floor = &key
					}
					got := run(t, s, ready, search.WithHelpers(opts, helpers))
					if !sameFiles(got.Files, whole.Files) {
						t.Fatalf("seed %d, %s, best %d after %v, %d helpers:\n%v\nwant\n%v", seed, q.Text, opts.MaxFiles, opts.After, helpers, got.Files, whole.Files)
					}
					if got.Stats.Matches > whole.Stats.Matches || !got.Stats.CountsInexact && got.Stats.Matches < whole.Stats.Matches {
						t.Fatalf("seed %d, %s: counts %+v of %+v", seed, q.Text, got.Stats, whole.Stats)
					}
				}
			}
		}
	}
}

// TestAnyRanksRareWordsFirst: a file with the rare word comes before those that repeat a word of all files, and files list the words that
// they lack.
func TestAnyRanksRareWordsFirst(t *testing.T) {
	c := &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}}}}
	for i := range 100 {
		text := strings.Repeat("return the\n", 9) + fmt.Sprint(i)
		if i == 70 {
			text += "\nzanzibar\n"
		}
		c.Repos[0].Documents = append(c.Repos[0].Documents, indextest.Document{Path: fmt.Sprintf("%02d.go", i), Content: []byte(text), Branches: []string{"main"}})
	}
	c.Repos[0].Documents = append(c.Repos[0].Documents, indextest.Document{Path: "zz.go", Content: []byte("zanzibar"), Branches: []string{"main"}})
	s := openShard(t, buildShard(t, c))
	for _, mode := range []search.Mode{search.Exhaustive, search.TopK} {
		got := run(t, s, prepareOwn(t, "match:any return zan.ibar nobody.*this"), search.Options{MaxFiles: 3, Mode: mode, MaxMatchesPerFile: 1})
		var says []string
		for _, f := range got.Files {
			says = append(says, fmt.Sprintf("%s lacks %s", f.Path, f.MissingWords))
		}
		if want := "70.go lacks [nobody.*this], zz.go lacks [return nobody.*this], 00.go lacks [zan.ibar nobody.*this]"; strings.Join(says, ", ") != want {
			t.Errorf("mode %d: %s\nwant %s", mode, strings.Join(says, ", "), want)
		}
	}
}

// thousandOther has words with letters beyond ASCII. Forty of them are in one file each.
func thousandOther(t *testing.T) (*search.Shard, *search.Query) {
	t.Helper()
	c := manyFiles(2000)
	for i := range 40 {
		d := &c.Repos[0].Documents[i*50]
		d.Content = fmt.Appendf(d.Content, "naïve%d and dotted.name%d\n", i, i)
	}
	var text strings.Builder
	text.WriteString("match:any common")
	for i := range 495 {
		fmt.Fprintf(&text, ` naïve%d "dotted\\.name%d"`, i, i)
	}
	return openShard(t, buildShard(t, c)), prepareOwn(t, text.String())
}

// TestAnyOfOtherTexts repeats TestAnyOfAThousandWords for words with letters beyond ASCII and names with dots.
func TestAnyOfOtherTexts(t *testing.T) {
	s, q := thousandOther(t)
	got, err := s.Find(context.Background(), q, search.Options{Mode: search.TopK, MaxFiles: 10})
	if err != nil || len(got.Hits) != 10 || got.Stats.FilesConsidered > 60 || got.Stats.FilesMatched != 2000 {
		t.Fatalf("%d hits, %v, %+v", len(got.Hits), err, got.Stats)
	}
}

// TestAnyOfAThousandEndsInTime: the answer is complete or says that the deadline ended it, and the search does no work after that.
func TestAnyOfAThousandEndsInTime(t *testing.T) {
	s, q := thousandOther(t)
	for _, after := range []time.Duration{0, time.Millisecond, 200 * time.Millisecond} {
		ctx, stop := context.WithTimeout(context.Background(), after)
		got, err := s.Find(ctx, q, search.Options{MaxFiles: 10})
		stop()
		switch {
		case err != nil:
			t.Errorf("after %v: %v", after, err)
		case errors.Is(got.Incomplete, context.DeadlineExceeded):
			if after == 0 && got.Stats.FilesConsidered > 0 {
				t.Errorf("%d files were looked at without time", got.Stats.FilesConsidered)
			}
		case got.Incomplete != nil || got.Stats.FilesMatched != 2000 || after == 0:
			t.Errorf("after %v: %v, %+v", after, got.Incomplete, got.Stats)
		}
	}
}

// TestAnyOfAThousandWords: one of a thousand words is in every file and most are in none. The search looks at only about as many files as
// are wanted.
func TestAnyOfAThousandWords(t *testing.T) {
	c := manyFiles(2000)
	for i := range 40 {
		d := &c.Repos[0].Documents[i*50]
		d.Content = fmt.Appendf(d.Content, "rare%d\n", i)
	}
	s := openShard(t, buildShard(t, c))
	var text strings.Builder
	text.WriteString("match:any common")
	for i := range 990 {
		fmt.Fprintf(&text, " rare%d", i)
	}
	q := prepareOwn(t, text.String())
	got, err := s.Find(context.Background(), q, search.Options{Mode: search.TopK, MaxFiles: 10})
	if err != nil || len(got.Hits) != 10 || got.Stats.FilesConsidered > 60 || got.Stats.FilesMatched != 2000 {
		t.Fatalf("%d hits, %v, %+v", len(got.Hits), err, got.Stats)
	}
}
