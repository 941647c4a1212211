package postings

import (
	"errors"
	"math/bits"
	"slices"
)

// The tail of a word's list has for each posting how often the word starts in the
// superblock, and in which blocks. It is in blocks of as many postings as the list, which
// decode one by one: a bit that says whether definitions are marked, and if so a bit for
// each posting, then the counts in gamma codes, then the masks as masks are coded.

// maxCountBits is the zeros at the start of the code of MaxCount.
const maxCountBits = 11

var errTail = errors.New("counts of a word end too early, or are too large")

// tailEncoder writes tails; its memory is reused from list to list.
type tailEncoder struct{ several blocksEncoder }

// append appends the tail of a list of superblocks.
func (e *tailEncoder) append(w *bitWriter, blocks []uint8, superblocks []uint32, masks []uint8, counts []uint16) {
	if len(superblocks) <= blockSize {
		w.tailBlock(blocks, superblocks, masks, counts)
		w.pad()
		return
	}
	e.several.reset()
	for chunk := range slices.Chunk(superblocks, blockSize) {
		n := len(chunk)
		e.several.body.tailBlock(blocks, chunk, masks[:n], counts[:n])
		e.several.end()
		masks, counts = masks[n:], counts[n:]
	}
	e.several.appendTo(w)
}

func (w *bitWriter) tailBlock(blocks []uint8, superblocks []uint32, masks8 []uint8, counts []uint16) {
	w.room(8 + 4*len(counts))
	w.put(0, 1) // no definitions
	for _, n := range counts {
		w.gamma(uint32(n))
	}
	w.masks(masks(), blocks, superblocks, masks8)
}

// tailReader reads the tail of one list, block by block.
type tailReader struct {
	ends blockEnds
	bits bitReader // of the block that is open
	end  uint      // in bits
}

// open finds block number of a list, and decodes its counts. After it the masks follow.
func (r *tailReader) open(l *WordList, number int, counts []uint16) (err error) {
	tails := &l.index.tails
	if r.bits, r.end, err = r.ends.block(tails, l.tailFrom, l.tailTo, l.raw.blocks(), number); err != nil {
		return err
	}
	r.bits.passDefinitions(len(counts))
	if err := r.bits.counts(counts); err != nil || r.bits.pos > r.end {
		return tails.Corruptf(l.tailFrom, "%v", errTail)
	}
	return nil
}

// passDefinitions passes what says which of n postings are definitions: nobody asks for it yet.
func (r *bitReader) passDefinitions(n int) {
	if r.get(1) != 0 {
		r.pos += uint(n)
	}
}

// counts decodes gamma codes of counts up to MaxCount, as many at once as one load is
// sure to hold.
func (r *bitReader) counts(counts []uint16) error {
	const enough = loadedBits - 2*maxCountBits - 1
	for i := 0; i < len(counts); {
		v, used := r.load(), uint(0)
		for ; i < len(counts) && used <= enough; i++ {
			k := uint(bits.TrailingZeros64(v | 1<<(maxCountBits+1))) // above maxCountBits, the count is above MaxCount
			n := 1<<k | v>>(k+1)&(1<<k-1)
			if n > MaxCount {
				return errTail
			}
			counts[i] = uint16(n)
			v >>= 2*k + 1
			used += 2*k + 1
		}
		r.pos += used
	}
	return nil
}

// masks makes ready to decode the masks of the block that open has opened.
func (r *tailReader) masks(b *maskBlock) { b.reset(r.bits, r.end) }
