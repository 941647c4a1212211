package inverted

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
)

// MaxCount is the most often that a word can start in one superblock: other bytes separate any two
// words.
const MaxCount = 2048

// maxCountBits is the number of zeros at the start of the code of MaxCount.
const maxCountBits = 11

var (
	errCounts = errors.New("counts of a word end too early, or are too large")
	errMasks  = errors.New("a block of masks ends too early, or belongs to superblocks without terms")
)

// run has the postings of one term. Those of an n-gram have no counts and definitions.
type run struct {
	superblocks []uint32 // ascending
	masks       []uint8
	counts      []uint16
	defined     []bool
}

// part returns the postings from one to another.
func (r *run) part(from, to int) run {
	if len(r.counts) == 0 {
		return run{superblocks: r.superblocks[from:to], masks: r.masks[from:to]}
	}
	return run{r.superblocks[from:to], r.masks[from:to], r.counts[from:to], r.defined[from:to]}
}

// tailEncoder writes the tails of lists. It reuses its memory from list to list.
type tailEncoder struct{ several blocksEncoder }

// append appends the tail of a list. blocks has, for each superblock of the index, the number of its
// blocks in which terms start.
func (e *tailEncoder) append(w *bitWriter, blocks []uint8, r *run) {
	if len(r.superblocks) <= blockSize {
		w.tail(blocks, r)
		w.pad()
		return
	}
	e.several.reset()
	for start := 0; start < len(r.superblocks); start += blockSize {
		part := r.part(start, min(start+blockSize, len(r.superblocks)))
		e.several.body.tail(blocks, &part)
		e.several.end()
	}
	e.several.appendTo(w)
}

// tail appends a block of a tail: for words the definitions and counts, then the masks.
func (w *bitWriter) tail(blocks []uint8, r *run) {
	if len(r.counts) > 0 {
		w.room(8 + 5*len(r.counts))
		w.definitions(r.defined)
		for _, n := range r.counts {
			w.gamma(uint32(n))
		}
	}
	w.masks(blocks, r.superblocks, r.masks)
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

// masks appends a block of masks. It inlines put, with the writer's state in registers.
func (w *bitWriter) masks(blocks []uint8, superblocks []uint32, values []uint8) {
	w.room((len(values) + 1) * 2)
	class := maskClass(values)
	w.put(uint64(class), maskClassBits)
	table := &masks().codes[class]
	data, at, pending, n := w.data, w.at, w.pending, w.n
	for i, s := range superblocks {
		code := table[(blocks[s]-1)%maskBlocks][values[i]]
		pending |= uint64(code>>codeLengthBits) << (n % 64)
		n += uint(code % (1 << codeLengthBits))
		binary.LittleEndian.PutUint64(data[at:], pending)
		at += int(n / 8)
		pending >>= n & 56
		n %= 8
	}
	w.at, w.pending, w.n = at, pending, n
}

// tailReader reads the tail of one list, block by block as needed.
type tailReader struct {
	ends   blockEnds
	number int // of the open block; -1 for none
	defs   definitions
	counts [blockSize]uint16
	masks  maskBlock
}

// reset prepares the reader for another list.
func (r *tailReader) reset() { r.ends.opened, r.number = false, -1 }

// open opens block number of a list. It reads the definitions of words, and no counts.
func (r *tailReader) open(l *List, number int) (err error) {
	r.number = -1
	var bits bitReader
	var end uint
	if blocks := l.raw.blocks(); blocks > 1 {
		bits, end, err = r.ends.block(&l.index.tails, l.tailFrom, l.tailTo, blocks, number)
	} else {
		bits.data, err = l.index.tails.Bytes(l.tailFrom, l.tailTo-l.tailFrom)
		end = uint(len(bits.data)) * 8
	}
	if err != nil {
		return err
	}
	r.number, r.defs = number, definitions{}
	if l.index.words {
		r.defs = bits.definitions(l.raw.blockLen(number))
	}
	r.masks.reset(bits, end)
	return nil
}

// openCounts opens block number of the list of a word, which has n postings, and reads the counts.
func (r *tailReader) openCounts(l *List, number, n int) error {
	if err := r.open(l, number); err != nil {
		return err
	}
	if err := r.masks.bits.counts(r.counts[:n]); err != nil || r.masks.bits.pos > r.masks.end {
		return l.corruptTail(errCounts)
	}
	return nil
}

// mask returns mask i of block number of the list. superblocks are those of the block, at least up
// to i, or nil if the caller does not have them.
func (r *tailReader) mask(l *List, number, i int, superblocks []uint32) (uint8, error) {
	if number != r.number {
		if err := r.open(l, number); err != nil {
			return 0, err
		}
	}
	if i >= r.masks.known {
		if err := r.learn(l, i, superblocks); err != nil {
			return 0, err
		}
	}
	mask, err := r.masks.at(i, l.blocks)
	if err != nil {
		r.number = -1
		return 0, l.corruptTail(err)
	}
	return mask, nil
}

// learn makes sure that masks has the superblocks of the block up to i.
func (r *tailReader) learn(l *List, i int, superblocks []uint32) error {
	if i < len(superblocks) {
		r.masks.known += copy(r.masks.superblocks[r.masks.known:], superblocks[r.masks.known:])
		return nil
	}
	block, err := l.raw.decode(r.number, &r.masks.superblocks)
	if err != nil {
		r.number = -1
		return l.corrupt(err)
	}
	r.masks.known = len(block)
	return nil
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
				return errCounts
			}
			counts[i] = uint16(n)
			v >>= 2*k + 1
			used += 2*k + 1
		}
		r.pos += used
	}
	return nil
}

// maskBlock decodes the masks of one block, as far as needed.
type maskBlock struct {
	codes       *[maskBlocks][1 << maskCodeBits]uint16
	bits        bitReader
	end         uint // in bits
	known, n    int  // number of superblocks, and of masks decoded
	masks       [blockSize]uint8
	superblocks [blockSize]uint32
}

// reset starts the block in the bits up to an end. The caller sets known, and as many superblocks,
// before it calls at for one of them.
func (b *maskBlock) reset(r bitReader, end uint) {
	b.bits, b.end, b.known, b.n, b.codes = r, end, 0, 0, nil
}

// at returns mask i of the block, given the block counts of superblocks. It decodes as many masks
// at once as the bits of one load certainly have.
func (b *maskBlock) at(i int, blocks blockCounts) (uint8, error) {
	if b.codes == nil {
		b.codes = &masks().decode[b.bits.get(maskClassBits)]
	}
	for b.n <= i {
		v, used, n := b.bits.load(), uint(0), min(b.known, b.n+loadedBits/maskCodeBits)
		for j := b.n; j < n; j++ {
			count := blocks.at(b.superblocks[j])
			code := b.codes[(count-1)%maskBlocks][v%(1<<maskCodeBits)]
			length := uint(code % (1 << codeLengthBits))
			v >>= length
			used += length
			if count-1 >= maskBlocks {
				return 0, errMasks
			}
			b.masks[j] = uint8(code >> codeLengthBits)
		}
		b.bits.pos += used
		if b.bits.pos > b.end {
			return 0, errMasks
		}
		b.n = n
	}
	return b.masks[i], nil
}

// blockCounts has, for each superblock, the number of its blocks in which terms start, in four bits
// each, the first in the lower half of a byte.
type blockCounts []byte

func appendBlockCounts(dst []byte, blocks []uint8) []byte {
	for pair := range slices.Chunk(blocks, 2) {
		both := pair[0]
		if len(pair) > 1 {
			both |= pair[1] << 4
		}
		dst = append(dst, both)
	}
	return dst
}

// blockCountsSize returns the bytes that the counts of that many superblocks take.
func blockCountsSize(superblocks uint32) uint64 { return (uint64(superblocks) + 1) / 2 }

// at returns the count of a superblock of the index.
func (c blockCounts) at(superblock uint32) uint8 {
	return c[superblock/2] >> (superblock % 2 * 4) & 15
}
