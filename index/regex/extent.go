package regex

import (
	"regexp/syntax"
	"slices"
)

// Extent reports how far matches can reach over the lines before and after a place. It is not safe
// for concurrent use.
type Extent struct{ before, after inside }

// NewExtent returns ok = false for matchers whose matches may continue anywhere.
func NewExtent(m Matcher) (e *Extent, ok bool) {
	a, ok := m.(*automata)
	if !ok {
		return nil, false
	}
	before, after := a.parts()
	return &Extent{before: newInside(before, a.memory), after: newInside(after, a.memory)}, true
}

// Reset starts over at another place.
func (e *Extent) Reset() { e.before.begun, e.after.begun = false, false }

// Before reports whether a match can begin before a line, with its newline, and extend past all
// lines since Reset. Lines go from the last one backwards.
func (e *Extent) Before(line []byte) bool {
	c := e.before.program.classes
	for end := len(line); end > 0; {
		class, size := c.readLast(line[:end])
		if !e.before.step(class) {
			return false
		}
		end -= size
	}
	return true
}

// After reports whether a match can begin before all lines since Reset and end after this one,
// which begins with its newline. Lines go from the first one forwards.
func (e *Extent) After(line []byte) bool {
	c := e.after.program.classes
	for len(line) > 0 {
		class, size := c.read(line)
		if !e.after.step(class) {
			return false
		}
		line = line[size:]
	}
	return true
}

// inside is the automaton of all parts of matches.
type inside struct {
	*dfa
	begun bool
	state uint32
	lost  bool // the automaton does not pay
}

func newInside(p *program, memory *Memory) inside { return inside{dfa: newDFA(p, false, memory)} }

// step reads a rune. It returns false if no part of a match has the runes read so far.
func (i *inside) step(class uint8) bool {
	if i.lost {
		return true // unknown, so possible
	}
	if !i.begun {
		i.begun, i.state = true, i.start(other, false)
	}
	if i.state&dead != 0 {
		return false
	}
	row := i.state & rowMask
	i.state = i.rows[row+uint32(class)]
	i.gained++
	if i.state == unmade {
		var ok bool
		i.state, ok = i.next(row, class, 0)
		i.lost = !ok
	}
	return i.lost || i.state&dead == 0
}

// inside returns the program of all parts of what a program matches. Empty-width operators hold
// everywhere in it.
func (p *program) inside() *program {
	q := &program{letters: p.letters, nodes: slices.Clone(p.nodes), reverse: true}
	var all []uint16
	for i := range q.nodes {
		switch n := &q.nodes[i]; n.op {
		case opRune:
			all = append(all, uint16(i))
		case opLook:
			*n = node{outs: []uint16{n.out}}
		case opMatch:
			*n = node{}
		}
	}
	q.start = uint16(len(q.nodes))
	q.nodes = append(q.nodes, node{outs: all})
	return q
}

// Reach says which part of a text decides the matches that contain a literal
// that every match has (Analyze), so that the rest need not be read.
type Reach struct {
	// Whole says that all of the text may decide.
	Whole bool
	// Lines says that only whole lines give the same matches as the text.
	Lines bool
	// Bytes is how far a match can reach on either side of the literal. With
	// Lines, 0 means within the lines of the literal.
	Bytes int
	// Open says, with Lines, that there is no such bound: an Extent finds how
	// far matches continue in a text.
	Open bool
}

// maxReach is the farthest useful reach: much less than most texts.
const maxReach = 1 << 12

// ReachOf returns the reach of the matches that NewMatcher finds.
func ReachOf(tree *syntax.Regexp, caseSensitive bool) Reach {
	most, bounded := MaxLen(tree, caseSensitive)
	if literals, ok := LiteralsOf(tree, caseSensitive); ok && len(literals) == 1 {
		return Reach{}
	} else if ok {
		return Reach{Bytes: most}
	}
	switch {
	case SeesTextEnds(tree):
		return Reach{Whole: true}
	case !CrossesLines(tree):
		return Reach{Lines: true}
	case bounded && most <= maxReach:
		return Reach{Lines: true, Bytes: most}
	}
	return Reach{Lines: true, Open: true}
}
