package literal

import "unicode/utf8"

// Set finds the leftmost of a few patterns, and of those with the same start the one that is listed first, like an alternation of
// literals. Its time is the sum of theirs. It is immutable and safe for concurrent use.
type Set []*Finder

// Find returns the leftmost match that starts at or after from. The finders search the same windows in turn, so that one that finds
// nothing does not search far beyond what another finds.
func (s Set) Find(text []byte, from int) (start, end int, ok bool) {
	from = max(from, 0)
	for size := firstWindow; from < len(text) && !ok; from, size = from+size, min(2*size, lastWindow) {
		before := from + size // matches start before it
		for _, f := range s {
			window := text[:min(before+f.maxLen+utf8.UTFMax, len(text))] // does not cut a rune of a match
			if first, last, found := f.Find(window, from); found && first < before {
				start, end, ok, before = first, last, true, first
			}
		}
	}
	return start, end, ok
}
