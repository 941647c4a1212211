package ngram

import (
	"sync"
	"unicode"
)

const foldPageBits = 8

// foldTable has the representatives of the runes with case, in pages of 256
// runes. Most pages are one shared empty page. It has 28 KiB, and a lookup
// costs two loads, while unicode.SimpleFold would search. The encoding of a
// representative is never longer than that of the rune.
type foldTable struct {
	page  [unicode.MaxRune>>foldPageBits + 1]uint8
	delta [][1 << foldPageBits]int32
}

func (t *foldTable) fold(r rune) rune {
	if uint32(r) > unicode.MaxRune {
		return r
	}
	return r + t.delta[t.page[r>>foldPageBits]][r&(1<<foldPageBits-1)]
}

// folds makes the table on first use. Every orbit of more than one rune
// consists of runes in unicode.CaseRanges.
var folds = sync.OnceValue(func() *foldTable {
	t := &foldTable{delta: make([][1 << foldPageBits]int32, 1)}
	for _, cases := range unicode.CaseRanges {
		for r := rune(cases.Lo); r <= rune(cases.Hi); r++ {
			t.set(r, Representative(r))
		}
	}
	return t
})

func (t *foldTable) set(r, to rune) {
	if r == to {
		return
	}
	page := &t.page[r>>foldPageBits]
	if *page == 0 {
		*page = uint8(len(t.delta))
		t.delta = append(t.delta, [1 << foldPageBits]int32{})
	}
	t.delta[*page][r&(1<<foldPageBits-1)] = to - r
}

// Orbit calls yield with every rune that equals r without case, r first.
func Orbit(r rune, yield func(rune)) {
	yield(r)
	for s := unicode.SimpleFold(r); s != r; s = unicode.SimpleFold(s) {
		yield(s)
	}
}

// Representative returns one rune for all that equal r without case: the lower-case ASCII one if there
// is one, otherwise the first.
func Representative(r rune) rune {
	least := r
	Orbit(r, func(s rune) { least = min(least, s) })
	if 'A' <= least && least <= 'Z' {
		return least + 'a' - 'A'
	}
	return least
}
