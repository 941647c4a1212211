package literal

import "unicode/utf8"

// Pattern is one literal of a Set: its text, and whether case counts.
type Pattern struct {
	Text          string
	CaseSensitive bool
}

// Bounds of a Set.
const (
	gramLength  = 3       // bytes that are hashed into one entry of the table
	tableSize   = 1 << 13 // two bytes each
	hit         = 1 << 15 // mark of an entry with a chain of patterns
	maxPrefix   = 255     // bytes of a pattern that the table knows
	noPattern   = hit - 1 // ends a chain
	shortestSet = gramLength
)

// Set finds the leftmost of several patterns, and of those with the same start the one that is listed
// first, like an alternation of literals. It is immutable and safe for concurrent use.
//
// The algorithm is that of Wu and Manber ("A fast algorithm for multi-pattern searching", 1994): for the
// last three bytes of a window, a table says how far the window can move before a pattern may begin in it.
// Letters are hashed without case.
type Set struct {
	patterns []Pattern
	runes    [][]cases // of the patterns without case
	maxLen   int

	// prefix is the length of the window. It covers the part of each pattern's beginning that has the same
	// length in every match, apart from the case of ASCII. If it is 0, that part is too short for the
	// table, and leads is used.
	prefix int
	table  *[tableSize]uint16
	chain  []uint16 // by pattern: the next one with the same gram
	leads  *[256]bool
	// wide is set if the prefix of a pattern has a k or s. Runes of other lengths fold to these, which the
	// table does not know.
	wide bool
	// finders are used for few patterns. Each is faster on its own than the table.
	finders []*Finder
}

// few is the most patterns for which each has a Finder.
const few = 4

// NewSet returns a Set of at least one and at most 1<<15 - 1 patterns. None may be empty.
func NewSet(patterns []Pattern) *Set {
	s := &Set{patterns: patterns, runes: make([][]cases, len(patterns)), prefix: maxPrefix, leads: new([256]bool)}
	if len(patterns) <= few {
		for _, p := range patterns {
			s.finders = append(s.finders, New(p.Text, p.CaseSensitive))
			s.maxLen = max(s.maxLen, MaxLen(p.Text, p.CaseSensitive))
		}
		return s
	}
	for i, p := range patterns {
		s.maxLen = max(s.maxLen, MaxLen(p.Text, p.CaseSensitive))
		if !p.CaseSensitive {
			s.runes[i] = allCases(p.Text)
		}
		stable, wide := stablePrefix(p)
		s.prefix, s.wide = min(s.prefix, stable), s.wide || wide
		p.leads(s.leads)
	}
	if s.prefix < shortestSet {
		s.prefix, s.wide = 0, false
		return s
	}
	s.fill()
	return s
}

// stablePrefix returns how many bytes at the start of a pattern correspond to as many bytes of every
// match. The exception are runes that fold to k or s, which wide reports.
func stablePrefix(p Pattern) (n int, wide bool) {
	if p.CaseSensitive {
		return len(p.Text), false
	}
	for i, r := range p.Text {
		switch {
		case i >= maxPrefix:
			return i, wide
		case r < utf8.RuneSelf:
			wide = wide || !asciiOrbit(r)
		case !caseless(r):
			return i, wide
		}
	}
	return len(p.Text), wide
}

// leads adds the bytes with which matches of the pattern can begin.
func (p Pattern) leads(leads *[256]bool) {
	if p.CaseSensitive {
		leads[p.Text[0]] = true
		return
	}
	var buf [utf8.UTFMax]byte
	first, _ := utf8.DecodeRuneInString(p.Text)
	orbit(first, func(r rune) {
		utf8.EncodeRune(buf[:], r)
		leads[buf[0]] = true
	})
}

// fill makes the table. Patterns are chained in their order.
func (s *Set) fill() {
	s.table, s.chain = new([tableSize]uint16), make([]uint16, len(s.patterns))
	for i := range s.table {
		s.table[i] = uint16(s.prefix - gramLength + 1)
	}
	for i := len(s.patterns) - 1; i >= 0; i-- {
		text := s.patterns[i].Text[:s.prefix]
		for end := gramLength; end < s.prefix; end++ {
			entry := &s.table[gram(text[end-3], text[end-2], text[end-1])]
			if *entry&hit == 0 {
				*entry = min(*entry, uint16(s.prefix-end))
			}
		}
		entry := &s.table[gram(text[s.prefix-3], text[s.prefix-2], text[s.prefix-1])]
		s.chain[i] = noPattern
		if *entry&hit != 0 {
			s.chain[i] = *entry &^ hit
		}
		*entry = hit | uint16(i)
	}
}

// gram hashes three bytes without the case of letters.
func gram(a, b, c byte) uint32 {
	return (uint32(a|0x20)<<6 ^ uint32(b|0x20)<<3 ^ uint32(c|0x20)) % tableSize
}

// Find returns the leftmost match that starts at or after from.
func (s *Set) Find(text []byte, from int) (start, end int, ok bool) {
	from = max(from, 0)
	switch {
	case s.finders != nil:
		return s.findFew(text, from)
	case s.prefix == 0:
		return s.findLead(text, from, len(text))
	case s.wide:
		return findWide(text, from, s.maxLen, s.findGram, s.findLead)
	}
	return s.findGram(text, from, len(text))
}

// findFew finds with the finders. They search the same windows in turn, so that one that finds nothing
// does not search far beyond what another finds.
func (s *Set) findFew(text []byte, from int) (start, end int, ok bool) {
	for size := firstWindow; from < len(text) && !ok; from, size = from+size, min(2*size, lastWindow) {
		before := from + size // matches start before it
		for _, f := range s.finders {
			window := text[:min(before+f.maxLen+utf8.UTFMax, len(text))] // does not cut a rune of a match
			if first, last, found := f.Find(window, from); found && first < before {
				start, end, ok, before = first, last, true, first
			}
		}
	}
	return start, end, ok
}

// findGram finds with the table.
func (s *Set) findGram(text []byte, from, _ int) (start, end int, ok bool) {
	table := s.table
	for at := from + s.prefix; at <= len(text); {
		entry := table[gram(text[at-3], text[at-2], text[at-1])]
		if entry&hit == 0 {
			at += int(entry)
			continue
		}
		if end := s.matchAt(text, at-s.prefix, entry&^hit); end >= 0 {
			return at - s.prefix, end, true
		}
		at++
	}
	return 0, 0, false
}

// matchAt returns the end of the first pattern of a chain that matches at a place; -1 if none does.
func (s *Set) matchAt(text []byte, start int, pattern uint16) (end int) {
	for ; pattern != noPattern; pattern = s.chain[pattern] {
		if end, ok := s.match(text, start, int(pattern)); ok {
			return end
		}
	}
	return -1
}

func (s *Set) match(text []byte, start, pattern int) (end int, ok bool) {
	if runes := s.runes[pattern]; runes != nil {
		return matchForward(text, start, runes)
	}
	end = start + len(s.patterns[pattern].Text)
	return end, end <= len(text) && string(text[start:end]) == s.patterns[pattern].Text
}

// findLead tries every pattern wherever one of them can begin, in [from, to).
func (s *Set) findLead(text []byte, from, to int) (start, end int, ok bool) {
	for at := from; at < to; at++ {
		if !s.leads[text[at]] {
			continue
		}
		for i := range s.patterns {
			if end, ok := s.match(text, at, i); ok {
				return at, end, true
			}
		}
	}
	return 0, 0, false
}
