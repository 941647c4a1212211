package indextest

import (
	"regexp"
	"slices"
	"unicode"
	"unicode/utf8"
)

// finder gives the ranges of a text that are found, the leftmost first and
// without overlap, and whether anything is found at all: an empty match is
// found but is no range.
type finder func(text []byte) (ranges []Range, found bool)

func expression(re *regexp.Regexp) finder {
	return func(text []byte) ([]Range, bool) {
		var ranges []Range
		found := re.FindAllIndex(text, -1)
		for _, loc := range found {
			if loc[0] < loc[1] {
				ranges = append(ranges, Range{loc[0], loc[1]})
			}
		}
		return ranges, found != nil
	}
}

// substring looks for the pattern at every byte, compared by bytes or by runes
// that fold to each other.
func substring(pattern string, caseSensitive bool) finder {
	var wanted [][]rune // for each rune of the pattern, those that it matches
	for _, r := range pattern {
		if caseSensitive {
			wanted = append(wanted, []rune{r})
		} else {
			wanted = append(wanted, orbit(r))
		}
	}
	var first [256]bool // the bytes that a match can begin with
	for _, r := range wanted[0] {
		first[string(r)[0]] = true
	}
	return func(text []byte) (ranges []Range, found bool) {
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

// prefix tells whether text begins with the runes wanted, and with how many
// bytes. A byte that is not UTF-8 is like no rune.
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
