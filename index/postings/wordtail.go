package postings

import (
	"errors"
	"math/bits"
	"slices"
)

// The tail of a word's list has, for each posting, how often the word starts in the superblock, and
// in which blocks. Its blocks have as many postings as those of the list, and can be decoded
// separately: a bit that says whether definitions are marked, and if so a bit for each posting;
// then the counts in gamma codes; then the masks, coded like other masks.

// maxCountBits is the number of zeros at the start of the code of MaxCount.
const maxCountBits = 11

var errTail = errors.New("counts of a word end too early, or are too large")

// tailEncoder writes tails. It reuses its memory from list to list.
type tailEncoder struct{ several blocksEncoder }

// append appends the tail of a list of superblocks.
func (e *tailEncoder) append(w *bitWriter, blocks []uint8, superblocks []uint32, masks []uint8, counts []uint16, defined []bool) {
	if len(superblocks) <= blockSize {
		w.tailBlock(blocks, superblocks, masks, counts, defined)
		w.pad()
		return
	}
	e.several.reset()
	for chunk := range slices.Chunk(superblocks, blockSize) {
		n := len(chunk)
		e.several.body.tailBlock(blocks, chunk, masks[:n], counts[:n], defined[:n])
		e.several.end()
		masks, counts, defined = masks[n:], counts[n:], defined[n:]
	}
	e.several.appendTo(w)
}

func (w *bitWriter) tailBlock(blocks []uint8, superblocks []uint32, masks8 []uint8, counts []uint16, defined []bool) {
	w.room(8 + 5*len(counts))
	w.definitions(defined)
	for _, n := range counts {
		w.gamma(uint32(n))
	}
	w.masks(masks(), blocks, superblocks, masks8)
}

// definitions marks the postings in whose superblock the word is defined, if there are any.
func (w *bitWriter) definitions(defined []bool) {
	if !slices.Contains(defined, true) {
		w.put(0, 1)
		return
	}
	w.put(1, 1)
	for _, d := range defined {
		bit := uint64(0)
		if d {
			bit = 1
		}
		w.put(bit, 1)
	}
}

// tailReader reads the tail of one list, block by block.
type tailReader struct {
	ends blockEnds
	bits bitReader // of the open block
	end  uint      // in bits
	defs definitions
}

// open finds block number of a list, and decodes its counts. The masks follow them.
func (r *tailReader) open(l *WordList, number int, counts []uint16) error {
	if err := r.openDefinitions(l, number, len(counts)); err != nil {
		return err
	}
	if err := r.bits.counts(counts); err != nil || r.bits.pos > r.end {
		return l.index.tails.Corruptf(l.tailFrom, "%v", errTail)
	}
	return nil
}

// openDefinitions is open for only the definitions of n postings.
func (r *tailReader) openDefinitions(l *WordList, number, n int) (err error) {
	if r.bits, r.end, err = r.ends.block(&l.index.tails, l.tailFrom, l.tailTo, l.raw.blocks(), number); err == nil {
		r.defs = r.bits.definitions(n)
	}
	return err
}

// definitions says for each posting of a block whether the word is defined in its superblock. It
// reads the bits in place; the zero value has none.
type definitions struct {
	data []byte
	pos  uint // in bits; 0 if none is marked, since another bit precedes them
}

// definitions skips the marks of n postings.
func (r *bitReader) definitions(n int) definitions {
	if r.get(1) == 0 {
		return definitions{}
	}
	d := definitions{r.data, r.pos}
	r.pos += uint(n)
	return d
}

// any reports whether a posting of the block is marked.
func (d *definitions) any() bool { return d.pos > 0 }

// at reports whether posting i of the block is marked.
func (d *definitions) at(i int) bool {
	at := d.pos + uint(i)
	return d.pos > 0 && at/8 < uint(len(d.data)) && d.data[at/8]>>(at%8)&1 == 1
}

// counts decodes gamma codes of counts up to MaxCount, as many at once as one load certainly has.
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

// masks prepares decoding the masks of the block that open has opened.
func (r *tailReader) masks(b *maskBlock) { b.reset(r.bits, r.end) }
