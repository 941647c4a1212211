package regex

import "regexp/syntax"

// maxNodes bounds a program. The key of a state has two bytes for each node.
const maxNodes = 1 << 14

type op uint8

const (
	opSplit op = iota // continues at all of outs, the first one first; fails without outs
	opRune            // consumes a rune of set
	opLook            // continues if look holds
	opMatch
)

type node struct {
	op   op
	look syntax.EmptyOp
	set  uint16
	out  uint16
	outs []uint16
}

// program is a nondeterministic automaton over classes of runes. It reads the text forwards or
// backwards.
type program struct {
	*letters

	nodes   []node
	start   uint16
	reverse bool
}

// letters are what programs of both directions share.
type letters struct {
	classes *classes
	sets    []classSet // by set of a node
	sight   sight
}

// compiled is an expression in both directions.
type compiled struct {
	forward, backward *program
	anchored          bool // matches begin with the text
}

// compile turns a program of the standard library into ours; ok is false if it is too large.
func compile(prog *syntax.Prog) (c *compiled, ok bool) {
	if 2*len(prog.Inst)+2 > maxNodes {
		return nil, false
	}
	shared, setOf, ok := newLetters(prog)
	if !ok {
		return nil, false
	}
	return &compiled{
		forward:  forwards(prog, shared, setOf),
		backward: backwards(prog, shared, setOf),
		anchored: prog.StartCond()&syntax.EmptyBeginText != 0,
	}, true
}

// newLetters also returns the number of each instruction's set.
func newLetters(prog *syntax.Prog) (shared *letters, setOf []uint16, ok bool) {
	var sets []runeSet
	numbers := map[string]uint16{}
	number := func(set runeSet) uint16 {
		key := set.key()
		n, ok := numbers[key]
		if !ok {
			n = uint16(len(sets))
			numbers[key] = n
			sets = append(sets, set)
		}
		return n
	}
	setOf = make([]uint16, len(prog.Inst))
	seen := syntax.EmptyOp(0)
	for i := range prog.Inst {
		switch inst := &prog.Inst[i]; inst.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			set, ok := runesOf(inst)
			if !ok {
				return nil, nil, false
			}
			setOf[i] = number(set)
		case syntax.InstEmptyWidth:
			seen |= syntax.EmptyOp(inst.Arg)
		}
	}
	if seen&wordLooks != 0 {
		number(wordRunes)
	}
	if seen&lineLooks != 0 {
		number(nlOnly)
	}
	c, members, ok := alphabetOf(sets)
	if !ok {
		return nil, nil, false
	}
	sight := newSight(seen)
	for i, k := range c.kind {
		c.kind[i] = sight[k]
	}
	return &letters{c, members, sight}, setOf, true
}

// forwards makes a node for each instruction, at the same index.
func forwards(prog *syntax.Prog, shared *letters, setOf []uint16) *program {
	p := &program{letters: shared, nodes: make([]node, len(prog.Inst)), start: uint16(prog.Start)}
	for i := range prog.Inst {
		n, out := &p.nodes[i], uint16(prog.Inst[i].Out)
		n.out = out
		switch inst := &prog.Inst[i]; inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			n.outs = []uint16{out, uint16(inst.Arg)}
		case syntax.InstCapture, syntax.InstNop:
			n.outs = []uint16{out}
		case syntax.InstEmptyWidth:
			n.op, n.look = opLook, syntax.EmptyOp(inst.Arg)
		case syntax.InstMatch:
			n.op = opMatch
		case syntax.InstFail:
		default:
			n.op, n.set = opRune, setOf[i]
		}
	}
	return p
}

// backwards makes a node for each instruction, at the same index, that continues at all
// instructions that lead to it. It starts where the other direction matches, and matches where that
// one starts.
func backwards(prog *syntax.Prog, shared *letters, setOf []uint16) *program {
	p := &program{letters: shared, nodes: make([]node, len(prog.Inst), 2*len(prog.Inst)+2), reverse: true}
	add := func(n node) uint16 {
		p.nodes = append(p.nodes, n)
		return uint16(len(p.nodes) - 1)
	}
	lead := func(from uint32, to uint16) { p.nodes[from].outs = append(p.nodes[from].outs, to) }
	p.start = add(node{})
	lead(uint32(prog.Start), add(node{op: opMatch}))
	for i := range prog.Inst {
		at := uint16(i)
		switch inst := &prog.Inst[i]; inst.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			lead(inst.Out, at)
			lead(inst.Arg, at)
		case syntax.InstCapture, syntax.InstNop:
			lead(inst.Out, at)
		case syntax.InstEmptyWidth:
			lead(inst.Out, add(node{op: opLook, look: syntax.EmptyOp(inst.Arg), out: at}))
		case syntax.InstMatch:
			lead(uint32(p.start), at)
		case syntax.InstFail:
		default:
			lead(inst.Out, add(node{op: opRune, set: setOf[i], out: at}))
		}
	}
	return p
}
