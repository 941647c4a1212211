package regex

import (
	"regexp/syntax"
	"sync"
	"sync/atomic"
)

// maxBails is the number of searches in which automata did not pay after which they are given up
// for good.
const maxBails = 8

// automata find matches with two deterministic automata: one reads forwards to the end of the
// leftmost match, the other backwards from there to its start.
type automata struct {
	*compiled

	skip   skip
	length int // bytes of every match if all have the same length; otherwise -1
	memory *Memory
	parts  func() (before, after *program) // of Extent, made on first use

	pool    sync.Pool // of *pair
	bails   atomic.Int32
	library *library
}

type pair struct{ forward, backward *dfa }

// newAutomata returns ok = false if automata cannot handle the expression.
func newAutomata(tree *syntax.Regexp, caseSensitive bool, fallback *library, memory *Memory) (a *automata, ok bool) {
	parsed, err := syntax.Parse(fallback.first.String(), syntax.Perl)
	if err != nil {
		return nil, false
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, false
	}
	c, ok := compile(prog)
	if !ok {
		return nil, false
	}
	a = &automata{compiled: c, length: -1, library: fallback, memory: memory}
	if least := MinLen(tree, caseSensitive); least > 0 {
		if most, bounded := MaxLen(tree, caseSensitive); bounded && most == least {
			a.length = least
		}
	}
	if !c.anchored {
		a.skip = newSkip(tree, caseSensitive, c.forward)
	}
	a.pool.New = func() any { return &pair{newDFA(c.forward, a.skip.useful, memory), newDFA(c.backward, false, memory)} }
	a.parts = sync.OnceValues(func() (before, after *program) { return c.backward.inside(), c.forward.inside() })
	return a, true
}

// Find implements Matcher.
func (a *automata) Find(text []byte, from int) (start, end int, ok bool) {
	return a.findWhile(text, from, nil)
}

func (a *automata) findWhile(text []byte, from int, goOn func() bool) (start, end int, ok bool) {
	p := a.take(goOn)
	start, end, ok = a.findOr(p, text, from)
	a.release(p)
	return start, end, ok
}

func (a *automata) take(goOn func() bool) *pair {
	p := a.pool.Get().(*pair)
	p.forward.goOn, p.backward.goOn = goOn, goOn
	return p
}

func (a *automata) release(p *pair) {
	for _, d := range []*dfa{p.forward, p.backward} {
		d.goOn, d.stopped = nil, false
	}
	a.pool.Put(p)
}

// findOr finds a match with automata, or else with the standard library.
func (a *automata) findOr(p *pair, text []byte, from int) (start, end int, ok bool) {
	from = max(from, 0)
	if from > len(text) || a.anchored && from > 0 {
		return 0, 0, false
	}
	if a.bails.Load() < maxBails {
		start, end, paid := a.find(p, text, from)
		if paid {
			return start, end, end >= 0
		}
		a.bails.Add(1)
	}
	return a.library.findWhile(text, from, p.forward.goOn)
}

// find returns an end of -1 if there is no match; paid is false if automata do not pay for this
// text.
func (a *automata) find(p *pair, text []byte, from int) (start, end int, paid bool) {
	end, paid = a.ending(p.forward, text, from)
	switch {
	case !paid || end < 0 || end == from || a.anchored:
		return from, end, paid
	case a.length > 0:
		return end - a.length, end, true
	}
	start, paid = a.starting(p.backward, text, from, end)
	if p.backward.stopped {
		end = -1
	}
	return start, end, paid
}
