package regex

import (
	"bytes"
	"regexp/syntax"
	"unicode/utf8"

	finder "github.com/trawl-search/trawl/index/literal"
)

// skip knows where a match cannot begin. Its zero value knows nothing.
type skip struct {
	useful bool

	// finder finds a literal of every match, at the same offset in each, or
	// anywhere within the line.
	finder *finder.Finder
	offset int
	inLine bool

	// first are the bytes with which matches begin, if they are few.
	first    *[256]bool
	fewFirst bool
}

// Lengths from which on a literal anywhere in the line is preferred to one at
// a known offset, and up to which first bytes are few.
const (
	shortLiteral = 3
	fewBytes     = 112
)

func newSkip(tree *syntax.Regexp, caseSensitive bool, p *program) skip {
	var s skip
	if s.first, s.useful = firstBytes(p); !s.useful {
		return skip{} // the empty text may match anywhere
	}
	count := 0
	for b := range byte(utf8.RuneSelf) {
		if s.first[b] {
			count++
		}
	}
	s.fewFirst = count <= fewBytes
	fixed, offset, ok := FixedLiteral(tree, caseSensitive)
	if len(fixed.Text) < shortLiteral && !CrossesLines(tree) {
		needs, err := Analyze(tree, caseSensitive)
		if lit := longest(needs); err == nil && len(lit.Text) > len(fixed.Text) {
			s.finder, s.inLine = finder.New(lit.Text, lit.CaseSensitive), true
			return s
		}
	}
	if ok {
		s.finder, s.offset = finder.New(fixed.Text, fixed.CaseSensitive), offset
	}
	s.useful = s.fewFirst || s.finder != nil
	return s
}

// longest is the longest literal that all matches hold; empty if there is none.
func longest(needs Needs) Literal {
	var best Literal
	switch n := needs.(type) {
	case Literal:
		best = n
	case And:
		for _, child := range n.Children {
			if lit, ok := child.(Literal); ok && len(lit.Text) > len(best.Text) {
				best = lit
			}
		}
	}
	return best
}

// firstBytes are those with which a match can begin; ok is false if it can be empty.
func firstBytes(p *program) (first *[256]bool, ok bool) {
	c := newClosure(p)
	c.reset()
	if c.add(p.start, ^syntax.EmptyOp(0)) {
		return nil, false
	}
	first = new([256]bool)
	for _, leaf := range c.leaves {
		set := &p.sets[p.nodes[leaf].set]
		for b := range byte(utf8.RuneSelf) {
			first[b] = first[b] || set.has(p.classes.ascii[b])
		}
		for i, from := range p.classes.from {
			if from >= utf8.RuneSelf && set.has(p.classes.of[i]) {
				p.classes.lead(i, first)
			}
		}
	}
	return first, true
}

// lead adds the bytes with which runes of an interval begin. Bytes that are no
// UTF-8 are all U+FFFD.
func (c *classes) lead(interval int, first *[256]bool) {
	from, to := c.from[interval], rune(utf8.MaxRune)
	if interval+1 < len(c.from) {
		to = c.from[interval+1] - 1
	}
	low, high := leadByte(from), leadByte(to)
	if from <= utf8.RuneError && utf8.RuneError <= to {
		low, high = utf8.RuneSelf, 0xFF
	}
	for b := int(low); b <= int(high); b++ {
		first[b] = true
	}
}

func leadByte(r rune) byte {
	if 0xD800 <= r && r <= 0xDFFF {
		return 0xED // where these halves of pairs would be
	}
	var buf [utf8.UTFMax]byte
	utf8.EncodeRune(buf[:], r)
	return buf[0]
}

// skipping is a skip at work on a text.
type skipping struct {
	*skip

	text  []byte
	found int // the literal begins here, and nowhere between where it was looked for and here
	begin int // no match that holds it there begins earlier
}

func (s *skip) at(text []byte) skipping { return skipping{s, text, -1, 0} }

// next is the first place, at or later, where a match can begin; -1 if there is none.
func (s *skipping) next(at int) int {
	if s.finder != nil {
		if at+s.offset > s.found && !s.find(at) {
			return -1
		}
		at = max(at, s.begin)
	}
	if !s.fewFirst {
		return at
	}
	for i, b := range s.text[at:] {
		if s.first[b] {
			return at + i
		}
	}
	return -1
}

// find looks for the literal of a match that begins at a place or later.
func (s *skipping) find(at int) (ok bool) {
	s.found, _, ok = s.finder.Find(s.text, at+s.offset)
	if !ok {
		return false
	}
	s.begin = s.found - s.offset
	if s.inLine {
		s.begin = at + 1 + bytes.LastIndexByte(s.text[at:s.found], '\n')
	}
	return true
}
