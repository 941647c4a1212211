package regex

import (
	"encoding/binary"
	"iter"
	"regexp/syntax"
	"slices"
	"sort"
	"unicode"
	"unicode/utf8"
)

// Bounds on what automata handle. Expressions beyond them are left to the standard library.
const (
	maxColumns    = 256     // classes, the end of the text, and bytes to decode
	maxSplitSteps = 1 << 21 // intervals put into classes, one step each
)

// classes divides the runes into classes such that no instruction of a program distinguishes runes
// of one class. Each invalid byte is U+FFFD, as everywhere in Go.
type classes struct {
	// ascii returns the class of a byte, or decode for the first byte of a longer rune.
	ascii [256]uint8
	// from are the first runes of the intervals, ascending from 0; of are their classes.
	from []rune
	of   []uint8

	count  int   // classes are 0 … count-1
	end    uint8 // the column of the end of the text
	decode uint8 // the column of bytes from 0x80 on, whose rune must be decoded
	kind   []kind
}

// columns is the width of a state's row.
func (c *classes) columns() int { return c.count + 2 }

// interval returns the index of the interval that contains r.
func (c *classes) interval(r rune) int {
	low, high := 0, len(c.from)
	for low+1 < high {
		if middle := int(uint(low+high) / 2); c.from[middle] <= r {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// runeSet is the ranges of runes that an instruction matches, ascending or not.
type runeSet []rune

var (
	anyRune   = runeSet{0, unicode.MaxRune}
	notNL     = runeSet{0, '\n' - 1, '\n' + 1, unicode.MaxRune}
	nlOnly    = runeSet{'\n', '\n'}
	wordRunes = runeSet{'0', '9', 'A', 'Z', '_', '_', 'a', 'z'}
)

// runesOf returns the runes that an instruction matches. ok is false for an instruction with half
// of a surrogate pair, which the standard library's search for prefixes confuses with U+FFFD.
func runesOf(inst *syntax.Inst) (set runeSet, ok bool) {
	switch inst.Op {
	case syntax.InstRuneAny:
		return anyRune, true
	case syntax.InstRuneAnyNotNL:
		return notNL, true
	}
	if len(inst.Rune) != 1 {
		return inst.Rune, len(inst.Rune)%2 == 0 && (len(inst.Rune) != 2 || utf8.ValidRune(inst.Rune[0]) || inst.Rune[0] != inst.Rune[1])
	}
	r := inst.Rune[0]
	set = runeSet{r, r}
	if syntax.Flags(inst.Arg)&syntax.FoldCase != 0 {
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			set = append(set, f, f)
		}
	}
	return set, utf8.ValidRune(r)
}

// classSet is a set of classes.
type classSet [maxColumns / 64]uint64

func (s *classSet) has(class uint8) bool { return s[class/64]>>(class%64)&1 != 0 }
func (s *classSet) add(class uint8)      { s[class/64] |= 1 << (class % 64) }

// alphabetOf returns the classes of some distinct sets and each set as classes.
func alphabetOf(sets []runeSet) (c *classes, members []classSet, ok bool) {
	from := []rune{0, utf8.RuneSelf} // where intervals begin
	for _, set := range sets {
		for i := 0; i < len(set); i += 2 {
			from = append(from, set[i], set[i+1]+1)
		}
	}
	slices.Sort(from)
	from = slices.Compact(from)
	c = &classes{from: from[:sort.Search(len(from), func(i int) bool { return from[i] > unicode.MaxRune })]}
	if !c.split(sets) {
		return nil, nil, false
	}
	c.end, c.decode = uint8(c.count), uint8(c.count+1)
	for b := range c.ascii {
		c.ascii[b] = c.decode
		if b < utf8.RuneSelf {
			c.ascii[b] = c.of[c.interval(rune(b))]
		}
	}
	c.kind = make([]kind, c.columns())
	c.kind[c.end] = edge
	for b := range byte(utf8.RuneSelf) {
		// Programs that look for words or newlines have sets of them, so that
		// a class is all of one kind where the kind matters.
		c.kind[c.ascii[b]] = max(c.kind[c.ascii[b]], byteKind(b))
	}
	members = make([]classSet, len(sets))
	for i, set := range sets {
		for at := range c.within(set) {
			members[i].add(c.of[at])
		}
	}
	return c, members, true
}

// split gives two intervals the same class if they are in the same sets.
func (c *classes) split(sets []runeSet) bool {
	of := make([]int, len(c.from))
	count, steps := 1, 0
	for _, set := range sets {
		inside := map[int]int{} // from the old class to that of its part within the set
		for at := range c.within(set) {
			if steps++; steps > maxSplitSteps {
				return false
			}
			part, ok := inside[of[at]]
			if !ok {
				part = count
				inside[of[at]] = part
				count++
			}
			of[at] = part
		}
	}
	numbers := map[int]uint8{}
	c.of = make([]uint8, len(of))
	for i, class := range of {
		n, ok := numbers[class]
		if !ok {
			if len(numbers) > maxColumns-3 {
				return false
			}
			n = uint8(len(numbers))
			numbers[class] = n
		}
		c.of[i] = n
	}
	c.count = len(numbers)
	return true
}

// within returns the intervals of a set.
func (c *classes) within(set runeSet) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 0; i < len(set); i += 2 {
			for at := c.interval(set[i]); at < len(c.from) && c.from[at] <= set[i+1]; at++ {
				if !yield(at) {
					return
				}
			}
		}
	}
}

// key returns a string that identifies the set.
func (s runeSet) key() string {
	b := make([]byte, 0, 4*len(s))
	for _, r := range s {
		b = binary.LittleEndian.AppendUint32(b, uint32(r))
	}
	return string(b)
}
