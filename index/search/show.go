package search

import (
	"bytes"
	"errors"
	"math"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/index/snippet"
)

// files makes hits ready to be shown and adds them to res: the first one whatever its size, the others until one has no room.
func (s *search) files(hits []Hit, res *Result) error {
	res.Files = make([]FileMatch, 0, len(hits))
	if err := s.announceShown(hits); err != nil {
		return err
	}
	parallel := s.showInParallel(hits)
	defer parallel.join(s)
	left, room := s.opts.MaxBytes, int64(math.MaxInt64)
	for i := range hits {
		if err := s.look(); err != nil {
			return err
		}
		f := parallel.take(i)
		if f == nil {
			shown, err := s.file(&hits[i], room)
			if err != nil && !errors.Is(err, snippet.ErrNoRoom) {
				return err
			}
			f, res.Cut = &shown, err != nil
		}
		if res.Cut = res.Cut || f.Size() > room; res.Cut {
			return nil
		}
		res.Files = append(res.Files, *f)
		if left -= f.Size(); s.opts.MaxBytes > 0 {
			room = max(left, 0)
		}
	}
	return nil
}

// file makes a hit ready to be shown. The error is snippet.ErrNoRoom if its chunks have no room.
func (s *search) file(found *Hit, room int64) (f FileMatch, err error) {
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
	if f.Chunks, err = s.chunks(&h, f.Path, room-f.Size()); err == nil && s.opts.Symbols {
		err = s.addSymbols(&f)
	}
	if shown := ranges(f.Chunks); shown < s.opts.MaxMatchesPerFile && !f.MatchCountAtLeast { // there are no others
		f.MatchCount = shown
	}
	return f, err
}

// ranges counts the ranges in chunks.
func ranges(chunks []snippet.Chunk) (n int) {
	for i := range chunks {
		n += len(chunks[i].Ranges) + chunks[i].CutRanges
	}
	return n
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
	for i, o := range ordinals {
		if names = append(names, view.now[o].Name); i == 0 {
			commit = view.now[o].Commit
		}
	}
	s.shown = namedBranches{s.doc.repo, set, names, commit}
	return names, commit, nil
}

// countedWhole is the longest content, in bytes, in which all matches of one of the best documents are counted.
const countedWhole = 4 * docstore.SuperblockSize

// findFirst finds the first matches of a document that a search among whole words has found, as many as are shown. In a short
// content it counts all. It reads a long one only until it has one range more.
func (s *search) findFirst(h *hit) error {
	length, err := s.content.Len(h.blob)
	if err != nil {
		return err
	}
	g, atoms := &s.gathered, h.inWords
	g.reset()
	s.showing = grown(s.showing, len(atoms))
	for i := range atoms {
		s.showing[i].reset()
		g.content = append(g.content, &s.showing[i])
	}
	for at, end := 0, uint32(countedWhole); h.atLeast; end += readStep {
		text, err := s.text.loadUpTo(s, h.blob, end)
		if err != nil {
			return err
		}
		limit := len(text)
		if h.atLeast = limit < int(length); h.atLeast { // matches are within words, and the last one may be cut
			limit = ngram.ExtendedStart(text, limit)
		}
		h.matches = 0
		for i := range atoms {
			list := &s.showing[i]
			for start, end := range regex.RangesWhile(atoms[i].matcher, text[:limit], max(at, int(list.end)), s.goOn) {
				list.add(span{uint32(start), uint32(end)})
			}
			h.matches += list.n
		}
		h.spans = g.settleContent(s.opts.MaxMatchesPerFile+1, s.goOn)
		if at = max(at, limit); s.ended != nil || len(h.spans) > s.opts.MaxMatchesPerFile {
			break
		}
	}
	s.first = append(s.first[:0], h.spans[:min(len(h.spans), s.opts.MaxMatchesPerFile)]...)
	h.inWords, h.spans = nil, s.first
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
	s.showing = grown(s.showing, len(h.inWords))
	for i := range h.inWords {
		if err := h.inWords[i].read(s, h.blob, keep, to, &s.showing[i]); err != nil {
			return nil, err
		}
		g.content = append(g.content, &s.showing[i])
	}
	return g.settleContent(s.opts.MaxMatchesPerFile, s.goOn), s.ended
}

// chunks cuts out what is shown of the content, or of the path.
func (s *search) chunks(h *hit, path []byte, room int64) (chunks []snippet.Chunk, err error) {
	if room < 0 {
		return nil, snippet.ErrNoRoom
	}
	if s.opts.MaxMatchesPerFile == 0 {
		return nil, nil
	}
	spans := h.spans
	if len(h.inWords) > 0 {
		if spans, err = s.readSpans(h); err != nil {
			return nil, err
		}
	}
	if len(spans) == 0 {
		return nil, nil
	}
	ranges := s.ranges.Take(len(spans))
	for i, sp := range spans {
		ranges[i] = snippet.Match(sp.start, sp.end)
	}
	if h.onPath {
		return []snippet.Chunk{snippet.OfPath(path, ranges)}, nil
	}
	text := snippet.Text{Reader: &s.doc, Buf: s.buf}
	if text.Len, err = s.content.Len(h.blob); err != nil {
		return nil, err
	}
	if s.text.has(h.blob, 0) {
		text.Start = s.text.text
	}
	chunks, err = text.Chunks(ranges, &s.shelf, snippet.Options{ContextLines: s.opts.ContextLines, MaxLine: s.opts.MaxLine, Room: room})
	s.buf = text.Buf
	return chunks, err
}

// Append appends bytes of the document's content. With LinesBefore, it makes the document a snippet.Reader.
func (d *document) Append(dst []byte, off, n uint32) ([]byte, error) {
	return d.s.read(dst, d.blob, off, n)
}

// LinesBefore counts the newlines of the document's content before an offset.
func (d *document) LinesBefore(off uint32) (uint32, error) {
	t, whole := &d.s.text, off-off%docstore.SuperblockSize
	if !t.has(d.blob, off) {
		return d.s.reader.LinesBefore(d.blob, off)
	}
	lines, err := d.s.reader.LinesBefore(d.blob, whole)
	return lines + uint32(bytes.Count(t.text[whole:off], []byte{'\n'})), err
}

// maxSymbolText is the longest content, in bytes, that is searched for symbols.
const maxSymbolText = 4 << 20

// addSymbols adds the symbols that contain the ranges of a file's chunks.
func (s *search) addSymbols(f *FileMatch) error {
	if len(f.Chunks) == 0 || f.Chunks[0].FileName {
		return nil
	}
	rules, err := s.rulesOf(s.doc.id)
	if err != nil || rules == nil {
		return err
	}
	if n, err := s.content.Len(s.doc.blob); err != nil || n > maxSymbolText {
		return err
	}
	text, err := s.text.load(s, s.doc.blob)
	if err != nil {
		return err
	}
	f.Symbols = snippet.Symbols(text, s.symbolsOf(rules, s.doc.blob, text), f.Chunks)
	return nil
}
