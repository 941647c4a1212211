package ngram

import (
	"sync"
	"unicode"
)

const foldPageBits = 8

// foldTable has the representatives of the runes with case, in pages of 256
// runes. Most pages are one shared empty page. It has 28 KiB, and a lookup
// costs two loads, while unicode.SimpleFold would search. The representative of
// a rune's simple-case-folding orbit is its lower-case ASCII letter if it has
// one, otherwise its smallest rune. Its encoding is never longer than that of
// the rune.
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
			t.set(r, representative(r))
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

// orbit calls yield for each rune of r's orbit, r first.
func orbit(r rune, yield func(rune)) {
	yield(r)
	for s := unicode.SimpleFold(r); s != r; s = unicode.SimpleFold(s) {
		yield(s)
	}
}

func representative(r rune) rune {
	least := r
	orbit(r, func(s rune) { least = min(least, s) })
	if 'A' <= least && least <= 'Z' {
		return least + 'a' - 'A'
	}
	return least
}
