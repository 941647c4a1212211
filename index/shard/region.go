package shard

import (
	"bytes"
	"errors"
	"math"

	"github.com/trawl-search/trawl/index/docstore"
)

// regionGap is the longest content without a match that is decoded rather than skipped.
const regionGap = docstore.SuperblockSize

// stepAfter returns how much content to read next in search of the start or end of a line, after so
// many bytes without one. It starts with a part of a superblock, whose rest need not be decoded,
// and takes many superblocks at once in long lines.
func stepAfter(bytes uint32) uint32 {
	if bytes < docstore.SuperblockSize {
		return docstore.BlockSize
	}
	return readStep
}

// contentChunks cuts the chunks of spans out of a blob and decodes only the content near them: a
// file is often much larger than what is shown of it. It stops at a line longer than the room that
// is left, without that line's chunk. It modifies the spans.
func (s *search) contentChunks(blob uint32, spans []span) ([]Chunk, error) {
	size, err := s.content.Len(blob)
	if err != nil {
		return nil, err
	}
	b := blobLines{s: s, blob: blob, size: size, room: s.room}
	if s.opts.MaxLine > 0 {
		b.room = math.MaxInt64 // a long line takes little room
	}
	var chunks []Chunk
	for len(spans) > 0 && !s.noRoom {
		r, err := b.region(spans)
		if errors.Is(err, errNoRoom) {
			s.noRoom = true
			return chunks, nil
		}
		if err != nil {
			return nil, err
		}
		if chunks, err = b.appendChunks(chunks, r.lo, r.hi, spans[:r.n]); err != nil {
			return nil, err
		}
		if r.lastIsLonger {
			chunks = chunks[:len(chunks)-1]
		}
		spans = spans[r.n:]
	}
	return chunks, nil
}

// errNoRoom means that a line starts or ends too far away.
var errNoRoom = errors.New("a line is too long to be shown")

// blobLines finds lines of a blob without decoding all of it.
type blobLines struct {
	s    *search
	blob uint32
	size uint32
	room int64 // for a line
}

// region is [lo, hi) of a blob: whole lines that hold the first n of some spans with their context.
type region struct {
	lo, hi uint32
	n      int
	// lastIsLonger says that the last chunk continues with the next span, in a line for which there
	// is no room.
	lastIsLonger bool
}

// region finds the region of the first spans. It ends before a span whose context does not touch
// it, or that has no room. The error is errNoRoom if the first span has no room.
func (b *blobLines) region(spans []span) (r region, err error) {
	context := b.s.opts.ContextLines
	if r.lo, err = b.lineStart(spans[0].start, context, b.room); err != nil {
		return r, err
	}
	covered := uint32(0) // end of the last line with a span
	for r.n = range spans {
		sp, next := spans[r.n], r.lo
		if r.n > 0 && sp.start > r.hi {
			next, err = b.lineStart(sp.start, context, int64(sp.start-r.hi))
			if errors.Is(err, errNoRoom) {
				next, err = r.hi, nil // the start is at r.hi or before
			}
			if err != nil || next > r.hi+regionGap {
				return r, err
			}
		}
		if r.n > 0 && sp.end <= covered {
			continue
		}
		end := uint32(0)
		if covered, err = b.lineEnd(sp.end-1, 0); err == nil {
			end, err = b.lineEnd(covered, context)
		}
		if r.n > 0 && errors.Is(err, errNoRoom) {
			b.s.noRoom, r.lastIsLonger = true, next <= r.hi
			return r, nil
		}
		if err != nil {
			return r, err
		}
		if r.hi = max(r.hi, end, sp.end); r.n == 0 && int64(r.hi-r.lo) > b.room {
			return r, errNoRoom
		}
	}
	r.n = len(spans)
	return r, nil
}

// lineStart returns the start of the line n lines before that of off, or errNoRoom if it is more
// than limit bytes away.
func (b *blobLines) lineStart(off uint32, n int, limit int64) (uint32, error) {
	for hi := off; hi > 0; {
		if int64(off-hi) > limit {
			return 0, errNoRoom
		}
		step := stepAfter(off - hi)
		lo := (hi - 1) / step * step
		text, err := b.read(lo, hi)
		if err != nil {
			return 0, err
		}
		for i := bytes.LastIndexByte(text, '\n'); i >= 0; i = bytes.LastIndexByte(text[:i], '\n') {
			if n == 0 {
				return lo + uint32(i) + 1, nil
			}
			n--
		}
		hi = lo
	}
	return 0, nil
}

// lineEnd returns the end of the line n lines after that of off: the place of its newline, or the
// end of the blob. The error is errNoRoom if it is farther away than there is room.
func (b *blobLines) lineEnd(off uint32, n int) (uint32, error) {
	for lo := off; lo < b.size; {
		if int64(lo-off) > b.room {
			return 0, errNoRoom
		}
		step := stepAfter(lo - off)
		hi := min(b.size, lo/step*step+step)
		text, err := b.read(lo, hi)
		if err != nil {
			return 0, err
		}
		for at := 0; ; n-- {
			i := bytes.IndexByte(text[at:], '\n')
			if i < 0 {
				break
			}
			if at += i; n == 0 {
				return lo + uint32(at), nil
			}
			at++
		}
		lo = hi
	}
	return b.size, nil
}

// read returns the content [lo, hi). It is valid until the next call.
func (b *blobLines) read(lo, hi uint32) (text []byte, err error) {
	if t := &b.s.text; t.has(b.blob, hi) {
		return t.text[lo:hi], nil
	}
	b.s.buf, err = b.s.reader.Append(b.s.buf[:0], b.blob, lo, hi-lo)
	return b.s.buf, err
}

// linesBefore counts the newlines before a place.
func (b *blobLines) linesBefore(at uint32) (uint32, error) {
	t := &b.s.text
	if !t.has(b.blob, at) {
		return b.s.reader.LinesBefore(b.blob, at)
	}
	start := at - at%docstore.SuperblockSize
	lines, err := b.s.reader.LinesBefore(b.blob, start)
	return lines + uint32(bytes.Count(t.text[start:at], []byte{'\n'})), err
}

// appendChunks cuts the chunks of spans out of [lo, hi). It makes the spans relative to lo.
func (b *blobLines) appendChunks(chunks []Chunk, lo, hi uint32, spans []span) ([]Chunk, error) {
	line, err := b.linesBefore(lo)
	if err != nil {
		return nil, err
	}
	text, err := b.read(lo, hi)
	if err != nil {
		return nil, err
	}
	for i := range spans { // the caller does not need them any more
		spans[i].start -= lo
		spans[i].end -= lo
	}
	return b.s.shelf.appendChunks(chunks, text, Location{Offset: lo, Line: line + 1}, spans, b.s.opts.ContextLines, b.s.opts.MaxLine), nil
}
