package literal

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// byFrequency orders the bytes of source code from frequent to rare, as
// counted, without case, over the Go standard library. What is not in it is
// rarer still.
const byFrequency = " et\tran0si\nox,clfdupm.1/g():bh2\"v=y_4{}36\\8wk597[]*-!zq&+<%;|j'>`#^$?@~"

// chooseAnchor returns the index of the rarest rune whose only other case is
// one ASCII letter, so that two byte searches find every place of it; -1 when
// there is none.
func chooseAnchor(runes []rune) int {
	best, bestRank := -1, -1
	for i, r := range runes {
		if r >= utf8.RuneSelf || !asciiOrbit(r) {
			continue
		}
		rank := strings.IndexRune(byFrequency, unicode.ToLower(r))
		if rank < 0 {
			rank = len(byFrequency)
		}
		if rank > bestRank {
			best, bestRank = i, rank
		}
	}
	return best
}

// asciiOrbit reports whether r has ASCII cases only: all of ASCII but k and s,
// which U+212A and U+017F fold to.
func asciiOrbit(r rune) bool {
	ascii := true
	orbit(r, func(o rune) { ascii = ascii && o < utf8.RuneSelf })
	return ascii
}
