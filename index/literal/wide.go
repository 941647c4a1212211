package literal

import "bytes"

// Runes outside of ASCII that fold to k and s: the wide ones.
var (
	kelvin = []byte("\u212a")
	longS  = []byte("\u017f")
)

// search finds the leftmost match that starts in [from, to).
type search func(text []byte, from, to int) (start, end int, ok bool)

// findWide finds with fast, which ignores wide runes, and near these with slow, which does not. No
// match is longer than maxLen.
func findWide(text []byte, from, maxLen int, fast, slow search) (start, end int, ok bool) {
	start, end, ok = fast(text, from, len(text))
	for {
		limit := len(text)
		if ok {
			limit = min(limit, start+maxLen)
		}
		wide := indexWide(text, from, limit)
		if wide < 0 || ok && start <= wide-maxLen {
			return start, end, ok
		}
		// Matches with the rune start here, and earlier ones have been found.
		if s, e, ok := slow(text, max(from, wide-maxLen+1), wide+1); ok {
			return s, e, true
		}
		from = wide + len(longS) // or within the other one, where nothing starts
		if ok && start < from {
			start, end, ok = fast(text, from, len(text))
		}
	}
}

// indexWide returns the first place of a wide rune in [from, to); -1 if there is none.
func indexWide(text []byte, from, to int) int {
	for size := firstWindow; from < to; from, size = from+size, min(2*size, lastWindow) {
		end := min(from+size, to)
		window := text[from:min(end+len(kelvin)-1, len(text))]
		at := bytes.Index(window, kelvin)
		if at >= 0 {
			window = window[:at+len(longS)-1]
		}
		if i := bytes.Index(window, longS); i >= 0 {
			at = i
		}
		if at >= 0 {
			return from + at
		}
	}
	return -1
}
