package search

import (
	"strings"

	"github.com/trawl-search/trawl/index/regex"
)

// grams are the trigrams of the names of a chunk, in lower case: a Bloom filter with two bits for each. The names of 200 repos have several
// hundred, of which some 3 in 100 others look the same.
type grams [64]uint64

// gramBits are the two bits of a trigram.
type gramBits [2]uint16

func (g *grams) add(bits gramBits) {
	for _, bit := range bits {
		g[bit/64] |= 1 << (bit % 64)
	}
}

func (g *grams) mayHave(bits gramBits) bool {
	return g[bits[0]/64]>>(bits[0]%64)&1 != 0 && g[bits[1]/64]>>(bits[1]%64)&1 != 0
}

// gramsOf are those of the names, which count as having all if they are not ASCII: only ASCII has the same bytes in lower case as
// it folds to.
func gramsOf(names string) *grams {
	g := &grams{}
	code := uint32(0)
	for i := range len(names) {
		if names[i] >= 0x80 {
			for j := range g {
				g[j] = ^uint64(0)
			}
			return g
		}
		code = code<<8 | uint32(lower(names[i]))
		if i >= 2 {
			g.add(bitsOf(code))
		}
	}
	return g
}

func lower(b byte) byte {
	if 'A' <= b && b <= 'Z' {
		b |= 0x20
	}
	return b
}

// bitsOf are those of the trigram in the last three bytes of code.
func bitsOf(code uint32) gramBits {
	hash := code & 0xffffff * 0x9e3779b1
	return gramBits{uint16(hash >> 20), uint16(hash >> 8 & 0xfff)}
}

// need is what names must have to match an expression: a text, all of several needs, or one of them. The zero value is met by all.
type need struct {
	text string
	// folds is true if text counts in any case; it is looked for by its grams only.
	folds bool
	grams []gramBits
	of    []need
	// any is true if one of the needs suffices.
	any bool
}

func needOf(needs regex.Needs) need {
	n, _, _ := regex.Fold(needs, func(l regex.Literal) (need, bool, error) { // it cannot fail
		return literalNeed(l.Text, !l.CaseSensitive), true, nil
	}, func(all []need) need { return need{of: all} }, func(some []need) need { return need{of: some, any: true} })
	return n
}

// literalNeed needs a text.
func literalNeed(text string, folds bool) need {
	n := need{text: text, folds: folds}
	code := uint32(0)
	for i := range len(text) {
		if text[i] >= 0x80 {
			n.grams = nil // chunks with such names have all grams
			break
		}
		code = code<<8 | uint32(lower(text[i]))
		if i >= 2 {
			n.grams = append(n.grams, bitsOf(code))
		}
	}
	return n
}

// metBy reports whether a text may meet the need.
func (n *need) metBy(text string) bool {
	return n.holds(func(n *need) bool { return n.folds || strings.Contains(text, n.text) })
}

// metIn reports whether a text with these grams may meet the need.
func (n *need) metIn(g *grams) bool {
	return n.holds(func(n *need) bool {
		for i := range n.grams {
			if !g.mayHave(n.grams[len(n.grams)-1-i]) { // names differ at their ends more than at their beginnings
				return false
			}
		}
		return true
	})
}

// holds reports whether the need is met if those are whose text is met.
func (n *need) holds(met func(*need) bool) bool {
	if len(n.of) == 0 {
		return !n.any && met(n)
	}
	for i := range n.of {
		if n.of[i].holds(met) == n.any {
			return n.any
		}
	}
	return !n.any
}
