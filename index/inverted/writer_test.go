package inverted

import (
	"io"
	"math/rand/v2"
	"testing"
)

// TestListsAreHeldInPieces writes many lists: the writer holds as many bytes as they take in the
// sections, without the spare room of a buffer that grows by copying.
func TestListsAreHeldInPieces(t *testing.T) {
	const superblocks = 5000
	rng := rand.New(rand.NewPCG(1, 2))
	blocks := make([]uint8, superblocks)
	numbers, masks, counts := make([]uint32, superblocks), make([]uint8, superblocks), make([]uint16, superblocks)
	for i := range blocks {
		blocks[i], numbers[i], masks[i], counts[i] = 8, uint32(i), uint8(1+rng.IntN(255)), uint16(1+rng.IntN(100))
	}
	w := newWriter(wordTags, blocks, inMemory)
	for range 100 {
		if err := w.append(&run{numbers, masks, counts, make([]bool, superblocks)}); err != nil {
			t.Fatal(err)
		}
	}
	held, err := w.held.WriteTo(io.Discard)
	if held += int64(w.encoder.lists.len()); err != nil || held != int64(w.table.ends.last) {
		t.Errorf("the writer holds %d bytes of lists, want %d: %v", held, w.table.ends.last, err)
	}
	if spare := cap(w.encoder.lists.data); spare > 4*pieceSize {
		t.Errorf("the writer encodes in %d bytes of memory, want at most %d", spare, 4*pieceSize)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
}
