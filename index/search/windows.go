package search

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// stretch is [lo, hi) of a blob.
type stretch struct{ lo, hi int64 }

// addStretch adds a stretch, and joins it with the last one if it begins in it.
func addStretch(all []stretch, st stretch) []stretch {
	if n := len(all); n > 0 && all[n-1].lo <= st.lo && st.lo <= all[n-1].hi {
		all[n-1].hi = max(all[n-1].hi, st.hi)
		return all
	}
	return append(all, st)
}

// windows are the stretches of one blob in which an atom can match. Their memory is reused from
// blob to blob.
type windows struct {
	s      *search
	reach  regex.Reach
	extent *regex.Extent // set if the reach is open
	blob   uint32
	size   int64

	all  []stretch // of the blob, by ascending lo
	rest []stretch // those of all that were not read yet
	text []byte    // decoded last
	base int64     // offset of text in the blob
}

// collect lists the stretches that a match with one of the literals can cover in the blob.
func (w *windows) collect(blob uint32, literals []*literalBlobs) error {
	size, err := w.s.content.Len(blob)
	if err != nil {
		return err
	}
	first, end, err := w.s.superblocksOf(blob)
	if err != nil {
		return err
	}
	w.blob, w.size, w.rest = blob, int64(size), w.all[:0]
	for _, l := range literals {
		for _, t := range l.in(first, end) {
			w.add(l, &t, first)
			if err := w.s.tick(); err != nil {
				return err
			}
		}
	}
	if len(literals) > 1 {
		slices.SortFunc(w.rest, func(a, b stretch) int { return int(a.lo - b.lo) })
	}
	w.all = w.rest
	return w.announce(first)
}

// add adds the stretches that a match can cover if the anchor of the literal starts in one of the blocks of a place. The blob
// begins with superblock first.
func (w *windows) add(l *literalBlobs, place *tally, first uint32) {
	superblock := int64(place.superblock-first) * docstore.SuperblockSize
	before, after := int64(l.most+w.reach.Bytes), int64(l.maxLen-l.least+w.reach.Bytes)
	for b, blocks := int64(0), place.blocks; blocks != 0; b, blocks = b+1, blocks>>1 {
		start := superblock + b*docstore.BlockSize
		if blocks&1 == 0 || start >= w.size {
			continue
		}
		w.rest = addStretch(w.rest, stretch{max(0, start-before), min(w.size, start+docstore.BlockSize+after)})
	}
}

// next decodes the next window into text; ok is false if there is none. The window decides the
// matches that start before limit and after the matches of earlier windows. Later matches belong to
// other windows or are none.
func (w *windows) next() (here stretch, limit int64, ok bool, err error) {
	if len(w.rest) == 0 {
		return stretch{}, 0, false, nil
	}
	here = w.rest[0]
	if w.reach.Lines {
		here, err = w.lines(here)
	} else {
		here = w.take(here, here.hi)
		err = w.decode(here)
	}
	limit = here.hi
	if w.extent != nil && err == nil {
		here, err = w.follow(here)
	}
	return here, limit, err == nil, err
}

// follow adds the lines before and after into which matches can continue.
func (w *windows) follow(here stretch) (_ stretch, err error) {
	w.extent.Reset()
	for alive := true; alive && here.lo > 0; {
		end := here.lo
		if here.lo, err = w.lineStart(end - 1); err != nil {
			return here, err
		}
		if alive, err = w.before(w.text[here.lo-w.base : end-w.base]); err != nil {
			return here, err
		}
	}
	for alive := true; alive && here.hi < w.size; {
		begin := here.hi
		if here.hi, err = w.lineEnd(begin + 1); err != nil {
			return here, err
		}
		if alive, err = w.after(w.text[begin-w.base : here.hi-w.base]); err != nil {
			return here, err
		}
	}
	return here, nil
}

// before is extent.Before for a long line, a piece at a time.
func (w *windows) before(line []byte) (alive bool, err error) {
	for alive = true; alive && len(line) > 0 && err == nil; err = w.s.tick() {
		at := max(0, len(line)-pieceBytes)
		for at > 0 && !utf8.RuneStart(line[at]) {
			at--
		}
		alive, line = w.extent.Before(line[at:]), line[:at]
	}
	return alive, err
}

// after is extent.After for a long line, a piece at a time.
func (w *windows) after(line []byte) (alive bool, err error) {
	for alive = true; alive && len(line) > 0 && err == nil; err = w.s.tick() {
		at := min(len(line), pieceBytes)
		for at < len(line) && !utf8.RuneStart(line[at]) {
			at++
		}
		alive, line = w.extent.After(line[:at]), line[at:]
	}
	return alive, err
}

// take joins to a stretch all stretches that begin up to limit or up to its growing end.
func (w *windows) take(here stretch, limit int64) stretch {
	for len(w.rest) > 0 && w.rest[0].lo <= max(limit, here.hi) {
		here.hi = max(here.hi, w.rest[0].hi)
		w.rest = w.rest[1:]
	}
	return here
}

func (w *windows) decode(here stretch) (err error) {
	w.base = here.lo
	w.text, err = w.s.read(w.text[:0], w.blob, uint32(here.lo), uint32(here.hi-here.lo))
	return err
}

// lines decodes a stretch, and those that share a superblock with it, with all lines that they
// touch.
func (w *windows) lines(here stretch) (stretch, error) {
	for len(w.rest) > 0 && w.rest[0].lo <= w.roundUp(here.hi) {
		here = w.take(here, w.roundUp(here.hi))
	}
	if err := w.decode(stretch{here.lo &^ (docstore.SuperblockSize - 1), w.roundUp(here.hi)}); err != nil {
		return here, err
	}
	lo, err := w.lineStart(here.lo)
	if err != nil {
		return here, err
	}
	for {
		hi, err := w.lineEnd(here.hi)
		if err != nil {
			return here, err
		}
		if len(w.rest) == 0 || w.rest[0].lo > hi {
			return stretch{lo, hi}, nil
		}
		here = w.take(here, hi)
	}
}

// roundUp returns the end of the superblock that holds the byte before at.
func (w *windows) roundUp(at int64) int64 {
	return min(w.size, (at+docstore.SuperblockSize-1)&^(docstore.SuperblockSize-1))
}

// lineStart finds the start of the line at a decoded place. It decodes the content before it, each
// time as much as it has already, because all of that has to move.
func (w *windows) lineStart(at int64) (int64, error) {
	for {
		if i := bytes.LastIndexByte(w.text[:at-w.base], '\n'); i >= 0 {
			return w.base + int64(i) + 1, nil
		}
		if w.base == 0 {
			return 0, nil
		}
		at = w.base // the rest has no newline
		more := max(int64(len(w.text)), docstore.SuperblockSize)
		base := max(0, at-more) &^ (docstore.SuperblockSize - 1) // at also starts a superblock
		edge, err := w.s.read(w.s.edge[:0], w.blob, uint32(base), uint32(at-base))
		if err != nil {
			return 0, err
		}
		w.s.edge, w.base = edge, base
		w.text = slices.Insert(w.text, 0, edge...)
	}
}

// lineEnd finds the end of the line at a place, its newline or the end of the blob, and decodes
// what follows.
func (w *windows) lineEnd(at int64) (int64, error) {
	for {
		end := w.base + int64(len(w.text))
		if at <= end {
			if i := bytes.IndexByte(w.text[at-w.base:], '\n'); i >= 0 {
				return at + int64(i), nil
			}
			at = end
		}
		if end == w.size {
			return end, nil
		}
		n := w.roundUp(max(at, end+1)) - end
		text, err := w.s.read(w.text, w.blob, uint32(end), uint32(n))
		if err != nil {
			return 0, err
		}
		w.text = text
	}
}

// quality rates the match text[start:end] of a window. It reads the next bytes of the blob if the
// text ends there.
func (w *windows) quality(here stretch, start, end int) (rank.Quality, error) {
	text := w.text[here.lo-w.base : here.hi-w.base]
	cutHead, cutTail := start == 0 && here.lo > 0, end == len(text) && here.hi < w.size
	if w.reach.Lines || !cutHead && !cutTail {
		return rank.Of(text, start, end), nil
	}
	lo, hi := here.lo+int64(start), here.lo+int64(end)
	from := max(0, lo-1)
	edge, err := w.s.reader.Append(w.s.edge[:0], w.blob, uint32(from), uint32(min(w.size, hi+1)-from))
	if err != nil {
		return 0, err
	}
	w.s.edge = edge
	return rank.Of(edge, int(lo-from), int(hi-from)), nil
}
