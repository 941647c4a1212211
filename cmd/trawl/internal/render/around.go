package render

import (
	"bytes"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Around returns a copy of a file whose chunks have at most that many lines before and after each
// match. The chunks of the file must have at least as many.
func Around(f *searchv1.FileMatch, before, after uint32) *searchv1.FileMatch {
	var chunks []*searchv1.ChunkMatch
	for _, c := range f.GetChunks() {
		if c.GetFileName() {
			chunks = append(chunks, c)
			continue
		}
		chunks = append(chunks, aroundIn(c, before, after)...)
	}
	return searchapi.WithChunks(f, chunks)
}

// aroundIn cuts a chunk into runs of the lines near its matches.
func aroundIn(c *searchv1.ChunkMatch, before, after uint32) (runs []*searchv1.ChunkMatch) {
	var run *searchv1.ChunkMatch
	number := c.GetContentStart().GetLineNumber()
	offset := c.GetContentStart().GetByteOffset()
	ranges, seen := c.GetRanges(), uint32(0) // seen is the last line of the matches that began
	for line := range bytes.Lines(c.GetContent()) {
		began := ranges
		for len(ranges) > 0 && ranges[0].GetStart().GetLineNumber() <= number {
			seen = max(seen, lastLine(ranges[0]))
			ranges = ranges[1:]
		}
		near := seen > 0 && number <= seen+after || len(ranges) > 0 && number+before >= ranges[0].GetStart().GetLineNumber()
		switch {
		case !near:
			run = nil
		case run == nil:
			run = &searchv1.ChunkMatch{ContentStart: &searchv1.Location{ByteOffset: offset, LineNumber: number, Column: 1}}
			runs = append(runs, run)
			fallthrough
		default:
			run.Content = append(run.Content, line...)
			run.Ranges = append(run.Ranges, began[:len(began)-len(ranges)]...)
		}
		number++
		offset += uint32(len(line))
	}
	return runs
}

// lastLine is the last line that a match has a byte in.
func lastLine(r *searchv1.Range) uint32 {
	end := r.GetEnd()
	if end.GetColumn() == 1 && end.GetLineNumber() > r.GetStart().GetLineNumber() {
		return end.GetLineNumber() - 1
	}
	return end.GetLineNumber()
}
