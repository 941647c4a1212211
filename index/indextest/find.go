package indextest

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"
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
func (t *text) folded() {
	t.once.Do(func() {
		t.small = smallLetters(t.bytes)
		t.wide = bytes.Contains(t.bytes, []byte("\u212A")) || bytes.Contains(t.bytes, []byte("\u017F"))
	})
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
// fold to each other. Looking for ASCII in a text of small letters saves most of the time.
func substring(pattern string, caseSensitive bool) finder {
	source := regexp.QuoteMeta(pattern)
	if !caseSensitive {
		source = "(?i)" + source
	}
	plain, what := expression(regexp.MustCompile(source)), []byte(pattern)
	if caseSensitive || strings.ContainsFunc(pattern, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return plain
	}
	what = smallLetters(what)
	return func(t *text) (ranges []Range, found bool) {
		if t.folded(); t.wide && bytes.ContainsAny(what, "ks") {
			return plain(t)
		}
		for from := 0; ; {
			i := bytes.Index(t.small[from:], what)
			if i < 0 {
				return ranges, ranges != nil
			}
			ranges = append(ranges, Range{from + i, from + i + len(what)})
			from += i + len(what)
		}
	}
}

// expression finds with the standard library.
func expression(re *regexp.Regexp) finder {
	return func(t *text) (ranges []Range, found bool) {
		all := re.FindAllIndex(t.bytes, -1)
		for _, loc := range all {
			if loc[0] < loc[1] {
				ranges = append(ranges, Range{loc[0], loc[1]})
			}
		}
		return ranges, all != nil
	}
}
