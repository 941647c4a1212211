package shard

import (
	"bytes"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/regex"
)

// files makes hits ready to be shown and adds them to res: the first one whatever its size, the others until one has no room.
func (s *search) files(hits []Hit, res *Result) error {
	res.Files = make([]FileMatch, 0, len(hits))
	if err := s.announceShown(hits); err != nil {
		return err
	}
	parallel := s.showInParallel(hits)
	defer parallel.join(s)
	room := s.opts.MaxBytes
	for i := range hits {
		if err := s.look(); err != nil {
			return err
		}
		bounded := s.opts.MaxBytes > 0 && len(res.Files) > 0
		f := parallel.take(i)
		if f == nil || bounded && f.Size() > room {
			s.limitRoom(room, bounded)
			shown, err := s.file(&hits[i])
			if err != nil {
				return err
			}
			f = &shown
		}
		if room -= f.Size(); bounded && (s.noRoom || room < 0) {
			res.Cut = true
			return nil
		}
		res.Files = append(res.Files, *f)
	}
	return nil
}

// limitRoom bounds the bytes of the next file.
func (s *search) limitRoom(room int64, bounded bool) {
	if s.room, s.noRoom = math.MaxInt64, false; bounded {
		s.room = max(room, 0)
	}
}

func (s *search) file(found *Hit) (f FileMatch, err error) {
	h := found.hit
	s.doc.reset(h.doc, h.blob, h.repo)
	if h.atLeast {
		if err := s.findFirst(&h); err != nil {
			return f, err
		}
	}
	f = FileMatch{Repo: found.Key.Repo, Path: found.Key.Path, Blob: found.Key.Blob, Score: h.score, MatchCount: h.matches, MatchCountAtLeast: h.atLeast, MissingWords: s.missingWords(&h)}
	if f.Branches, f.Commit, err = s.branches(); err != nil {
		return f, err
	}
	if f.Language, err = s.docs.Language(h.doc); err != nil {
		return f, err
	}
	if f.Skip, err = s.docs.Skip(h.doc); err != nil {
		return f, err
	}
	if s.opts.Explain {
		f.Explanation = h.features.Explain()
	}
	if f.Chunks, err = s.chunks(&h, f.Path); err == nil && s.opts.Symbols {
		err = s.nameSymbols(h.doc, h.blob, &f)
	}
	return f, err
}

// namedBranches are the branches of the last document. Most other documents have the same ones.
type namedBranches struct {
	repo   int
	set    uint32
	names  []string
	commit string // of the first
}

// branches returns the names of the document's branches and the commit of the
// first. Documents share the names.
func (s *search) branches() (names []string, commit string, err error) {
	set, err := s.docs.BranchSet(s.doc.id)
	if err != nil {
		return nil, "", err
	}
	last := &s.shown
	if last.names != nil && last.repo == s.doc.repo && last.set == set {
		return last.names, last.commit, nil
	}
	ordinals, err := s.doc.loadBranches()
	if err != nil {
		return nil, "", err
	}
	view, err := s.branchesNow(s.doc.repo)
	if err != nil {
		return nil, "", err
	}
	for _, o := range ordinals {
		if b := view.now[o]; len(names) == 0 {
			names, commit = append(names, b.Name), b.Commit
		} else {
			names = append(names, b.Name)
		}
	}
	s.shown = namedBranches{s.doc.repo, set, names, commit}
	return names, commit, nil
}

// countedWhole is the longest content, in bytes, in which all matches of one of the best documents are counted.
const countedWhole = 4 * docstore.SuperblockSize

// findFirst finds the first matches of a document that a search among whole words has found, as many as are shown. In a short
// content it counts all. It reads a long one only until it has one match more.
func (s *search) findFirst(h *hit) error {
	length, err := s.content.Len(h.blob)
	if err != nil {
		return err
	}
	matcher := h.inWords[0].matcher
	h.inWords, h.matches, s.first = nil, 0, s.first[:0]
	for at, end := 0, uint32(countedWhole); h.atLeast; end += readStep {
		text, err := s.text.loadUpTo(s, h.blob, end)
		if err != nil {
			return err
		}
		limit := len(text)
		if h.atLeast = limit < int(length); h.atLeast { // matches are within words, and the last one may be cut
			limit = ngram.ExtendedStart(text, limit)
		}
		for start, end := range regex.RangesWhile(matcher, text[:limit], at, s.goOn) {
			if h.matches++; h.matches <= s.opts.MaxMatchesPerFile {
				s.first = append(s.first, span{uint32(start), uint32(end)})
			}
		}
		if at = limit; s.ended != nil || h.matches > s.opts.MaxMatchesPerFile {
			break
		}
	}
	h.spans = s.first
	return s.ended
}

// readSpans finds the ranges of a document whose matches were only counted: the first ones, as many as are shown.
func (s *search) readSpans(h *hit) ([]span, error) {
	first, length, err := s.content.Span(h.blob)
	if err != nil {
		return nil, err
	}
	all := (length + docstore.SuperblockSize - 1) / docstore.SuperblockSize
	if len(h.inWords) == 1 { // no other atom's ranges can overlap its own
		return s.readFirstSpans(h, s.opts.MaxMatchesPerFile, all)
	}
	// The atoms' ranges may overlap each other, so more matches may have to be read than are shown.
	for matches := s.opts.MaxMatchesPerFile; ; matches *= 2 {
		to := firstWith(matches, h.inWords, first, first+all)
		spans, err := s.readFirstSpans(h, 0, to)
		if n := len(spans); err != nil || to == all || n == s.opts.MaxMatchesPerFile && spans[n-1].start < to*docstore.SuperblockSize {
			return spans, err
		}
	}
}

// readFirstSpans finds the ranges of a document in the words that start in its first superblocks, up to that number: of each atom all
// matches, or only the first keep unless keep is 0. Ranges that start later may be wrong.
func (s *search) readFirstSpans(h *hit, keep int, to uint32) ([]span, error) {
	g := &s.gathered
	g.reset()
	s.showing = slices.Grow(s.showing[:0], len(h.inWords))[:len(h.inWords)]
	for i := range h.inWords {
		if err := h.inWords[i].read(s, h.blob, keep, to, &s.showing[i]); err != nil {
			return nil, err
		}
		g.content = append(g.content, &s.showing[i])
	}
	spans, _ := g.settleContent(s.opts.MaxMatchesPerFile, s.goOn)
	return spans, s.ended
}

func (s *search) chunks(h *hit, path []byte) (_ []Chunk, err error) {
	if s.room == 0 || s.opts.MaxMatchesPerFile == 0 {
		return nil, nil
	}
	g := &s.gathered
	g.shown = append(g.shown[:0], h.spans...)
	spans := g.shown // contentChunks modifies spans
	if len(h.inWords) > 0 {
		if spans, err = s.readSpans(h); err != nil {
			return nil, err
		}
	}
	switch {
	case len(spans) == 0:
		return nil, nil
	case h.onPath:
		return []Chunk{s.shelf.pathChunk(path, spans)}, nil
	}
	return s.contentChunks(h.blob, spans)
}

func (s *shelf) pathChunk(path []byte, spans []span) Chunk {
	s.ranges = withRoom(s.ranges, len(spans))
	ranges := len(s.ranges)
	c := Chunk{Content: s.keep(path), Start: Location{Line: 1, Column: 1}, FileName: true}
	at := func(off uint32) Location {
		return Location{Offset: off, Line: 1, Column: uint32(utf8.RuneCount(path[:off])) + 1}
	}
	for _, sp := range spans {
		s.ranges = append(s.ranges, Range{Start: at(sp.start), End: at(sp.end)})
	}
	c.Ranges = s.rangesFrom(ranges)
	return c
}

// shelf stores the bytes and ranges of a result one after the other in a few arrays: a result has thousands of them, which
// live as long as it does.
type shelf struct {
	bytes  []byte
	ranges []Range
}

// maxGrown is the length up to which the arrays of a shelf double.
const maxGrown = 1 << 16

// withRoom returns an array with room for n more elements: the last one, or a new one. Copying the last one into a larger
// array would keep both in memory, since the result points into each.
func withRoom[T any](last []T, n int) []T {
	if len(last)+n <= cap(last) {
		return last
	}
	return make([]T, 0, max(n, min(2*cap(last), maxGrown)))
}

// keep returns a copy of b.
func (s *shelf) keep(b []byte) []byte {
	s.bytes = withRoom(s.bytes, len(b))
	from := len(s.bytes)
	s.bytes = append(s.bytes, b...)
	return s.bytes[from:len(s.bytes):len(s.bytes)]
}

// rangesFrom returns the ranges kept after the first n.
func (s *shelf) rangesFrom(n int) []Range { return s.ranges[n:len(s.ranges):len(s.ranges)] }

// appendChunks cuts out the lines with spans and the context lines around them. Spans ascend. Those that share a line, or
// whose contexts touch, share a chunk. It looks at each byte of those lines only a few times, however many spans a line has.
// The text starts at the start of a line, at the location start of its document. It cuts lines of more bytes than limit, which 0
// does not bound.
func (s *shelf) appendChunks(chunks []Chunk, text []byte, start Location, spans []span, context, limit int) []Chunk {
	s.ranges = withRoom(s.ranges, len(spans))
	pos := cursor{text: text, base: start.Offset, line: start.Line, column: 1}
	for i := 0; i < len(spans); {
		l := linesOf(text, spans[i], 0)
		lo := before(text, l.lo, context)
		hi := after(text, l.hi, context)
		c, ranges := Chunk{Start: pos.locate(lo)}, len(s.ranges)
		for ; i < len(spans); i++ {
			if int(spans[i].end) > l.hi+1 || int(spans[i].start) > l.hi {
				l = linesOf(text, spans[i], min(l.hi+1, int(spans[i].start)))
				if before(text, l.lo, context) > hi && len(s.ranges) > ranges {
					break
				}
				hi = max(hi, after(text, l.hi, context))
			}
			hi = max(hi, int(spans[i].end))
			s.ranges = append(s.ranges, Range{Start: pos.locate(int(spans[i].start)), End: pos.locate(int(spans[i].end))})
		}
		c.Content, c.Ranges = text[lo:hi], s.rangesFrom(ranges)
		chunks = s.appendCut(chunks, c, limit)
	}
	return chunks
}

// lines are the bounds of the lines that a span covers. hi is the place of the newline that ends the last one, or the end of
// the text.
type lines struct{ lo, hi int }

// linesOf finds the lines of sp. It does not look before from: a line starts there, or earlier text does not matter.
func linesOf(text []byte, sp span, from int) lines {
	return lines{
		lo: from + bytes.LastIndexByte(text[from:sp.start], '\n') + 1,
		hi: lineEnd(text, int(sp.end)-1),
	}
}

// before returns the start of the line n lines before the one at lo.
func before(text []byte, lo, n int) int {
	for ; n > 0 && lo > 0; n-- {
		lo = bytes.LastIndexByte(text[:lo-1], '\n') + 1
	}
	return lo
}

// after returns the end of the line n lines after the one that ends at hi.
func after(text []byte, hi, n int) int {
	for ; n > 0 && hi < len(text); n-- {
		hi = lineEnd(text, hi+1)
	}
	return hi
}

func lineEnd(text []byte, from int) int {
	if i := bytes.IndexByte(text[from:], '\n'); i >= 0 {
		return from + i
	}
	return len(text)
}

// cursor finds the locations of ascending offsets, which are at the borders of runes.
type cursor struct {
	text         []byte
	base         uint32 // offset of the text in its document
	at           int    // offset in text up to which it has counted
	line, column uint32
}

func (c *cursor) locate(off int) Location {
	if off > c.at {
		passed := c.text[c.at:off]
		if n := bytes.Count(passed, []byte{'\n'}); n > 0 {
			c.line += uint32(n)
			c.column = 1
			passed = passed[bytes.LastIndexByte(passed, '\n')+1:]
		}
		c.column += uint32(utf8.RuneCount(passed))
		c.at = off
	}
	return Location{Offset: c.base + uint32(off), Line: c.line, Column: c.column}
}
