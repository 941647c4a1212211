package search

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/trawl-search/trawl/index/heap"
)

// spanList has the matches of one atom in one content, ascending and without
// overlap. Where they are dense, each takes two or three bytes: a large file
// may have millions.
type spanList struct {
	text int32  // of the atom
	code []byte // for each match, the bytes since the last one and its length
	n    int
	end  uint32 // of the last one
}

func (l *spanList) reset(text int32) { l.text, l.code, l.n, l.end = text, l.code[:0], 0, 0 }

// add adds a match, which starts where the last one ends or later.
func (l *spanList) add(s span) {
	l.code = binary.AppendUvarint(l.code, uint64(s.start-l.end))
	l.code = binary.AppendUvarint(l.code, uint64(s.end-s.start))
	l.n, l.end = l.n+1, s.end
}

// mark is a match that may be shown, of one of the query's texts, by their order in the query.
type mark struct {
	span
	text int32
}

// packMarks appends marks, which ascend without overlap, to what a hit keeps of them: three bytes for each where they are dense.
func packMarks(code []byte, marks []mark) []byte {
	end := uint32(0)
	for _, m := range marks {
		code = binary.AppendUvarint(code, uint64(m.start-end))
		code = binary.AppendUvarint(code, uint64(m.end-m.start))
		code = binary.AppendUvarint(code, uint64(m.text))
		end = m.end
	}
	return code
}

// unpackMarks is the inverse of packMarks.
func unpackMarks(code []byte) []mark {
	marks := make([]mark, 0, len(code)/3)
	for end := uint32(0); len(code) > 0; {
		gap, n := binary.Uvarint(code)
		length, m := binary.Uvarint(code[n:])
		text, k := binary.Uvarint(code[n+m:])
		start := end + uint32(gap)
		end = start + uint32(length)
		code, marks = code[n+m+k:], append(marks, mark{span{start, end}, int32(text)})
	}
	return marks
}

// spanReader reads the list of a text.
type spanReader struct {
	code []byte
	at   mark
}

// next reads the next match. It returns false after the last one.
func (r *spanReader) next() bool {
	if len(r.code) == 0 {
		return false
	}
	gap, n := binary.Uvarint(r.code)
	length, m := binary.Uvarint(r.code[n:])
	start := r.at.end + uint32(gap)
	r.code, r.at.span = r.code[n+m:], span{start, start + uint32(length)}
	return true
}

// compareSpans is the order in which matches win over those that they overlap: the earlier one, then the longer one.
func compareSpans(a, b span) int {
	return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
}

func compareReaders(a, b *spanReader) int {
	return cmp.Or(compareSpans(a.at.span, b.at.span), cmp.Compare(a.at.text, b.at.text))
}

// fewTexts is of how many texts settleContent returns all ranges that it returns of one.
const fewTexts = 4

// settleEvery is how many matches are settled between two calls of goOn.
const settleEvery = 1 << 14

// settleContent returns the first ranges of the content without those that overlap an earlier one: at most that many of a text, and of a few
// texts in all. It stops early if goOn returns false.
func (g *gathered) settleContent(most int, goOn func() bool) []mark {
	g.shown, g.merge, g.of = g.shown[:0], g.merge[:0], g.of[:0]
	for _, l := range g.content {
		g.of = append(g.of, make([]int, max(int(l.text)+1-len(g.of), 0))...)
		if r := (spanReader{code: l.code, at: mark{text: l.text}}); r.next() {
			g.merge = heap.Push(g.merge, r, compareReaders)
		}
	}
	end := uint32(0)
	for steps := 1; len(g.merge) > 0 && len(g.shown)/fewTexts < most; steps++ {
		if s := g.merge[0].at; s.start >= end {
			if end = s.end; g.of[s.text] < most {
				g.shown = append(g.shown, s)
			}
			g.of[s.text]++
		}
		if steps%settleEvery == 0 && !goOn() {
			break
		}
		if g.merge[0].next() {
			heap.Fix(g.merge, 0, compareReaders)
		} else {
			g.merge = heap.Pop(g.merge, compareReaders)
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
