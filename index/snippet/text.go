package snippet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"sort"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/docstore"
)

// Reader reads parts of a text.
type Reader interface {
	// Append appends the n bytes from an offset to dst.
	Append(dst []byte, off, n uint32) ([]byte, error)
	// LinesBefore counts the newlines before an offset. This costs little at multiples of docstore.SuperblockSize.
	LinesBefore(off uint32) (uint32, error)
}

// Text is a text of which parts are shown.
type Text struct {
	Reader
	// Len is its length in bytes.
	Len uint32
	// Start are its first bytes, as far as they are in memory.
	Start []byte
	// Buf is memory for what is read.
	Buf []byte
}

// maxGap is the longest text between two chunks that is read rather than skipped.
const maxGap = docstore.SuperblockSize

// longStep is how much is read at once in a long line.
const longStep = 64 << 10

var newline = []byte{'\n'}

// cutter cuts chunks out of a text, from its start to its end. Places are offsets in the text.
type cutter struct {
	*Text
	Options
	contents *Arena[byte]
	chunks   []Chunk

	// window is the text from base on, as far as it has been read. It starts with a line.
	window []byte
	base   int
	// lo and hi bound the chunk at hand. next is where the next one starts, if it is in the window; otherwise 0.
	lo, hi, next int
	// line and column are those of the place at.
	at           int
	line, column uint32
}

// Chunks cuts out the lines with ranges, and the lines of context around them. Ranges ascend and do not overlap. Those that share a
// line, or a line of context, share a chunk. Chunks sets the lines and columns of the ranges, which are shared with the chunks; their
// contents are stored in an arena. It looks at each byte of the lines only a few times, however many ranges a line has.
func (t *Text) Chunks(ranges []Range, contents *Arena[byte], o Options) ([]Chunk, error) {
	c := cutter{Text: t, Options: o, contents: contents}
	for len(ranges) > 0 {
		if c.lo = c.next; c.lo == 0 {
			if err := c.seek(int(ranges[0].Start.Offset)); err != nil {
				return nil, err
			}
		}
		n, err := c.delimit(ranges)
		if err != nil {
			return nil, err
		}
		if len(c.chunks) == cap(c.chunks) {
			c.chunks = slices.Grow(c.chunks, min(max(len(c.chunks), 8), len(ranges)))
		}
		if err := c.add(ranges[:n]); err != nil {
			return nil, err
		}
		ranges = ranges[n:]
	}
	return c.chunks, nil
}

// seek starts a chunk, and a window, with the context of a range that starts at first.
func (c *cutter) seek(first int) error {
	lines, err := c.LinesBefore(uint32(first))
	if err != nil {
		return err
	}
	line := max(int(lines)-c.ContextLines, 0)
	if c.lo, err = c.lineStart(line, int(lines), first); err != nil {
		return err
	}
	if c.MaxLine == 0 && int64(first-c.lo) > c.Room {
		return ErrNoRoom
	}
	c.window, c.base = c.Buf[:0], c.lo
	if c.lo < len(c.Start) {
		c.window = c.Start[c.lo:]
	}
	c.at, c.line, c.column = c.lo, uint32(line)+1, 1
	return nil
}

// lineStart returns the place where a line starts, counted from 0. That many lines start before or at hi, which is not before it.
func (c *cutter) lineStart(line, lines, hi int) (int, error) {
	if line == 0 {
		return 0, nil
	}
	var failed error
	before := func(superblock int) int { // costs little
		n, err := c.LinesBefore(uint32(superblock * docstore.SuperblockSize))
		failed = errors.Join(failed, err)
		return int(n)
	}
	superblock := hi / docstore.SuperblockSize
	if before(superblock) >= line {
		superblock = max(sort.Search(superblock, func(i int) bool { return before(i) >= line })-1, 0)
		hi, lines = (superblock+1)*docstore.SuperblockSize, before(superblock+1)
	}
	lo := superblock * docstore.SuperblockSize
	text, err := c.part(lo, hi)
	for ; lines >= line && len(text) > 0; lines-- {
		text = text[:max(bytes.LastIndexByte(text, '\n'), 0)]
	}
	return min(lo+len(text)+1, hi), errors.Join(failed, err)
}

// part returns a part of the text. It is valid until the next call.
func (c *cutter) part(lo, hi int) (text []byte, err error) {
	if hi <= len(c.Start) {
		return c.Start[lo:hi], nil
	}
	c.Buf, err = c.Append(c.Buf[:0], uint32(lo), uint32(hi-lo))
	return c.Buf, err
}

// delimit finds the end of the chunk that starts at lo, and how many ranges it has.
func (c *cutter) delimit(ranges []Range) (n int, err error) {
	c.hi, c.next = c.lo, 0
	covered := -1 // end of the last line with a range
	for ; n < len(ranges); n++ {
		start, end := int(ranges[n].Start.Offset), int(ranges[n].End.Offset)
		if start > covered || end > covered+1 {
			if n > 0 {
				if apart, err := c.apart(start); apart || err != nil {
					return n, err
				}
			}
			if covered, err = c.lineEnd(end-1, 0); err != nil {
				return n, err
			}
			hi := covered
			if c.ContextLines > 0 {
				if hi, err = c.lineEnd(covered, c.ContextLines); err != nil {
					return n, err
				}
			}
			c.hi = max(c.hi, hi)
		}
		c.hi = max(c.hi, end)
	}
	return n, nil
}

// apart reports whether the context of a range that starts at start begins after the chunk at hand.
func (c *cutter) apart(start int) (bool, error) {
	if start <= c.hi {
		return false, nil
	}
	if start > c.end()+maxGap {
		lines, err := c.LinesBefore(uint32(start))
		known := int(c.line) - 1 + bytes.Count(c.window[c.at-c.base:c.hi-c.base], newline)
		return int(lines)-known > c.ContextLines, err
	}
	for c.end() < start {
		if err := c.extend(c.hi); err != nil {
			return false, err
		}
	}
	between := c.window[c.hi-c.base : start-c.base]
	for range c.ContextLines + 1 {
		i := bytes.LastIndexByte(between, '\n')
		if i < 0 {
			return false, nil
		}
		between = between[:i]
	}
	c.next = c.hi + len(between) + 1
	return true, nil
}

// end returns the place up to which the window has been read.
func (c *cutter) end() int { return c.base + len(c.window) }

// lineEnd returns the end of the line n lines after the one with a place: its newline, or the end of the text.
func (c *cutter) lineEnd(at, n int) (int, error) {
	for from := at; ; {
		for at >= c.end() {
			if c.end() >= int(c.Len) {
				return int(c.Len), nil
			}
			if c.MaxLine == 0 && int64(c.end()-c.lo) > c.Room {
				return 0, ErrNoRoom
			}
			if err := c.extend(from); err != nil {
				return 0, err
			}
		}
		i := bytes.IndexByte(c.window[at-c.base:], '\n')
		switch {
		case i < 0:
			at = c.end()
		case n == 0:
			return at + i, nil
		default:
			at, n = at+i+1, n-1
		}
	}
}

// extend reads more of the text, in search of something after a place: first a part of a superblock, whose rest need not be read, and
// many superblocks at once in long lines.
func (c *cutter) extend(since int) (err error) {
	end, step := c.end(), docstore.BlockSize
	if end-since >= docstore.SuperblockSize {
		step = longStep
	}
	if end <= len(c.Start) { // the window is a part of it
		c.window = append(c.Buf[:0], c.window...)
	}
	to := min(end/step*step+step, int(c.Len))
	c.window, err = c.Append(c.window, uint32(end), uint32(to-end))
	c.Buf = c.window
	return err
}

// add adds the chunk at hand, or several in its place if it has long lines: one for each of these with a range, and those between
// them.
func (c *cutter) add(ranges []Range) error {
	for lo := c.lo; len(ranges) > 0; {
		text, n := c.window[lo-c.base:c.hi-c.base], len(ranges)
		size, isLong := len(text), false
		if c.MaxLine > 0 {
			size, isLong = run(text, c.MaxLine)
			n = sort.Search(n, func(i int) bool { return int(ranges[i].Start.Offset) >= lo+size })
		}
		if n > 0 {
			chunk := Chunk{Content: text[:size], Ranges: ranges[:n:n]}
			if isLong {
				chunk.cut(lo, c.MaxLine)
			}
			if c.Room -= int64(chunk.Size()); c.Room < 0 {
				return ErrNoRoom
			}
			c.finish(&chunk, lo+chunk.CutBefore)
		}
		lo, ranges = lo+size, ranges[n:]
	}
	return nil
}

// run returns the length of the first line of a text, with its end, if it has more than limit bytes, or else of the lines up to the
// first that has.
func run(text []byte, limit int) (size int, isLong bool) {
	for size < len(text) {
		length := lineLength(text[size:])
		if length > limit {
			if size == 0 {
				return min(length+1, len(text)), true
			}
			return size, false
		}
		size = min(size+length+1, len(text))
	}
	return size, false
}

// lineLength returns the length of the first line of a text, without its end.
func lineLength(text []byte) int {
	if i := bytes.IndexByte(text, '\n'); i >= 0 {
		return i
	}
	return len(text)
}

// cut cuts a chunk of one line, which starts at lo, to limit bytes around its first range, but to no less than a rune.
func (c *Chunk) cut(lo, limit int) {
	line, length := c.Content, lineLength(c.Content)
	first := int(c.Ranges[0].Start.Offset) - lo
	_, size := utf8.DecodeRune(line[first:])
	from := max(min(first-limit/3, length-limit), 0)
	for from < first && !utf8.RuneStart(line[from]) {
		from++
	}
	to := max(RuneStart(line, min(from+limit, length)), first+size)
	c.Content, c.CutBefore, c.CutAfter = line[from:to], from, max(length-to, 0)
	n := sort.Search(len(c.Ranges), func(i int) bool { return int(c.Ranges[i].Start.Offset) >= lo+to })
	c.Ranges, c.CutRanges = c.Ranges[:n:n], len(c.Ranges)-n
}

// finish adds a chunk that starts at lo, with a copy of its content and the lines and columns of its ranges. The last range ends with
// the content.
func (c *cutter) finish(chunk *Chunk, lo int) {
	end := lo + len(chunk.Content)
	chunk.Content = c.contents.Copy(chunk.Content)
	chunk.Start = c.locate(lo)
	for i := range chunk.Ranges {
		r := &chunk.Ranges[i]
		r.Start, r.End = c.locate(int(r.Start.Offset)), c.locate(min(int(r.End.Offset), end))
	}
	c.chunks = append(c.chunks, *chunk)
}

// locate returns the location of a place in the window. Places ascend, and are at the borders of runes.
func (c *cutter) locate(place int) Location {
	passed := c.window[c.at-c.base : place-c.base]
	if n := bytes.Count(passed, newline); n > 0 {
		c.line, c.column = c.line+uint32(n), 1
		passed = passed[bytes.LastIndexByte(passed, '\n')+1:]
	}
	c.at = place
	for len(passed) >= 8 && binary.LittleEndian.Uint64(passed)&0x8080_8080_8080_8080 == 0 { // ASCII
		passed, c.column = passed[8:], c.column+8
	}
	c.column += uint32(utf8.RuneCount(passed))
	return Location{Offset: uint32(place), Line: c.line, Column: c.column}
}
