package regex

import (
	"regexp/syntax"
	"slices"
	"unicode/utf8"

	finder "github.com/trawl-search/trawl/index/literal"
)

// Bounds on what is known of the first bytes of matches.
const (
	maxPrefix = 16
	maxPlaces = 256 // in the program, reached by as many bytes
)

// byteSet is a set of bytes.
type byteSet [256]bool

// frequency returns how many in 10,000 bytes of source code are in the set.
func (s *byteSet) frequency() (sum int) {
	for b, in := range s {
		if in {
			sum += finder.Frequency(byte(b))
		}
	}
	return sum
}

// prefix finds where matches may begin, by the sets that their first bytes are in. It moves through
// the text like Boyer and Moore's search ("A fast string searching algorithm", 1977), with sets in
// place of letters.
type prefix struct {
	// shifts give, for a byte that a match has at an offset, the distance to the next possible
	// start of a match; 0 if one may begin here.
	shifts [][256]uint8
}

// Conditions for a prefix to pay: how far each look moves the search on average, and how frequent
// the rarest of the sets may be, in 10,000.
const (
	leastShift   = 15_000
	mostFrequent = 5_500
)

// newPrefix returns ok = false if the search would hardly be faster than an automaton.
func newPrefix(sets []byteSet) (p *prefix, ok bool) {
	if len(sets) < 2 {
		return nil, false
	}
	p = &prefix{shifts: make([][256]uint8, len(sets))}
	rarest := 10_000
	var last [256]uint8 // last offset at which a match may have a byte, plus 1; 0 if there is none
	for at := range sets {
		rarest = min(rarest, sets[at].frequency())
		for b, in := range &sets[at] {
			if in {
				last[b] = uint8(at + 1)
			}
			p.shifts[at][b] = uint8(at+1) - last[b]
		}
	}
	average := 0
	for b, shift := range p.shifts[len(sets)-1] {
		average += int(shift) * finder.Frequency(byte(b))
	}
	return p, average >= leastShift && rarest <= mostFrequent
}

// next returns the first place, at or after at, where a match can begin; -1 if there is none.
func (p *prefix) next(text []byte, at int) int {
	last := len(p.shifts) - 1
	shifts := &p.shifts[last]
	for end := at + last; end < len(text); {
		shift := shifts[text[end]]
		for before := last - 1; shift == 0; before-- {
			if before < 0 {
				return end - last
			}
			shift = p.shifts[before][text[end-last+before]]
		}
		end += int(shift)
	}
	return -1
}

// place is where a program can be after some bytes: at a node, once it has read some more bytes of
// a rune.
type place struct {
	node uint16
	more uint8
}

// firstSets returns the sets of bytes that matches have at their first offsets, at most up to the
// end of the shortest match. There are none if that may be empty. The sets may be too large, since
// empty-width operators are ignored.
func firstSets(p *program) (sets []byteSet) {
	places := []place{{node: p.start}}
	c := newClosure(p)
	for len(sets) < maxPrefix && len(places) <= maxPlaces {
		c.reset()
		var set byteSet
		var next []place
		for _, at := range places {
			if at.more > 0 {
				set.addRange(utf8.RuneSelf, 0xBF)
				next = append(next, place{at.node, at.more - 1})
			} else if c.add(at.node, ^syntax.EmptyOp(0)) {
				return sets
			}
		}
		for _, leaf := range c.leaves {
			next = p.firstBytes(&set, next, &p.nodes[leaf])
		}
		slices.SortFunc(next, func(a, b place) int { return int(a.node)<<8 + int(a.more) - int(b.node)<<8 - int(b.more) })
		sets, places = append(sets, set), slices.Compact(next)
	}
	return sets
}

// firstBytes adds the bytes with which the runes of a node begin, and where the program is after
// such a byte.
func (p *program) firstBytes(set *byteSet, next []place, n *node) []place {
	runes, c := &p.sets[n.set], p.classes
	ascii := false
	for b := range utf8.RuneSelf {
		if runes.has(c.ascii[b]) {
			set[b], ascii = true, true
		}
	}
	if ascii {
		next = append(next, place{n.out, 0})
	}
	for i, from := range c.from {
		if from < utf8.RuneSelf || !runes.has(c.of[i]) {
			continue
		}
		to := c.last(i)
		if from <= utf8.RuneError && utf8.RuneError <= to { // also invalid bytes
			set.addRange(utf8.RuneSelf, 0xFF)
			next = append(next, place{n.out, 0})
		}
		set.addRange(leadByte(from), leadByte(to))
		for size := runeLen(from); size <= runeLen(to); size++ {
			next = append(next, place{n.out, size - 1})
		}
	}
	return next
}

func (s *byteSet) addRange(from, to byte) {
	for b := int(from); b <= int(to); b++ {
		s[b] = true
	}
}

// last is the last rune of an interval.
func (c *classes) last(interval int) rune {
	if interval+1 < len(c.from) {
		return c.from[interval+1] - 1
	}
	return utf8.MaxRune
}

// runeLen returns the length in UTF-8 of runes from 0x80 on, and 3 for halves of surrogate pairs.
func runeLen(r rune) uint8 {
	switch {
	case r < 1<<11:
		return 2
	case r < 1<<16:
		return 3
	}
	return 4
}

func leadByte(r rune) byte {
	if 0xD800 <= r && r <= 0xDFFF {
		return 0xED // where halves of surrogate pairs would be
	}
	var buf [utf8.UTFMax]byte
	utf8.EncodeRune(buf[:], r)
	return buf[0]
}
