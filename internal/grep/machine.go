package grep

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// machine matches an expression as ripgrep does, where Go's engines do not: words are those of Unicode, and a
// byte that is not UTF-8 matches nothing. It is a Pike machine: all alternatives step through the text
// together, in the order of preference. It is slow, and sees few lines.
type machine struct {
	prog  *syntax.Prog
	whole int // the number of the group that is the match
	// groups says that the groups in a match are found too.
	groups bool
}

// newMachine compiles an expression in which the match is the group with the highest number, whole.
func newMachine(tree *syntax.Regexp, whole int) (*machine, error) {
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return nil, fmt.Errorf("compiling %q: %w", tree, err)
	}
	return &machine{prog: prog, whole: whole}, nil
}

// thread is a place in the program, with the part of the match found so far.
type thread struct {
	pc         uint32
	start, end int
	groups     []int // where groups begin and end, in the order of their numbers; never changed, since threads share it
}

// run is one search of a text.
type run struct {
	*machine
	text    []byte
	threads []thread // in the order of preference
	seen    []int    // by instruction: the place in the text at which it was added, from 1
}

// find returns the leftmost match that begins at from or later.
func (m *machine) find(text []byte, from int) (found Match, ok bool) {
	r := run{machine: m, text: text, seen: make([]int, len(m.prog.Inst))}
	var current []thread
	for at := from; ; {
		if !ok { // once there is a match, later beginnings do not matter
			r.threads = current
			r.add(thread{pc: uint32(m.prog.Start), start: -1, end: -1}, at)
			current = r.threads
		}
		if len(current) == 0 && ok {
			return found, true
		}
		c, size := rune(-1), 1
		if at < len(text) {
			if c, size = utf8.DecodeRune(text[at:]); c == utf8.RuneError && size == 1 {
				c = -1
			}
		}
		r.threads = nil
		for _, t := range current {
			inst := &m.prog.Inst[t.pc]
			if inst.Op == syntax.InstMatch {
				found, ok = Match{Start: t.start, End: t.end, groups: t.groups}, true
				break
			}
			if c >= 0 && inst.MatchRune(c) {
				t.pc = inst.Out
				r.add(t, at+size)
			}
		}
		current = r.threads
		if at >= len(text) {
			return found, ok
		}
		at += size
	}
}

// add adds a thread, or those that it reaches without a rune, at a place in the text.
func (r *run) add(t thread, at int) {
	if r.seen[t.pc] == at+1 {
		return
	}
	r.seen[t.pc] = at + 1
	inst := &r.prog.Inst[t.pc]
	switch inst.Op {
	case syntax.InstAlt, syntax.InstAltMatch:
		r.add(t.to(inst.Out), at)
		r.add(t.to(inst.Arg), at)
	case syntax.InstNop:
		r.add(t.to(inst.Out), at)
	case syntax.InstCapture:
		switch capture := int(inst.Arg); {
		case capture == 2*r.whole:
			t.start = at
		case capture == 2*r.whole+1:
			t.end = at
		case r.groups:
			t.groups = r.with(t.groups, capture, at)
		}
		r.add(t.to(inst.Out), at)
	case syntax.InstEmptyWidth:
		if r.holds(syntax.EmptyOp(inst.Arg), at) {
			r.add(t.to(inst.Out), at)
		}
	case syntax.InstFail:
	default:
		r.threads = append(r.threads, t)
	}
}

// to is the thread at another instruction.
func (t thread) to(pc uint32) thread {
	t.pc = pc
	return t
}

// with returns groups in which a group begins, or ends, at a place.
func (r *run) with(groups []int, capture, at int) []int {
	changed := append([]int(nil), groups...)
	if groups == nil {
		changed = slices.Repeat([]int{-1}, 2*r.whole)
	}
	changed[capture] = at
	return changed
}

// holds reports whether the conditions hold at a place in the text.
func (r *run) holds(op syntax.EmptyOp, at int) bool {
	before, _ := utf8.DecodeLastRune(r.text[:at])
	after, _ := utf8.DecodeRune(r.text[at:])
	boundary := at > 0 && isWord(before) != (at < len(r.text) && isWord(after)) || at == 0 && at < len(r.text) && isWord(after)
	var has syntax.EmptyOp
	if at == 0 || r.text[at-1] == '\n' {
		has |= syntax.EmptyBeginLine
	}
	if at == len(r.text) || r.text[at] == '\n' {
		has |= syntax.EmptyEndLine
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
