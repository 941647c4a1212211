package literal

import (
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/ngram"
)

// cases are the runes that are equal without case. The last one is repeated to fill the array.
type cases [4]rune

func casesOf(r rune) (c cases) {
	n := 0
	ngram.Orbit(r, func(o rune) {
		c[n] = o
		n++
	})
	for ; n < len(c); n++ {
		c[n] = c[n-1]
	}
	return c
}

func (c *cases) has(r rune) bool { return r == c[0] || r == c[1] || r == c[2] || r == c[3] }

// matchForward compares runes with the text that starts at i, and returns where they end. An
// invalid byte of the text equals no rune, since patterns are valid UTF-8.
func matchForward(text []byte, i int, runes []cases) (end int, ok bool) {
	for at := range runes {
		if i >= len(text) {
			return 0, false
		}
		got, size := rune(text[i]), 1
		if got >= utf8.RuneSelf {
			got, size = utf8.DecodeRune(text[i:])
		}
		if !runes[at].has(got) || got == utf8.RuneError && size == 1 {
			return 0, false
		}
		i += size
	}
	return i, true
}

// matchBackward compares runes with the text that ends at the end of text, and returns where they
// start.
func matchBackward(text []byte, runes []cases) (start int, ok bool) {
	i := len(text)
	for at := len(runes) - 1; at >= 0; at-- {
		if i == 0 {
			return 0, false
		}
		got, size := rune(text[i-1]), 1
		if got >= utf8.RuneSelf {
			got, size = utf8.DecodeLastRune(text[:i])
		}
		if !runes[at].has(got) || got == utf8.RuneError && size == 1 {
			return 0, false
		}
		i -= size
	}
	return i, true
}

// asciiOrbit reports whether r has only ASCII cases: all of ASCII except k and s, to which U+212A
// and U+017F fold.
func asciiOrbit(r rune) bool {
	ascii := true
	ngram.Orbit(r, func(o rune) { ascii = ascii && o < utf8.RuneSelf })
	return ascii
}

// MaxLen returns the length in bytes of the longest text that matches a pattern.
func MaxLen(pattern string, caseSensitive bool) (n int) {
	if caseSensitive {
		return len(pattern)
	}
	for _, r := range pattern {
		widest := 0
		ngram.Orbit(r, func(o rune) { widest = max(widest, utf8.RuneLen(o)) })
		n += widest
	}
	return n
}
