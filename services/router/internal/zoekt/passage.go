package zoekt

import (
	"bytes"
	"iter"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// passage is a run of lines of a file. It has one line more than wanted on both sides,
// which shows where the wanted lines end.
type passage struct {
	text []byte
	// offset of text in the file, and the number of its first line, from 1.
	offset, line uint32
	// bounds[i] is where line i of text starts, from 0. The last is the end of text.
	bounds []int
	// group is the current group.
	group []span
	// file has the text.
	file *searchv1.FileMatch
}

// set loads a chunk of its file. Chunks share a passage, so that it allocates for the longest one
// only.
func (p *passage) set(c *searchv1.ChunkMatch) {
	p.text, p.offset, p.line = c.Content, c.ContentStart.GetByteOffset(), c.ContentStart.GetLineNumber()
	p.bounds = append(p.bounds[:0], 0)
	for start := 0; start < len(p.text); {
		if n := bytes.IndexByte(p.text[start:], '\n'); n >= 0 {
			start += n + 1
		} else {
			start = len(p.text)
		}
		p.bounds = append(p.bounds, start)
	}
}

// lineOf is the line, from 0, of the byte at the offset in text.
func (p *passage) lineOf(at int) int {
	i, found := slices.BinarySearch(p.bounds, at)
	if found {
		return i
	}
	return i - 1
}

// start is where line i starts. Beyond the last line it is the end of text.
func (p *passage) start(i int) int { return p.bounds[min(max(i, 0), len(p.bounds)-1)] }

// cut returns the lines [from, to).
func (p *passage) cut(from, to int) []byte { return p.text[p.start(from):p.start(to)] }

// span is a match: bytes [start, end) of text, in lines [first, last].
type span struct {
	start, end, first, last int
	// at is where it is in the file.
	at textRange
	// symbol is the definition whose name it is in, if that is known.
	symbol *symbolInfo
	// score is that of its first line, with two decimals: an answer has thousands of them.
	score float64
}

// span finds the range in text. It refuses a range outside of it, which no searcher sends.
func (p *passage) span(r *searchv1.Range) (s span, ok bool) {
	from, to := r.GetStart().GetByteOffset(), r.GetEnd().GetByteOffset()
	if from < p.offset || to <= from || int(to-p.offset) > len(p.text) {
		return span{}, false
	}
	s.start, s.end = int(from-p.offset), int(to-p.offset)
	s.first, s.last = p.lineOf(s.start), p.lineOf(s.end-1)
	s.at, s.score = textRange{place(r.Start), place(r.End)}, math.Round(float64(r.GetLineScore())*100)/100
	if p.text[s.end-1] == '\n' { // it ends in the line of that newline
		s.at.End.LineNumber = p.line + uint32(s.last)
		s.at.End.Column = uint32(utf8.RuneCount(p.text[p.start(s.last):s.end])) + 1
	}
	if symbol := searchapi.SymbolOf(p.file, r); symbol != nil && r.GetDefinition() {
		s.symbol = &symbolInfo{Sym: symbol.GetName(), Kind: searchapi.SymbolKind(symbol.GetKind()), Parent: symbol.GetScope()}
	}
	return s, true
}

// groups joins ranges whose lines or context lines overlap. A group is valid until the
// next one.
func (p *passage) groups(ranges []*searchv1.Range, context int) iter.Seq[[]span] {
	return func(yield func([]span) bool) {
		p.group = p.group[:0]
		for _, r := range ranges {
			s, ok := p.span(r)
			if !ok {
				continue
			}
			if n := len(p.group); n > 0 && p.group[n-1].last+context < s.first-context {
				if !yield(p.group) {
					return
				}
				p.group = p.group[:0]
			}
			p.group = append(p.group, s)
		}
		if len(p.group) > 0 {
			yield(p.group)
		}
	}
}

// chunk shows the spans of a group with the lines around them.
func (p *passage) chunk(group []span, context int) chunkMatch {
	from := max(group[0].first-context, 0)
	m := chunkMatch{
		Content:       p.cut(from, group[len(group)-1].last+context+1),
		ContentStart:  location{p.offset + uint32(p.start(from)), p.line + uint32(from), 1},
		BestLineMatch: p.line + uint32(group[0].first),
		Ranges:        make([]textRange, 0, len(group)),
	}
	for i, s := range group {
		m.Ranges = append(m.Ranges, s.at)
		if s.score > m.Score {
			m.Score, m.BestLineMatch = s.score, p.line+uint32(s.first)
		}
		if s.symbol != nil {
			if m.SymbolInfo == nil {
				m.SymbolInfo = make([]*symbolInfo, len(group))
			}
			m.SymbolInfo[i] = s.symbol
		}
	}
	return m
}

// lineMatches shows each line that has a part of a range, without newlines.
func (p *passage) lineMatches(ranges []*searchv1.Range, context int) (out []lineMatch) {
	number := -1
	for _, r := range ranges {
		s, ok := p.span(r)
		if !ok {
			continue
		}
		for i := s.first; i <= s.last; i++ {
			f := p.fragment(s, i)
			if f.MatchLength <= 0 {
				continue
			}
			if number != i {
				out, number = append(out, p.lineMatch(i, context)), i
			}
			m := &out[len(out)-1]
			m.LineFragments, m.Score = append(m.LineFragments, f), max(m.Score, s.score)
		}
	}
	return out
}

func (p *passage) lineMatch(i, context int) lineMatch {
	m := lineMatch{
		Line: p.cut(i, i+1), LineNumber: int(p.line) + i,
		LineStart: int(p.offset) + p.start(i), LineEnd: int(p.offset) + p.start(i+1),
	}
	if context > 0 {
		m.Before, m.After = p.cut(i-context, i), p.cut(i+1, i+1+context)
	}
	return m
}

// fragment is the part of a span in line i.
func (p *passage) fragment(s span, i int) lineFragment {
	begin := p.start(i)
	end := begin + len(bytes.TrimSuffix(p.cut(i, i+1), []byte{'\n'}))
	from, to := max(s.start, begin), min(s.end, end)
	f := lineFragment{LineOffset: from - begin, Offset: p.offset + uint32(from), MatchLength: to - from}
	if i == s.first {
		f.SymbolInfo = s.symbol
	}
	return f
}
