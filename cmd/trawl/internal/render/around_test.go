package render

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestAroundHasEveryLine: a chunk has one line more around its match than is shown. Exactly the
// near lines remain, including empty ones at its ends.
func TestAroundHasEveryLine(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var lines [][]byte
		for range 1 + rng.IntN(9) {
			lines = append(lines, []byte([]string{"", "", "x", "fish"}[rng.IntN(4)]))
		}
		at := rng.IntN(len(lines))
		lines[at] = []byte("needle")
		text := bytes.Join(lines, []byte("\n"))
		if rng.IntN(2) == 0 {
			text = append(text, '\n') // the last line's own
		} else if len(lines[len(lines)-1]) == 0 {
			continue // no line at all
		}
		before, after := rng.IntN(3), 1+rng.IntN(3)
		most := max(before, after) + 1

		// As searchers cut it: up to the line break of the last line, or to the end of the file.
		from := max(at-most, 0)
		start := len(bytes.Join(lines[:from], []byte("\n"))) + min(from, 1)
		end := len(text)
		if to := at + most; to < len(lines)-1 {
			end = len(bytes.Join(lines[:to+1], []byte("\n")))
		} else if to == len(lines)-1 {
			end = len(bytes.TrimSuffix(text, []byte("\n")))
		}
		place := uint32(len(bytes.Join(lines[:at], []byte("\n"))) + min(at, 1))
		chunk := &searchv1.ChunkMatch{
			Content:      text[start:end],
			ContentStart: &searchv1.Location{ByteOffset: uint32(start), LineNumber: uint32(from + 1), Column: 1},
			Ranges: []*searchv1.Range{{
				Start: &searchv1.Location{ByteOffset: place, LineNumber: uint32(at + 1), Column: 1},
				End:   &searchv1.Location{ByteOffset: place + 6, LineNumber: uint32(at + 1), Column: 7},
			}},
		}
		var got, want []uint32
		for _, c := range Around(&searchv1.FileMatch{Chunks: []*searchv1.ChunkMatch{chunk}}, uint32(before), uint32(after)).GetChunks() {
			for _, line := range linesOf(c, false) {
				got = append(got, line.number)
			}
		}
		for i := max(at-before, 0); i <= min(at+after, len(lines)-1); i++ {
			want = append(want, uint32(i+1))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q, line %d, %d before and %d after: lines %d, want %d", text, at+1, before, after, got, want)
		}
	}
}
