package inverted

import (
	"math/rand/v2"
	"testing"

	"github.com/trawl-search/trawl/index/format"
)

// TestTailsAreHeldOnce writes many tails: the writer keeps as many bytes as they take in
// the section, without the spare room of a buffer that grows by copying.
func TestTailsAreHeldOnce(t *testing.T) {
	const superblocks = 5000
	rng := rand.New(rand.NewPCG(1, 2))
	blocks := make([]uint8, superblocks)
	numbers, masks, counts := make([]uint32, superblocks), make([]uint8, superblocks), make([]uint16, superblocks)
	for i := range blocks {
		blocks[i], numbers[i], masks[i], counts[i] = 8, uint32(i), uint8(1+rng.IntN(255)), uint16(1+rng.IntN(100))
	}
	w := newWriter(&discarded{}, wordTags, blocks)
	for range 100 {
		w.append(&run{numbers, masks, counts, make([]bool, superblocks)})
	}
	held := cap(w.tails.data)
	for _, piece := range w.full {
		held += cap(piece)
	}
	if limit := int(w.table.tails.last) * 5 / 4; len(w.full) == 0 || held > limit {
		t.Errorf("the writer holds %d bytes for tails of %d in %d pieces, want at most %d", held, w.table.tails.last, len(w.full), limit)
	}
	if err := w.close(); err != nil {
		t.Fatal(err)
	}
}

// discarded takes sections and drops them.
type discarded struct{}

func (*discarded) Begin(format.Tag, format.Flags) error                { return nil }
func (*discarded) Write(data []byte) (int, error)                      { return len(data), nil }
func (*discarded) End() error                                          { return nil }
func (*discarded) WriteSection(format.Tag, format.Flags, []byte) error { return nil }
