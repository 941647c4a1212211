package search

import (
	"bytes"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/index/symbols"
)

// contentAtom finds a text in the content of documents. It keeps the ranges of the last blob, since documents can share a blob.
type contentAtom struct {
	*matching // with inNames set, matches are in the names of symbols, by the rules for the last document
	s         *search
	planned   plan
	// anchors are literals with known candidate blocks such that every match holds one of them: then only the text around those
	// is decoded.
	anchors []*literalBlobs
	windows windows
	// bounded says that little more than the lines around anchors is read.
	bounded bool
	// verifies says that other atoms find the candidates.
	verifies bool
	kinds    symbols.KindSet // of the symbols
	rules    *symbols.Language
	names    []symbols.Symbol // still ahead, if the matching excludes them

	blob   uint32
	valid  bool
	found  bool
	spans  spanList
	counts rank.Counts // of all matches
	keep   int         // how many spans are kept, 0 for all
}

// prepare looks up what a match needs.
func (a *contentAtom) prepare() error {
	a.bounded = !a.reach.Whole && !a.sprawls
	if err := a.lookUp(a.needs); err != nil || a.reach.Whole {
		return err
	}
	a.windows = windows{s: a.s, reach: a.reach}
	if a.reach.Open {
		extent, ok := regex.NewExtent(a.matcher)
		if !ok {
			return nil
		}
		a.windows.extent = extent
	}
	a.anchors = a.planned.anchors
	return nil
}

// lookUp plans to read the text of the blobs that may hold what is needed.
func (a *contentAtom) lookUp(needs regex.Needs) error {
	p, err := a.needed(needs)
	if err == nil && p.narrow() {
		a.read(p)
	}
	return err
}

// read plans to read the text of the candidates of a plan.
func (a *contentAtom) read(some plan) {
	a.planned = some
	a.planned.open = func(budget uint64) (blobs, error) {
		it, err := some.open(budget)
		if it == nil || err != nil {
			return nil, err
		}
		return &textBlobs{blobs: it, atom: a}, nil
	}
}

func (a *contentAtom) plan() (plan, error) { return a.planned, nil }

func (a *contentAtom) cost() uint64 {
	if a.planned.narrow() {
		return costContent + min(a.planned.estimate, costScan-costContent-1)
	}
	return costScan
}

// matches decides the document and leaves its ranges in spans.
func (a *contentAtom) matches(d *document) (bool, error) {
	var rules *symbols.Language
	if a.inNames != nil || a.outside {
		var err error
		if rules, err = a.s.rulesOf(d.id); err != nil {
			return false, err
		}
	}
	if a.valid && a.blob == d.blob && a.rules == rules {
		return a.found, nil
	}
	a.rules = rules
	a.valid, a.found, a.counts = false, false, rank.Counts{}
	a.spans.reset(a.number)
	if err := a.search(d); err != nil {
		return false, err
	}
	a.blob, a.valid = d.blob, true
	return a.found, nil
}

func (a *contentAtom) search(d *document) error {
	skip, err := d.s.docs.Skip(d.id)
	if err != nil || skip != docstore.NotSkipped {
		return err
	}
	if a.anchors != nil {
		return a.searchWindows(d.blob)
	}
	if !a.planned.narrow() && !a.verifies {
		a.s.stats.ShardsScanned = 1
	}
	if a.inNames != nil && a.rules == nil {
		return nil
	}
	text, err := a.s.text.load(a.s, d.blob)
	if err != nil {
		return err
	}
	if a.inNames != nil {
		return a.searchNames(d, text)
	}
	if a.outside {
		a.names = a.s.symbolsOf(a.rules, d.blob, text)
	}
	return a.searchText(text)
}

// gather adds the ranges of a document.
func (a *contentAtom) gather(d *document, g *gathered) (rank.Counts, error) {
	if _, err := a.matches(d); err != nil {
		return rank.Counts{}, err
	}
	if a.spans.n > 0 {
		g.content = append(g.content, &a.spans)
	}
	g.matches += a.counts.All()
	return a.counts, nil
}

// add takes a match. Matches ascend.
func (a *contentAtom) add(m span, quality rank.Quality) {
	if a.outside && a.inName(m) {
		return
	}
	a.found = true
	a.counts.Add(quality)
	if a.keep == 0 || a.spans.n < a.keep {
		a.spans.add(m)
	}
}

// take takes the matches that begin in text[from:limit], and returns where the last one ends; 0 if there is none. The text is that of the content from
// base on, and rate rates a match in it.
func (a *contentAtom) take(text []byte, from, limit int, base uint32, rate func(start, end int) (rank.Quality, error)) (last int, err error) {
	for start, end := range regex.RangesWhile(a.matcher, text, from, a.s.goOn) {
		if start >= limit {
			break
		}
		quality := rank.Word
		if a.counts[rank.Word] < rank.Enough { // otherwise the quality does not matter
			if quality, err = rate(start, end); err != nil {
				return last, err
			}
		}
		a.add(span{base + uint32(start), base + uint32(end)}, quality)
		last = end
	}
	return last, a.s.ended
}

// findEmpty makes the atom true if only the empty text matches, which has no range.
func (a *contentAtom) findEmpty(text []byte) error {
	if !a.found && a.maybeEmpty {
		_, _, a.found = regex.FindWhile(a.matcher, text, 0, a.s.goOn)
	}
	return a.s.ended
}

// pieceBytes is about how much content is searched between two looks at the clock: the slowest expressions take about a
// millisecond for it.
const pieceBytes = 16 << 10

// searchText finds all matches in the whole content, a piece at a time.
func (a *contentAtom) searchText(text []byte) error {
	rate := func(start, end int) (rank.Quality, error) { return rank.Of(text, start, end), nil }
	for from := 0; from < len(text); {
		limit, cut := a.piece(text, from)
		last, err := a.take(text[:cut], from, limit, 0, rate)
		if err != nil {
			return err
		}
		if from = max(limit, last); from < len(text) && !a.s.goOn() {
			return a.s.ended
		}
	}
	return a.findEmpty(text)
}

// piece returns the next part of the text to search. Matches that begin before limit do not depend on the text after cut:
// neither they nor what they look at reaches farther.
func (a *contentAtom) piece(text []byte, from int) (limit, cut int) {
	if a.reach.Whole || len(text)-from <= pieceBytes {
		return len(text), len(text)
	}
	limit = from + pieceBytes
	switch {
	case a.most > 0:
		for limit < len(text) && !utf8.RuneStart(text[limit]) {
			limit++
		}
		return limit, min(len(text), limit+a.most+utf8.UTFMax)
	case a.reach.Lines && a.reach.Bytes == 0 && !a.reach.Open:
		if i := bytes.IndexByte(text[limit:], '\n'); i >= 0 {
			return limit + i + 1, limit + i + 1
		}
	}
	return len(text), len(text)
}

// searchWindows finds all matches by decoding only what is around candidate blocks.
func (a *contentAtom) searchWindows(blob uint32) error {
	w := &a.windows
	if err := w.collect(blob, a.anchors); err != nil {
		return err
	}
	for next := int64(0); ; {
		here, limit, ok, err := w.next()
		if !ok || err != nil {
			return err
		}
		if err := a.s.tick(); err != nil {
			return err
		}
		rate := func(start, end int) (rank.Quality, error) { return w.quality(here, start, end) }
		last, err := a.take(w.text[here.lo-w.base:here.hi-w.base], int(max(0, next-here.lo)), int(limit-here.lo), uint32(here.lo), rate)
		if err != nil {
			return err
		}
		next = max(next, here.lo+int64(last))
	}
}
