package grep

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// machine matches an expression as ripgrep does, where Go's engines do not: words are those of Unicode, and a
// byte that is not UTF-8 matches nothing. It is a Pike machine: all alternatives step through the line
// together, in the order of preference. It is slow, and sees few lines.
type machine struct{ prog *syntax.Prog }

// newMachine compiles an expression whose first group is the match.
func newMachine(source string) (*machine, error) {
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("parsing %q: %w", source, err)
	}
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, fmt.Errorf("compiling %q: %w", source, err)
	}
	return &machine{prog: prog}, nil
}

// thread is a place in the program, with the part of the group found so far.
type thread struct {
	pc         uint32
	start, end int
}

// run is one search of a line.
type run struct {
	prog    *syntax.Prog
	line    []byte
	threads []thread // in the order of preference
	seen    []int    // by instruction: the place in the line at which it was added, from 1
}

// find returns the group of the leftmost match that begins at from or later.
func (m *machine) find(line []byte, from int) (start, end int, ok bool) {
	r := run{prog: m.prog, line: line, seen: make([]int, len(m.prog.Inst))}
	var current []thread
	for at := from; ; {
		if !ok { // once there is a match, later beginnings do not matter
			r.threads = current
			r.add(thread{pc: uint32(m.prog.Start), start: -1, end: -1}, at)
			current = r.threads
		}
		if len(current) == 0 && ok {
			return start, end, true
		}
		c, size := rune(-1), 1
		if at < len(line) {
			if c, size = utf8.DecodeRune(line[at:]); c == utf8.RuneError && size == 1 {
				c = -1
			}
		}
		r.threads = nil
		for _, t := range current {
			inst := &m.prog.Inst[t.pc]
			if inst.Op == syntax.InstMatch {
				start, end, ok = t.start, t.end, true
				break
			}
			if c >= 0 && inst.MatchRune(c) {
				t.pc = inst.Out
				r.add(t, at+size)
			}
		}
		current = r.threads
		if at >= len(line) {
			return start, end, ok
		}
		at += size
	}
}

// add adds a thread, or those that it reaches without a rune, at a place in the line.
func (r *run) add(t thread, at int) {
	if r.seen[t.pc] == at+1 {
		return
	}
	r.seen[t.pc] = at + 1
	inst := &r.prog.Inst[t.pc]
	switch inst.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		r.add(thread{inst.Out, t.start, t.end}, at)
		r.add(thread{inst.Arg, t.start, t.end}, at)
	case syntax.InstNop:
		r.add(thread{inst.Out, t.start, t.end}, at)
	case syntax.InstCapture:
		switch inst.Arg {
		case 2:
			t.start = at
		case 3:
			t.end = at
		}
		r.add(thread{inst.Out, t.start, t.end}, at)
	case syntax.InstEmptyWidth:
		if r.holds(syntax.EmptyOp(inst.Arg), at) {
			r.add(thread{inst.Out, t.start, t.end}, at)
		}
	case syntax.InstFail:
	default:
		r.threads = append(r.threads, t)
	}
}

// holds reports whether the conditions hold at a place in the line.
func (r *run) holds(op syntax.EmptyOp, at int) bool {
	before, _ := utf8.DecodeLastRune(r.line[:at])
	after, _ := utf8.DecodeRune(r.line[at:])
	boundary := at > 0 && isWord(before) != (at < len(r.line) && isWord(after)) || at == 0 && at < len(r.line) && isWord(after)
	var has syntax.EmptyOp
	if at == 0 {
		has |= syntax.EmptyBeginLine | syntax.EmptyBeginText
	}
	if at == len(r.line) {
		has |= syntax.EmptyEndLine | syntax.EmptyEndText
	}
	if boundary {
		has |= syntax.EmptyWordBoundary
	} else {
		has |= syntax.EmptyNoWordBoundary
	}
	return op&^has == 0
}

var joiners = []rune{0x200C, 0x200D}

// isWord reports whether r is a word character of Unicode; see classes.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return isWordRune(r, false)
	}
	return unicode.In(r, unicode.L, unicode.Nl, unicode.Other_Alphabetic, unicode.M, unicode.Nd, unicode.Pc) || slices.Contains(joiners, r)
}
