package shard

import (
	"bytes"
	"unicode/utf8"
)

// appendCut appends a chunk, whose content it copies. If it has lines of more than limit bytes, it appends several instead: one for
// each of these with a match, and those between them.
func (s *shelf) appendCut(chunks []Chunk, whole Chunk, limit int) []Chunk {
	ranges, at := whole.Ranges, whole.Start
	for text := whole.Content; len(text) > 0; {
		size, isLong := len(text), false
		if limit > 0 {
			size, isLong = run(text, limit)
		}
		end := at.Offset + uint32(size)
		n := 0
		for n < len(ranges) && ranges[n].Start.Offset < end {
			n++
		}
		switch c := (Chunk{Content: text[:size], Start: at, Ranges: ranges[:n:n]}); {
		case n > 0 && isLong:
			chunks = append(chunks, s.around(c, limit))
		case n > 0:
			c.endRanges()
			c.Content = s.keep(c.Content)
			chunks = append(chunks, c)
		}
		at = Location{Offset: end, Line: at.Line + uint32(bytes.Count(text[:size], []byte{'\n'})), Column: 1}
		text, ranges = text[size:], ranges[n:]
	}
	return chunks
}

// run returns the length of the first line of a text, with its end, if it has more than limit bytes, or else of the lines up to the
// first that has.
func run(text []byte, limit int) (size int, isLong bool) {
	for size < len(text) {
		length := lineEnd(text, size) - size
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

// around cuts a chunk of one line to limit bytes, or one rune, around its first range.
func (s *shelf) around(c Chunk, limit int) Chunk {
	line, length := c.Content, lineEnd(c.Content, 0)
	first := int(c.Ranges[0].Start.Offset - c.Start.Offset)
	_, size := utf8.DecodeRune(line[first:])
	from := max(min(first-limit/3, length-limit), 0)
	for from < first && !utf8.RuneStart(line[from]) {
		from++
	}
	to := max(runeStart(line, min(from+limit, length)), first+size)
	c.Content, c.CutBefore, c.CutAfter = s.keep(line[from:to]), from, max(length-to, 0)
	c.Start = Location{Offset: c.Start.Offset + uint32(from), Line: c.Start.Line, Column: uint32(utf8.RuneCount(line[:from])) + 1}
	for n, r := range c.Ranges {
		if r.Start.Offset >= c.Start.Offset+uint32(len(c.Content)) {
			c.Ranges, c.CutRanges = c.Ranges[:n:n], len(c.Ranges)-n
			break
		}
	}
	c.endRanges()
	return c
}

// endRanges ends the last range with the content.
func (c *Chunk) endRanges() {
	last := &c.Ranges[len(c.Ranges)-1]
	if end := c.Start.Offset + uint32(len(c.Content)); last.End.Offset > end {
		pos := cursor{text: c.Content, base: c.Start.Offset, line: c.Start.Line, column: c.Start.Column}
		last.End = pos.locate(len(c.Content))
	}
}

// runeStart is i, or the start of the rune that i is within.
func runeStart(text []byte, i int) int {
	for n := 1; n < utf8.UTFMax && i > 0 && i < len(text) && !utf8.RuneStart(text[i]); n++ {
		i--
	}
	return i
}
