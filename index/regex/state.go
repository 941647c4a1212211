package regex

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
)

// A state of the deterministic automaton is what is left of a program after
// some text: the kind of the last rune, whether matches may still begin, and
// the next nodes, the preferred first. The next rune decides which of them an
// empty-width operator excludes. One string encodes all of that and identifies
// the state.
const (
	kindBits   = 3      // of the first byte
	beginsBit  = 1 << 2 // of the first byte: a match may begin here or later
	nodeLength = 2      // bytes of each node that follows
)

// closure collects the nodes that consume a rune, in order of preference.
type closure struct {
	program *program
	leaves  []uint16
	seen    []uint32 // by node: the round that last met it
	round   uint32
	stack   []uint16
}

func newClosure(p *program) closure {
	return closure{program: p, seen: make([]uint32, len(p.nodes))}
}

func (c *closure) reset() {
	c.leaves = c.leaves[:0]
	c.forget()
}

// forget lets all nodes be met again.
func (c *closure) forget() {
	if c.round++; c.round == 0 {
		clear(c.seen)
		c.round = 1
	}
}

// meet reports whether a node is met for the first time.
func (c *closure) meet(at uint16) bool {
	first := c.seen[at] != c.round
	c.seen[at] = c.round
	return first
}

// add follows a node as far as the empty-width operators in holds allow. It
// reports whether there was a match. Forwards it stops there, since the rest is
// less preferred.
func (c *closure) add(from uint16, holds syntax.EmptyOp) (matched bool) {
	c.stack = append(c.stack[:0], from)
	for len(c.stack) > 0 {
		at := c.stack[len(c.stack)-1]
		c.stack = c.stack[:len(c.stack)-1]
		if !c.meet(at) {
			continue
		}
		switch n := &c.program.nodes[at]; n.op {
		case opSplit:
			for _, out := range slices.Backward(n.outs) {
				c.stack = append(c.stack, out)
			}
		case opRune:
			c.leaves = append(c.leaves, at)
		case opLook:
			if n.look&holds == n.look {
				c.stack = append(c.stack, n.out)
			}
		case opMatch:
			matched = true
			if !c.program.reverse {
				return true
			}
		}
	}
	return matched
}

// follow writes into buf the state that follows another one by a rune of a
// class, and reports whether there was a match before that rune.
func (c *closure) follow(buf []byte, state string, class uint8) (next []byte, matched bool) {
	p := c.program
	k := p.classes.kind[class]
	holds := looks(kind(state[0]&kindBits), k)
	if p.reverse {
		holds = looks(k, kind(state[0]&kindBits))
	}
	c.reset()
	for at := 1; at < len(state) && (!matched || p.reverse); at += nodeLength {
		node := uint16(state[at]) | uint16(state[at+1])<<8
		matched = c.add(node, holds) || matched
	}
	begins := state[0] & beginsBit
	if begins != 0 && !matched {
		matched = c.add(p.start, holds)
	}
	if matched {
		begins = 0
	}
	return c.consume(append(buf[:0], byte(k)|begins), class), matched
}

// consume appends the nodes that follow the leaves by a rune of a class.
func (c *closure) consume(next []byte, class uint8) []byte {
	p := c.program
	c.forget()
	if p.reverse {
		slices.Sort(c.leaves) // all are equal there, and one order gives fewer states
	}
	for _, leaf := range c.leaves {
		n := &p.nodes[leaf]
		if p.sets[n.set].has(class) && c.meet(n.out) {
			next = binary.LittleEndian.AppendUint16(next, n.out)
		}
	}
	return next
}
