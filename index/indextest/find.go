package indextest

import (
	"bytes"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/symbols"
)

// text is a content or a path to search.
type text struct {
	bytes    []byte
	language string

	once sync.Once
	// small is bytes with ASCII capitals in lower case. wide says that it has runes beyond ASCII
	// that fold to k or s.
	small []byte
	wide  bool
}

// folded sets small and wide.
func (t *text) folded() *text {
	t.once.Do(func() {
		t.small = smallLetters(t.bytes)
		t.wide = bytes.Contains(t.bytes, []byte("\u212A")) || bytes.Contains(t.bytes, []byte("\u017F"))
	})
	return t
}

func smallLetters(b []byte) []byte {
	small := bytes.Clone(b)
	for i, c := range small {
		if 'A' <= c && c <= 'Z' {
			small[i] = c | 0x20
		}
	}
	return small
}

// finder returns the ranges found in a text, leftmost first and without overlap, and whether it
// found anything at all: an empty match counts as found but has no range.
type finder func(t *text) (ranges []Range, found bool)

// outsideNames excludes what another finder finds in, or partly in, the names of a content's
// symbols.
func outsideNames(f finder) finder {
	return func(t *text) (ranges []Range, found bool) {
		all, _ := f(t)
		names := symbols.For(t.language).Append(nil, t.bytes)
		for _, r := range all {
			if !slices.ContainsFunc(names, func(s symbols.Symbol) bool { return r.Start < int(s.End) && int(s.Start) < r.End }) {
				ranges = append(ranges, r)
			}
		}
		return ranges, ranges != nil
	}
}

// inNames applies another finder to the names of those symbols of a content that are of the kinds.
func inNames(f finder, kinds symbols.KindSet) finder {
	return func(t *text) (ranges []Range, found bool) {
		for _, s := range symbols.For(t.language).Append(nil, t.bytes) {
			if !kinds.Has(s.Kind) {
				continue
			}
			within, ok := f(&text{bytes: t.bytes[s.Start:s.End]})
			for _, r := range within {
				ranges = append(ranges, Range{int(s.Start) + r.Start, int(s.Start) + r.End})
			}
			found = found || ok
		}
		return ranges, found
	}
}

// substring looks for the pattern, which is UTF-8 without U+FFFD. It compares bytes, or runes that
// fold to each other.
func substring(pattern string, caseSensitive bool) finder {
	l := literal{pattern, caseSensitive}
	if !l.quick() {
		return byRunes(pattern, caseSensitive)
	}
	slow := byRunes(pattern, caseSensitive)
	return func(t *text) (ranges []Range, found bool) {
		where, what, ok := l.in(t)
		if !ok {
			return slow(t)
		}
		for from := 0; ; {
			i := bytes.Index(where[from:], what)
			if i < 0 {
				return ranges, ranges != nil
			}
			ranges = append(ranges, Range{from + i, from + i + len(what)})
			from += i + len(what)
		}
	}
}

// literal is a non-empty text to look for.
type literal struct {
	text          string
	caseSensitive bool
}

// quick reports whether comparing bytes is enough, at least in texts that are not wide.
func (l literal) quick() bool {
	return l.caseSensitive || strings.IndexFunc(l.text, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// in returns which bytes to look for, and in which text; ok is false if that is not enough for this
// text.
func (l literal) in(t *text) (where, what []byte, ok bool) {
	if l.caseSensitive {
		return t.bytes, []byte(l.text), true
	}
	what = smallLetters([]byte(l.text))
	t = t.folded()
	return t.small, what, !t.wide || !bytes.ContainsAny(what, "ks")
}

// next returns the next place where the literal is, or could be; the end of the text if there is
// none.
func (l literal) next(t *text, from int) int {
	where, what, ok := l.in(t)
	if !ok {
		return from
	}
	if i := bytes.Index(where[from:], what); i >= 0 {
		return from + i
	}
	return len(t.bytes)
}

// byRunes is substring by the simplest means: it compares at every byte.
func byRunes(pattern string, caseSensitive bool) finder {
	var wanted [][]rune // for each rune of the pattern, the runes that it matches
	for _, r := range pattern {
		if caseSensitive {
			wanted = append(wanted, []rune{r})
		} else {
			wanted = append(wanted, orbit(r))
		}
	}
	var first [256]bool // bytes with which a match can begin
	for _, r := range wanted[0] {
		first[string(r)[0]] = true
	}
	return func(t *text) (ranges []Range, found bool) {
		text := t.bytes
		for i := 0; i < len(text); i++ {
			if !first[text[i]] {
				continue
			}
			if n, ok := prefix(text[i:], wanted); ok {
				ranges = append(ranges, Range{i, i + n})
				i += n - 1
			}
		}
		return ranges, ranges != nil
	}
}

// prefix reports whether text begins with the wanted runes, and with how many bytes. An invalid
// byte equals no rune.
func prefix(text []byte, wanted [][]rune) (n int, ok bool) {
	for _, want := range wanted {
		r, size := utf8.DecodeRune(text[n:])
		if r == utf8.RuneError && size <= 1 || !slices.Contains(want, r) {
			return 0, false
		}
		n += size
	}
	return n, true
}

// orbit lists the runes that fold to r, r included.
func orbit(r rune) []rune {
	all := []rune{r}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		all = append(all, f)
	}
	return all
}
