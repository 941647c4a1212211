package shard

import (
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

// before is the order in which matches win over those that they overlap: the
// earlier one, then the longer one.
func (s span) before(o span) bool { return s.start < o.start || s.start == o.start && s.end > o.end }

// spanMerge reads several lists as one, in the order of before. It is a heap.
type spanMerge []spanReader

// begin starts to read lists.
func (m *spanMerge) begin(lists []*spanList) {
	*m = (*m)[:0]
	for _, l := range lists {
		if r := (spanReader{code: l.code}); r.next() {
			*m = append(*m, r)
		}
	}
	for i := len(*m)/2 - 1; i >= 0; i-- {
		m.sink(i)
	}
}

// next moves on from the first match, (*m)[0].at.
func (m *spanMerge) next() {
	if h := *m; !h[0].next() {
		h[0] = h[len(h)-1]
		*m = h[:len(h)-1]
	}
	m.sink(0)
}

func (m *spanMerge) sink(i int) {
	for h := *m; ; {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child].at.before(h[first].at) {
				first = child
			}
		}
		if first == i {
			return
		}
		h[i], h[first] = h[first], h[i]
		i = first
	}
}

// settleEvery is how many matches are settled between two calls of goOn.
const settleEvery = 1 << 14

// settleContent counts the ranges of the content, without those that overlap an
// earlier one, and returns the first of them, at most limit. It stops early if
// goOn returns false.
func (g *gathered) settleContent(limit int, goOn func() bool) (shown []span, count int) {
	g.merge.begin(g.content)
	g.shown = g.shown[:0]
	end := uint32(0)
	for steps := 1; len(g.merge) > 0; steps++ {
		if s := g.merge[0].at; s.start >= end {
			if end = s.end; count < limit {
				g.shown = append(g.shown, s)
			}
			count++
		}
		if len(g.content) == 1 && count >= limit { // nothing can overlap
			return g.shown, g.content[0].n + g.more
		}
		if steps%settleEvery == 0 && !goOn() {
			break
		}
		g.merge.next()
	}
	return g.shown, count + g.more
}

// settle sorts spans and returns those that do not overlap an earlier one:
// earlier spans win, then longer ones. The others stay behind them in the
// slice, since they count for the score.
func settle(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int {
		if a.start != b.start {
			return int(a.start) - int(b.start)
		}
		return int(b.end) - int(a.end)
	})
	kept, end := 0, uint32(0)
	for i, s := range spans {
		if s.start >= end {
			spans[kept], spans[i] = s, spans[kept]
			kept, end = kept+1, s.end
		}
	}
	return spans[:kept]
}
