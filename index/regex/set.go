package regex

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxSet is the most words that are kept apart: each becomes a lookup.
	maxSet = 16
	// maxSetBytes bounds their total length.
	maxSetBytes = 64 << 10
	// minLookup is the fewest bytes, once folded, that an n-gram index can look up.
	minLookup = 3
)

// set is a set of words. If it contains the empty word, nothing is known. If it has no words, there
// is no match at all.
type set []Literal

// empty is the set of the empty word.
var empty = set{{Text: "", CaseSensitive: true}}

// product returns each word of a followed by each of b; ok is false if there are too many.
func product(a, b set) (words set, ok bool) {
	if len(a)*len(b) > maxSet || a.bytes()*len(b)+b.bytes()*len(a) > maxSetBytes {
		return nil, false
	}
	words = make(set, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			words = append(words, x.then(y))
		}
	}
	return words.normal(), true
}

func (s set) bytes() int {
	n := 0
	for _, w := range s {
		n += len(w.Text)
	}
	return n
}

// union returns the words of all sets; ok is false if there are too many.
func union(sets []set) (words set, ok bool) {
	words = slices.Concat(sets...).normal()
	return words, len(words) <= maxSet && words.bytes() <= maxSetBytes
}

// normal sorts the words and drops duplicates.
func (s set) normal() set {
	slices.SortFunc(s, func(a, b Literal) int {
		if c := cmp.Compare(a.Text, b.Text); c != 0 || a.CaseSensitive == b.CaseSensitive {
			return c
		}
		if b.CaseSensitive { // the less specific one first: it stays
			return -1
		}
		return 1
	})
	return slices.CompactFunc(s, func(a, b Literal) bool { return a.Text == b.Text })
}

// shortened returns the first n runes of each word, or the last n if fromEnd.
func (s set) shortened(n int, fromEnd bool) set {
	short := make(set, len(s))
	for i, w := range s {
		runes := []rune(w.Text)
		from, to := 0, min(n, len(runes))
		if fromEnd {
			from, to = max(len(runes)-n, 0), len(runes)
		}
		short[i] = Literal{string(runes[from:to]), w.CaseSensitive}
	}
	return short.normal()
}

// lengthsTried are the lengths to which words are cut to make a set small enough.
var lengthsTried = []int{8, 4, 3, 2, 1}

// ends returns the union of the sets, with shorter words if it would be too large. The words are
// beginnings, or endings if fromEnd.
func ends(sets []set, fromEnd bool) set {
	words, ok := union(sets)
	for _, n := range lengthsTried {
		if ok {
			return words
		}
		words = words.shortened(n, fromEnd)
		ok = len(words) <= maxSet
	}
	if ok {
		return words
	}
	return empty
}

// overlap joins the ends of the words of a to b, as long as they fit.
func overlap(a, b set) (set, bool) {
	for _, n := range lengthsTried {
		if words, ok := product(a.shortened(n, true), b); ok {
			return words, true
		}
	}
	return nil, false
}

// needs returns what a text must contain that has some word of the set.
func (s set) needs() Needs {
	for _, w := range s {
		if len(w.folded()) < minLookup {
			return All{}
		}
	}
	if core, ok := s.core(); ok {
		return core
	}
	parts := make([]Needs, len(s))
	for i, w := range s {
		parts[i] = w
	}
	return or(parts)
}

const (
	manyWords  = 4  // with this many words, a text that they share may be better
	longCore   = 5  // if it has this many bytes
	smallGain  = 2  // and they have at most this many more
	longestTry = 64 // not tried on longer words
)

// core returns the text that all words share, if looking up the words instead would cost more than
// it would exclude: static\s has five words that are hardly rarer than static.
func (s set) core() (Literal, bool) {
	if len(s) < manyWords {
		return Literal{}, false
	}
	shortest := slices.MinFunc(s, func(a, b Literal) int { return cmp.Compare(len(a.Text), len(b.Text)) })
	longest := slices.MaxFunc(s, func(a, b Literal) int { return cmp.Compare(len(a.Text), len(b.Text)) })
	least := max(longCore, len(longest.Text)-smallGain)
	if len(shortest.Text) > longestTry || slices.ContainsFunc(s, func(w Literal) bool { return w.CaseSensitive != shortest.CaseSensitive }) {
		return Literal{}, false
	}
	for n := len(shortest.Text); n >= least; n-- {
		for i := 0; i+n <= len(shortest.Text); i++ {
			text := shortest.Text[i : i+n]
			if utf8.ValidString(text) && each(s, func(w Literal) bool { return strings.Contains(w.Text, text) }) {
				return Literal{text, shortest.CaseSensitive || uncased(text)}, true
			}
		}
	}
	return Literal{}, false
}
