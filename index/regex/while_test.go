package regex

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/internal/testrun"
)

// someText returns text of few letters, with long lines, runes of several bytes and
// invalid bytes.
func someText(size int) []byte {
	random := rand.New(rand.NewPCG(5, 6))
	var text strings.Builder
	for text.Len() < size {
		text.WriteString([]string{"a", "b", "x", " ", "ab", "ä", "\x80"}[random.IntN(7)])
		if random.IntN(10_000) == 0 {
			text.WriteString("\n")
		}
	}
	return []byte(text.String())
}

// TestRangesWhile: matches are the same whether or not goOn is called. A search that
// must stop ends soon, even if everything or nothing matches.
func TestRangesWhile(t *testing.T) {
	size := testrun.Rounds(16, 40) * lookEvery
	text := someText(size)
	for _, try := range []struct {
		expression string
		library    bool // forces the standard library
	}{
		{`[ab]+x`, false}, {`(?s)a.*b`, false}, {`a.*c`, false}, {`.`, false}, {`\A(?s).*x`, false}, {`[^q]+q`, false}, {`q*`, false},
		{`\bx\b`, false}, {`(?s)x.{900}.*b\z`, false}, {`(?P<word>x)`, false}, {`(?P<word>[ab]+x)`, false}, {`(?P<word>[^ä]+)`, false},
		{`[ab]+x`, true}, {`(?s)a.*c`, true}, {`\bx\b`, true}, {`[^q]{3}q`, true}, {`.`, true},
	} {
		tree := mustParse(t, try.expression)
		m, err := NewMatcher(tree, true)
		if try.library {
			m, err = newLibrary(tree, true)
		}
		if err != nil {
			t.Fatal(err)
		}
		type match struct{ start, end int }
		var want, got []match
		for start, end := range Ranges(m, text) {
			want = append(want, match{start, end})
		}
		asked := 0
		for start, end := range RangesWhile(m, text, 0, func() bool { asked++; return true }) {
			got = append(got, match{start, end})
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %d matches, want %d", try.expression, len(got), len(want))
		}
		if asked < size/lookEvery/2 {
			t.Errorf("%s: asked %d times in %d bytes", try.expression, asked, size)
		}
		left := 5
		got = nil
		for start, end := range RangesWhile(m, text, 0, func() bool { left--; return left > 0 }) {
			got = append(got, match{start, end})
		}
		if left < 0 || len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
			t.Errorf("%s: after the end it was asked %d times more, and found %d of %d", try.expression, -left, len(got), len(want))
		}
		if n := len(got); n > 0 && got[n-1].end > 10*lookEvery && want[0].end < 10*lookEvery {
			t.Errorf("%s: it went on to %d", try.expression, got[n-1].end)
		}
	}
}
