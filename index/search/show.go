package search

import (
	"bytes"
	"errors"
	"math"
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/rank"
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

// file makes a hit ready to be shown. The error is snippet.ErrNoRoom if it has no room.
func (s *search) file(found *Hit, room int64) (f FileMatch, err error) {
	h := found.hit
	s.doc.reset(h.doc, h.blob, h.repo)
	f = FileMatch{Repo: found.Key.Repo, Path: found.Key.Path, Blob: found.Key.Blob, Score: h.score, MissingWords: s.missingWords(&h)}
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
	room -= f.Size()
	if room < 0 {
		return f, snippet.ErrNoRoom
	}
	picked, err := s.pick(&h)
	if err != nil {
		return f, err
	}
	if f.MatchCount = h.matches; picked.all {
		f.MatchCount = len(picked.marks)
	}
	if f.Chunks, err = s.chunks(&h, picked, f.Path, room); err == nil && s.opts.Symbols {
		err = s.addSymbols(&f)
	}
	return f, err
}

// missingWords returns the words of a match:any that a document lacks, up to
// MaxMissingWords.
func (s *search) missingWords(h *hit) (missing []string) {
	for _, word := range s.opts.loose {
		if len(missing) < MaxMissingWords && !slices.ContainsFunc(h.features.Terms, func(t rank.Term) bool { return t.Loose == word }) {
			missing = append(missing, word.Text)
		}
	}
	return missing
}

// namedBranches are the branches of the last document. Most other documents have the same ones.
type namedBranches struct {
	repo   int
	set    uint32
	names  []string
	commit string // of the first
}

// branches returns the names of the document's branches and the commit of the
// first, see selectedBranches. Documents share the names.
func (s *search) branches() (names []string, commit string, err error) {
	set, err := s.docs.BranchSet(s.doc.id)
	if err != nil {
		return nil, "", err
	}
	last := &s.shown
	if last.names != nil && last.repo == s.doc.repo && last.set == set {
		return last.names, last.commit, nil
	}
	ordinals, view, err := s.selectedBranches()
	if err != nil {
		return nil, "", err
	}
	for _, o := range ordinals {
		names = append(names, view.now[o].Name)
	}
	if len(ordinals) > 0 {
		commit = view.now[ordinals[0]].Commit
	}
	s.shown = namedBranches{s.doc.repo, set, names, commit}
	return names, commit, nil
}

// selectedBranches returns the ordinals of the document's branches that the query
// selects, or of all if it selects none of them, as in zoekt. They are valid until
// the next document.
func (s *search) selectedBranches() (ordinals []uint32, view *branchView, err error) {
	if ordinals, err = s.doc.loadBranches(); err == nil {
		view, err = s.branchesNow(s.doc.repo)
	}
	if err != nil || len(s.opts.branches) == 0 {
		return ordinals, view, err
	}
	isOther := func(ordinal uint32) bool {
		return !slices.ContainsFunc(s.opts.branches, func(b *query.Branch) bool { return b.Matches(view.now[ordinal].Name, int(ordinal)) })
	}
	if selected := slices.DeleteFunc(slices.Clone(ordinals), isOther); len(selected) > 0 {
		ordinals = selected
	}
	return ordinals, view, nil
}

// picked are the marks that are shown of a hit.
type picked struct {
	marks []mark
	// scores are those of their lines, with Options.LineScores in a content.
	scores []float32
	// all says that there may be no other marks.
	all bool
}

// pick returns the marks that are shown of a hit.
func (s *search) pick(h *hit) (p picked, err error) {
	most := s.opts.mostUnchosen()
	if most == 0 {
		return p, nil
	}
	switch {
	case h.onPath:
		p.marks = unpackMarks(h.marks)
		p.marks = p.marks[:min(len(p.marks), s.opts.MaxMatchesPerFile)]
		p.all = len(p.marks) < s.opts.MaxMatchesPerFile
		return p, nil
	case len(h.inWords) == 0:
		p.marks = unpackMarks(h.marks)
	case h.matches <= most:
		p.marks, err = s.marksUpTo(h, allUnits)
	default:
		p.marks, err = s.firstMarks(h)
	}
	if p.all = len(p.marks) < most; err != nil || len(p.marks) <= most && !s.opts.LineScores {
		return p, err
	}
	if p.marks, p.scores, err = s.chooseLines(h, p.marks); !s.opts.LineScores {
		p.scores = nil
	}
	return p, err
}

// chunks cuts out what is shown of the content, or of the path.
func (s *search) chunks(h *hit, p picked, path []byte, room int64) (chunks []snippet.Chunk, err error) {
	if len(p.marks) == 0 {
		return nil, nil
	}
	ranges := s.ranges.Take(len(p.marks))
	for i, m := range p.marks {
		if ranges[i] = snippet.Match(m.start, m.end); p.scores != nil {
			ranges[i].LineScore = p.scores[i]
		}
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
