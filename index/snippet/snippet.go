// Package snippet cuts out of a text what a search shows of it: the lines with matches, in chunks, with lines of context
// around them and the definitions that they are in.
//
// It reads only the parts of a text that are near its matches, since a file is often much larger than what is shown of it.
package snippet

import (
	"errors"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/symbols"
)

// Chunk is a run of whole lines, or the path, with the matches in it.
type Chunk struct {
	Content []byte
	// Start is where Content starts.
	Start Location
	// Ranges are non-empty, ascending and do not overlap.
	Ranges []Range
	// FileName says that Content is the document's path.
	FileName bool
	// CutBefore and CutAfter are the bytes of the line before and after Content that Options.MaxLine leaves out, CutRanges the
	// further ranges in it.
	CutBefore, CutAfter, CutRanges int
}

// Range is a match, [Start, End).
type Range struct {
	Start, End Location
	// Symbol is the index in the file's symbols, from 1, of the innermost symbol in whose name or
	// body the match starts; 0 if unknown. Definition says that it starts in the name.
	Symbol     int
	Definition bool
	// LineScore is how good the line is in which the match starts; 0 if it was not rated.
	LineScore float32
}

// Location is a place in a document.
type Location struct {
	// Offset in bytes from the start of the document.
	Offset uint32
	// Line number from 1.
	Line uint32
	// Column in runes from the start of the line, from 1.
	Column uint32
}

// Symbol is a definition that contains matches of a file.
type Symbol struct {
	Name string
	Kind symbols.Kind
	// Scope is the name of the innermost definition around it; empty if there is none or it is
	// unknown.
	Scope string
}

// Sizes count these in addition to bytes of text: about the size of the structures in memory and in messages.
const (
	RangeSize  = 24
	chunkSize  = 48
	symbolSize = 16
)

// Size is the room in bytes that the chunk takes in an answer.
func (c *Chunk) Size() int { return chunkSize + len(c.Content) + RangeSize*len(c.Ranges) }

// Size is the room in bytes that the symbol takes in an answer.
func (s *Symbol) Size() int { return symbolSize + len(s.Name) + len(s.Scope) }

// Options say how much is shown.
type Options struct {
	// ContextLines is the number of lines shown before and after each match.
	ContextLines int
	// MaxLine is the most bytes shown of a line, around its first match; 0 means no bound. A longer line has a chunk of its own.
	// Lines of context that it separates from all matches are not shown.
	MaxLine int
	// Room bounds the sum of the sizes of the chunks.
	Room int64
}

// ErrNoRoom means that the chunks of a text take more than Options.Room.
var ErrNoRoom = errors.New("no room for all chunks of the text")

// Match returns the range of a match in a text, without lines and columns.
func Match(start, end uint32) Range {
	return Range{Start: Location{Offset: start}, End: Location{Offset: end}}
}

// OfPath returns the chunk of a path with ascending ranges, whose lines and columns it sets. The chunk shares both.
func OfPath(path []byte, ranges []Range) Chunk {
	at := func(off uint32) Location {
		return Location{Offset: off, Line: 1, Column: uint32(utf8.RuneCount(path[:off])) + 1}
	}
	for i := range ranges {
		r := &ranges[i]
		r.Start, r.End = at(r.Start.Offset), at(r.End.Offset)
	}
	return Chunk{Content: path, Start: at(0), Ranges: ranges, FileName: true}
}

// RuneStart returns i, or the start of the rune of a text that i is within. It goes back by up to three bytes where the text is not
// UTF-8.
func RuneStart[T string | []byte](text T, i int) int {
	for n := 1; n < utf8.UTFMax && i > 0 && i < len(text) && !utf8.RuneStart(text[i]); n++ {
		i--
	}
	return i
}
