package shard

import (
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/literal"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// contentAtom finds a text in the content of documents. It keeps the ranges of
// the blob it looked at last, since documents can share a blob.
type contentAtom struct {
	s       *search
	matcher regex.Matcher
	needs   regex.Needs
	// windows is set when the matcher is a literal whose candidate blocks are
	// known: then only they are decoded.
	windows *literalBlobs
	finder  *literal.Finder
	planned plan

	blob  uint32
	valid bool
	found bool
	spans []span
}

// prepare looks the needs up in the n-gram offset table.
func (a *contentAtom) prepare() (err error) {
	if a.planned, err = a.s.contentPlan(a.needs); err != nil {
		return err
	}
	if a.finder != nil {
		a.windows, _ = a.planned.blobs.(*literalBlobs)
	}
	return nil
}

func (a *contentAtom) plan() (plan, error) { return a.planned, nil }

func (a *contentAtom) cost() uint64 {
	if a.planned.narrow() {
		return costContent + min(a.planned.estimate, costScan-costContent-1)
	}
	return costScan
}

// matches decides the document and leaves the ranges in spans.
func (a *contentAtom) matches(d *document) (bool, error) {
	if a.valid && a.blob == d.blob {
		return a.found, nil
	}
	a.valid, a.found, a.spans = false, false, a.spans[:0]
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
	if a.windows != nil {
		return a.searchWindows(d.blob)
	}
	if !a.planned.narrow() {
		a.s.stats.ShardsScanned = 1
	}
	text, err := a.s.text.load(a.s.content, d.blob)
	if err != nil {
		return err
	}
	a.searchText(text)
	return nil
}

// searchText finds all matches in the whole content. An empty one makes the
// atom true but gives no range.
func (a *contentAtom) searchText(text []byte) {
	for start, end := range regex.Ranges(a.matcher, text) {
		a.spans = append(a.spans, span{uint32(start), uint32(end), rank.Of(text, start, end)})
	}
	if a.found = len(a.spans) > 0; !a.found {
		_, _, a.found = a.matcher.Find(text, 0)
	}
}

// searchWindows finds all matches by decoding only what is around candidate blocks.
func (a *contentAtom) searchWindows(blob uint32) error {
	first, err := a.s.content.FirstSuperblock(blob)
	if err != nil {
		return err
	}
	last, err := a.s.content.FirstSuperblock(blob + 1)
	if err != nil {
		return err
	}
	size, err := a.s.content.Len(blob)
	if err != nil {
		return err
	}
	w := window{atom: a, blob: blob, size: int64(size)}
	for ok := a.windows.seekSuperblock(first); ok && a.windows.at < last; ok = a.windows.seekSuperblock(a.windows.at + 1) {
		if err := w.addBlocks(int64(a.windows.at-first)*docstore.SuperblockSize, a.windows.blocks); err != nil {
			return err
		}
	}
	if err := a.windows.cand.Err(); err != nil {
		return err
	}
	return w.flush()
}

// window is a stretch of one blob in which a literal is still to be looked
// for. Neighbouring stretches grow into one before they are decoded.
type window struct {
	atom   *contentAtom
	blob   uint32
	size   int64
	lo, hi int64 // [lo, hi) is pending; empty when hi is 0
	next   int64 // where the last match ended
}

// addBlocks adds what matches with their rarest n-gram in one of the
// superblock's blocks can cover.
func (w *window) addBlocks(superblock int64, blocks uint8) error {
	nearest, farthest := w.atom.windows.cand.AnchorOffset()
	for b := int64(0); blocks != 0; b, blocks = b+1, blocks>>1 {
		if blocks&1 == 0 {
			continue
		}
		start := superblock + b*docstore.BlockSize
		if start >= w.size {
			break
		}
		lo := max(0, start-int64(farthest))
		hi := min(w.size, start+docstore.BlockSize-int64(nearest)+int64(w.atom.finder.MaxLen()))
		if err := w.add(lo, hi); err != nil {
			return err
		}
	}
	return nil
}

func (w *window) add(lo, hi int64) error {
	if w.hi > 0 && lo <= w.hi {
		w.hi = max(w.hi, hi)
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	w.lo, w.hi = lo, hi
	return nil
}

// flush decodes the pending stretch and finds the matches in it. Matches do
// not overlap: the next starts where the last ended, at the earliest.
func (w *window) flush() error {
	if w.hi == 0 {
		return nil
	}
	s := w.atom.s
	text, err := s.reader.Append(s.buf[:0], w.blob, uint32(w.lo), uint32(w.hi-w.lo))
	if err != nil {
		return err
	}
	s.buf = text
	for {
		start, end, ok := w.atom.finder.Find(text, int(max(0, w.next-w.lo)))
		if !ok {
			break
		}
		if err := w.found(text, start, end); err != nil {
			return err
		}
	}
	w.hi = 0
	return nil
}

func (w *window) found(text []byte, start, end int) error {
	quality, err := w.quality(text, start, end)
	if err != nil {
		return err
	}
	w.next = w.lo + int64(end)
	w.atom.found = true
	w.atom.spans = append(w.atom.spans, span{uint32(w.lo + int64(start)), uint32(w.next), quality})
	return nil
}

// quality rates a match, reading the bytes beside it when the stretch ends there.
func (w *window) quality(text []byte, start, end int) (rank.Quality, error) {
	cutHead, cutTail := start == 0 && w.lo > 0, end == len(text) && w.hi < w.size
	if !cutHead && !cutTail {
		return rank.Of(text, start, end), nil
	}
	s := w.atom.s
	lo, hi := w.lo+int64(start), w.lo+int64(end)
	from := max(0, lo-1)
	var err error
	if s.edge, err = s.reader.Append(s.edge[:0], w.blob, uint32(from), uint32(min(w.size, hi+1)-from)); err != nil {
		return 0, err
	}
	return rank.Of(s.edge, int(lo-from), int(hi-from)), nil
}
