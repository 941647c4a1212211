package search

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// spanList has the matches of one atom in one content, ascending and without
// overlap. Where they are dense, each takes two or three bytes: a large file
// may have millions.
type spanList struct {
	code []byte // for each match, the bytes since the last one and its length
	n    int
	end  uint32 // of the last one
}

func (l *spanList) reset() { l.code, l.n, l.end = l.code[:0], 0, 0 }

// add adds a match, which starts where the last one ends or later.
func (l *spanList) add(s span) {
	l.code = binary.AppendUvarint(l.code, uint64(s.start-l.end))
	l.code = binary.AppendUvarint(l.code, uint64(s.end-s.start))
	l.n, l.end = l.n+1, s.end
}

// spanReader reads a list.
type spanReader struct {
	code []byte
	at   span
}

// next reads the next match. It returns false after the last one.
func (r *spanReader) next() bool {
	if len(r.code) == 0 {
		return false
	}
	gap, n := binary.Uvarint(r.code)
	length, m := binary.Uvarint(r.code[n:])
	start := r.at.end + uint32(gap)
	r.code, r.at = r.code[n+m:], span{start, start + uint32(length)}
	return true
}

// compareSpans is the order in which matches win over those that they overlap: the earlier one, then the longer one.
func compareSpans(a, b span) int {
	return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
}

func compareReaders(a, b *spanReader) int { return compareSpans(a.at, b.at) }

// settleEvery is how many matches are settled between two calls of goOn.
const settleEvery = 1 << 14

// settleContent returns the first ranges of the content, at most limit, without those that overlap an earlier one. It stops early if goOn
// returns false.
func (g *gathered) settleContent(limit int, goOn func() bool) (shown []span) {
	g.shown, g.merge = g.shown[:0], g.merge[:0]
	for _, l := range g.content {
		if r := (spanReader{code: l.code}); r.next() {
			g.merge = push(g.merge, r, compareReaders)
		}
	}
	end := uint32(0)
	for steps := 1; len(g.merge) > 0 && len(g.shown) < limit; steps++ {
		if s := g.merge[0].at; s.start >= end {
			g.shown, end = append(g.shown, s), s.end
		}
		if steps%settleEvery == 0 && !goOn() {
			break
		}
		if g.merge[0].next() {
			sink(g.merge, compareReaders)
		} else {
			g.merge = dropFirst(g.merge, compareReaders)
		}
	}
	return g.shown
}

// settle sorts spans and returns those that do not overlap an earlier one:
// earlier spans win, then longer ones. The others stay behind them in the
// slice, since they count for the score.
func settle(spans []span) []span {
	slices.SortFunc(spans, compareSpans)
	kept, end := 0, uint32(0)
	for i, s := range spans {
		if s.start >= end {
			spans[kept], spans[i] = s, spans[kept]
			kept, end = kept+1, s.end
		}
	}
	return spans[:kept]
}

// grown returns n lists, with the memory of others.
func grown(lists []spanList, n int) []spanList { return slices.Grow(lists[:0], n)[:n] }
