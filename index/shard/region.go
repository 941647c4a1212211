package shard

import (
	"bytes"

	"github.com/trawl-search/trawl/index/docstore"
)

// regionGap is how much content without a match is decoded rather than skipped.
const regionGap = docstore.SuperblockSize

// lineStep is how much content is read at once to find where a line starts or
// ends. It divides the size of a superblock, of which what follows need not be decoded.
const lineStep = docstore.BlockSize

// contentChunks cuts the chunks of spans out of a blob, decoding only what is
// near them: a shown file is often much larger than what is shown of it. It
// uses the spans up.
func (s *search) contentChunks(blob uint32, spans []span) ([]Chunk, error) {
	size, err := s.content.Len(blob)
	if err != nil {
		return nil, err
	}
	b := blobLines{s: s, blob: blob, size: size}
	var chunks []Chunk
	for len(spans) > 0 {
		lo, hi, n, err := b.region(spans)
		if err != nil {
			return nil, err
		}
		if chunks, err = b.appendChunks(chunks, lo, hi, spans[:n]); err != nil {
			return nil, err
		}
		spans = spans[n:]
	}
	return chunks, nil
}

// blobLines finds lines of a blob without decoding all of it.
type blobLines struct {
	s    *search
	blob uint32
	size uint32
}

// region returns the bounds of whole lines that hold the first n spans with
// their context; the context of the next span does not touch them.
func (b *blobLines) region(spans []span) (lo, hi uint32, n int, err error) {
	context := b.s.opts.ContextLines
	if lo, err = b.lineStart(spans[0].start, context); err != nil {
		return 0, 0, 0, err
	}
	covered := uint32(0) // end of the last line that holds a span
	for n = range spans {
		sp := spans[n]
		if n > 0 && sp.start > hi {
			next, err := b.lineStart(sp.start, context)
			if err != nil {
				return 0, 0, 0, err
			}
			if next > hi+regionGap {
				return lo, hi, n, nil
			}
		}
		if n > 0 && sp.end <= covered {
			continue
		}
		if covered, err = b.lineEnd(sp.end-1, 0); err != nil {
			return 0, 0, 0, err
		}
		end, err := b.lineEnd(covered, context)
		if err != nil {
			return 0, 0, 0, err
		}
		hi = max(hi, end, sp.end)
	}
	return lo, hi, len(spans), nil
}

// lineStart returns the start of the line that is n lines before that of off.
func (b *blobLines) lineStart(off uint32, n int) (uint32, error) {
	for hi := off; hi > 0; {
		lo := (hi - 1) / lineStep * lineStep
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

// lineEnd returns where the line ends that is n lines after that of off: the
// place of its newline, or the end of the blob.
func (b *blobLines) lineEnd(off uint32, n int) (uint32, error) {
	for lo := off; lo < b.size; {
		hi := min(b.size, lo/lineStep*lineStep+lineStep)
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

func (b *blobLines) read(lo, hi uint32) (text []byte, err error) {
	b.s.buf, err = b.s.reader.Append(b.s.buf[:0], b.blob, lo, hi-lo)
	return b.s.buf, err
}

// appendChunks cuts the chunks of spans out of [lo, hi), and makes the spans relative to lo.
func (b *blobLines) appendChunks(chunks []Chunk, lo, hi uint32, spans []span) ([]Chunk, error) {
	line, err := b.s.reader.LinesBefore(b.blob, lo)
	if err != nil {
		return nil, err
	}
	text, err := b.read(lo, hi)
	if err != nil {
		return nil, err
	}
	for i := range spans { // which nobody needs any more
		spans[i].start -= lo
		spans[i].end -= lo
	}
	return b.s.shelf.appendChunks(chunks, text, Location{Offset: lo, Line: line + 1}, spans, b.s.opts.ContextLines), nil
}
