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
type tailEncoder struct {
	body bitWriter
	ends []uint32 // in bits
}

// append appends the tail of a list of superblocks.
func (e *tailEncoder) append(w *bitWriter, blocks []uint8, superblocks []uint32, masks []uint8, counts []uint16) {
	if len(superblocks) <= blockSize {
		w.tailBlock(blocks, superblocks, masks, counts)
		w.pad()
		return
	}
	e.body.reset()
	e.ends = e.ends[:0]
	for chunk := range slices.Chunk(superblocks, blockSize) {
		n := len(chunk)
		e.body.tailBlock(blocks, chunk, masks[:n], counts[:n])
		e.ends = append(e.ends, uint32(e.body.bitLen()))
		masks, counts = masks[n:], counts[n:]
	}
	skips := len(e.ends) - 1
	width := uint(bits.Len32(e.ends[skips]))
	w.room(1)
	w.put(uint64(width), 8)
	w.packed(e.ends[:skips], width)
	w.pad()
	w.bits(&e.body)
	w.pad()
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
	opened bool
	width  uint
	ends   []byte // packed, of every block but the last one
	start  int64  // of the first block in the section
	bits   bitReader
	end    uint
}

// open finds block number of a list, and decodes its counts. After it the masks follow.
func (r *tailReader) open(l *WordList, number int, counts []uint16) error {
	if !r.opened {
		if err := r.openEnds(l); err != nil {
			return err
		}
	}
	from, to := uint64(0), uint64(l.tailTo-r.start)*8
	if number > 0 {
		from = packedAt(r.ends, 0, number-1, r.width)
	}
	if number < l.raw.blocks()-1 {
		to = min(to, packedAt(r.ends, 0, number, r.width))
	}
	if from > to {
		return l.index.tails.Corruptf(r.start, "a block of counts starts at bit %d and ends at bit %d", from, to)
	}
	first := r.start + int64(from/8)
	data, err := l.index.tails.Bytes(first, r.start+int64(byteLen(to))-first)
	if err != nil {
		return err
	}
	r.bits, r.end = bitReader{data: data, pos: uint(from % 8)}, uint(to-from/8*8)
	r.bits.passDefinitions(len(counts))
	if err := r.bits.counts(counts); err != nil || r.bits.pos > r.end {
		return l.index.tails.Corruptf(first, "%v", errTail)
	}
	return nil
}

// openEnds finds the ends of the list's blocks.
func (r *tailReader) openEnds(l *WordList) error {
	r.start = l.tailFrom
	if skips := l.raw.blocks() - 1; skips > 0 {
		width, err := l.index.tails.Bytes(l.tailFrom, 1)
		if err != nil {
			return err
		}
		if r.width = uint(width[0]); r.width > 32 {
			return l.index.tails.Corruptf(l.tailFrom, "ends of %d bits", r.width)
		}
		size := int64(byteLen(uint64(skips) * uint64(r.width)))
		if r.ends, err = l.index.tails.Bytes(l.tailFrom+1, size); err != nil {
			return err
		}
		r.start += 1 + size
	}
	if r.start > l.tailTo {
		return l.index.tails.Corruptf(l.tailFrom, "%v", errTail)
	}
	r.opened = true
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
func (r *tailReader) masks(b *maskBlock) {
	b.bits, b.end, b.n = r.bits, r.end, 0
	b.codes = &masks().decode[b.bits.get(maskClassBits)]
}
