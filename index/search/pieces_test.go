package search_test

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/index/search"
)

// largeText returns text without useful n-grams: five letters at random, in lines of which some are
// long.
func largeText(seed uint64, size int) []byte {
	rng := rand.New(rand.NewPCG(seed, 7))
	text := make([]byte, size)
	for i := range text {
		if text[i] = "ab x"[rng.IntN(4)]; rng.IntN(40) == 0 {
			text[i] = '\n'
		}
		if long := i / 80_000; long%2 == 1 && i%80_000 < 70_000 && text[i] == '\n' {
			text[i] = 'b'
		}
	}
	return text
}

func oneFile(t fataler, content []byte) *search.Shard {
	return openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{{
		Name: "r", Branches: []string{"main"},
		Documents: []indextest.Document{{Path: "large", Content: content, Branches: []string{"main"}}},
	}}}))
}

// wide replaces some letters by runes of several bytes and by invalid bytes.
func wide(text []byte) []byte {
	return []byte(strings.NewReplacer("a ", "ä€", "bb", "𝔟\xe2\x82", "xx", "x\x80\x80").Replace(string(text)))
}

// TestLargeFilesWithHelpers: a search of a large file in pieces finds the matches of the whole.
func TestLargeFilesWithHelpers(t *testing.T) {
	const seed = 3
	text := largeText(seed, 400_000)
	t.Run("ASCII", func(t *testing.T) { checkPieces(t, text) })
	t.Run("wide", func(t *testing.T) { checkPieces(t, wide(text)) })
}

func checkPieces(t *testing.T, text []byte) {
	s := oneFile(t, text)
	for _, expression := range []string{
		`a+b`, `^x`, `b$`, `[ab]{3,}`, `\b[ax]\b`, `^[ab ]*$`, `(a|b)+$`, `[ax]\s+[bx]`, `.*`, `x*`, `\A[ab x]`, `[ab x]\z`, `(?:x|$)`, `[^a]{9}`, `\Ba\B`,
		`[^a]{2,40}`, `(?s)b.{0,30}x`, `[^a]{0,3}?b`, `(?s).{5}$`, `(?s)^.{3}\b`, `(?s)(?:b.|x)?.\B`, `[ab][^x]{12}[^x]`,
	} {
		q := parse(t, `case:yes content:"`+strings.ReplaceAll(expression, `\`, `\\`)+`"`)
		var tree *query.Regexp
		query.Walk(q, func(q query.Q) bool {
			if r, ok := q.(*query.Regexp); ok {
				tree = r
			}
			return true
		})
		if tree == nil {
			t.Fatalf("%s is not an expression: %s", expression, q)
		}
		m, err := regex.NewMatcher(tree.Tree, tree.CaseSensitive)
		if err != nil {
			t.Fatal(err)
		}
		want := uint64(0)
		for range regex.Ranges(m, text) {
			want++
		}
		got := mustSearch(t, s, q, search.Options{MaxFiles: 1, MaxMatchesPerFile: 10}).Stats
		if got.Matches != want || got.FilesMatched != 1 {
			t.Errorf("%s: %d matches in %d files, want %d", expression, got.Matches, got.FilesMatched, want)
		}
	}
}

// looks is a context that counts the checks of whether it has ended, and ends after enough of them.
type looks struct {
	context.Context
	n, end int
}

func (l *looks) Err() error {
	if l.n++; l.n >= l.end {
		return context.Canceled
	}
	return nil
}

// TestClockIsLookedAtWithinAFile: a search whose time is over does not continue to the end of a
// large file.
func TestClockIsLookedAtWithinAFile(t *testing.T) {
	text := largeText(4, 1<<20)
	within, across := `content:"[a-x]{4}[c-w]"`, `content:"[^a]{4}[c-w]"`
	t.Run("within lines", func(t *testing.T) { checkLooks(t, text, within) })
	t.Run("across lines", func(t *testing.T) { checkLooks(t, text, across) })
	line := bytes.ReplaceAll(text, []byte("\n"), []byte("x"))
	t.Run("one line", func(t *testing.T) { checkLooks(t, line, within) })
	t.Run("anywhere", func(t *testing.T) { checkLooks(t, text, `content:"(?s)a.*q"`) })
	t.Run("from the start", func(t *testing.T) { checkLooks(t, text, `content:"(?s)\\A.*q"`) })
	t.Run("two letters", func(t *testing.T) { checkLooks(t, text, `a b`) })
	copy(text[len(text)/2:], "needle")
	copy(line[len(line)/2:], "needle")
	t.Run("on from a literal", func(t *testing.T) { checkLooks(t, text, `content:"(?s)needle.*q"`) })
	t.Run("on to a literal", func(t *testing.T) { checkLooks(t, text, `content:"(?s)q.*needle"`) })
	t.Run("from a literal in one line", func(t *testing.T) { checkLooks(t, line, `content:"needle.*q"`) })
}

func checkLooks(t *testing.T, text []byte, q string) {
	s := oneFile(t, text)
	ready := prepare(t, parse(t, q))
	all := &looks{Context: context.Background(), end: 1 << 30}
	if res, err := s.Search(all, ready, search.Options{MaxFiles: 1}); err != nil || res.Incomplete != nil {
		t.Fatalf("%v, %v", res, err)
	}
	if all.n < 8 {
		t.Errorf("the clock was looked at %d times in a file of 1 MiB", all.n)
	}
	some := &looks{Context: context.Background(), end: 5}
	res, err := s.Search(some, ready, search.Options{MaxFiles: 1})
	if err != nil || !errors.Is(res.Incomplete, context.Canceled) || some.n > 5 {
		t.Errorf("%v, %v after %d looks, want 5", res, err, some.n)
	}
	some = &looks{Context: context.Background(), end: 5}
	counted, err := s.Count(some, ready, search.Options{}, []search.Facet{search.ByRepo})
	if err != nil || !errors.Is(counted.Incomplete, context.Canceled) || some.n > 5 {
		t.Errorf("%v, %v after %d looks while counting, want 5", counted, err, some.n)
	}
}
