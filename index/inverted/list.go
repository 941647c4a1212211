package inverted

import (
	"errors"
	"math/bits"
)

// MaxSuperblocks bounds the superblocks of one index: 8 TiB of text.
const MaxSuperblocks = 1 << 31

// endWidthBits is the size of the field that has the width of the ends of a list's blocks.
const endWidthBits = 6

var errListHeader = errors.New("the head of a posting list is out of its bounds")

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

// listEncoder writes posting lists. It reuses its memory from list to list.
type listEncoder struct {
	// blocks has, for each superblock of the text, the number of blocks up to the last one in which a term starts.
	blocks []uint8
	lists  bitWriter

	body        bitWriter // the blocks of one list
	lasts, ends []uint32  // of each block: its last superblock, and its end in bits
}

// append appends the list of a term, which has a posting. It returns the number of its bytes.
func (e *listEncoder) append(r *run) int {
	w, before, lastWidth := &e.lists, e.lists.len(), superblockBits(uint32(len(e.blocks)))
	w.room(32)
	w.gamma(uint32(len(r.superblocks)))
	w.put(uint64(r.superblocks[len(r.superblocks)-1]), lastWidth)
	if len(r.superblocks) <= blockSize { // nearly all lists: no ends of blocks precede it
		w.block(0, e.blocks, r)
		w.pad()
		return w.len() - before
	}
	e.body.reset()
	e.lasts, e.ends = e.lasts[:0], e.ends[:0]
	first := uint64(0)
	for from := 0; from < len(r.superblocks); from += blockSize {
		part := r.part(from, min(from+blockSize, len(r.superblocks)))
		e.body.block(first, e.blocks, &part)
		last := part.superblocks[len(part.superblocks)-1]
		e.lasts, e.ends, first = append(e.lasts, last), append(e.ends, uint32(e.body.bitLen())), uint64(last)+1
	}
	skips := len(e.ends) - 1
	width := uint(bits.Len32(e.ends[skips]))
	w.put(uint64(width), endWidthBits)
	w.packed(e.lasts[:skips], lastWidth)
	w.packed(e.ends[:skips], width)
	w.bits(&e.body)
	w.pad()
	return w.len() - before
}

// superblockBits returns the width in bits of a superblock's number in an index with that many.
func superblockBits(superblocks uint32) uint { return uint(bits.Len32(max(superblocks, 1) - 1)) }

// List is the posting list of one term. It is a view and safe for concurrent use.
type List struct {
	index *Index
	blockCounts
	span
	data []byte

	// What the head says; places in bits.
	df, last  uint32
	lastWidth uint
	endWidth  uint
	lasts     uint // of every block except the last one
	ends      uint // the same
	body      uint
}

// DF returns the number of superblocks in which the term starts, at least 1.
func (l *List) DF() uint32 { return l.df }

func (l *List) corrupt(err error) error { return l.index.lists.Corruptf(l.from, "%v", err) }

// readHead checks the head of a list that takes all of data. superblocks is the bound on its values.
func (l *List) readHead(data []byte, superblocks uint32) error {
	r := bitReader{data: data}
	l.data, l.lastWidth = data, superblockBits(superblocks)
	df := r.gamma()
	last := r.get(l.lastWidth)
	if r.overrun() || df == 0 || last >= uint64(superblocks) || df > last+1 {
		return errListHeader
	}
	l.df, l.last = uint32(df), uint32(last)
	if l.blocks() > 1 {
		l.endWidth = uint(r.get(endWidthBits))
		l.lasts = r.pos
		l.ends = l.lasts + uint(l.blocks()-1)*l.lastWidth
		r.pos = l.ends + uint(l.blocks()-1)*l.endWidth
	}
	if l.body = r.pos; r.overrun() || l.endWidth > 32 {
		return errListHeader
	}
	return nil
}

func (l *List) blocks() int { return int((uint64(l.df) + blockSize - 1) / blockSize) }

// blockLen returns the number of postings in block b.
func (l *List) blockLen(b int) int {
	if b == l.blocks()-1 {
		return int(l.df-1)%blockSize + 1
	}
	return blockSize
}

// lastOf returns the last superblock of block b.
func (l *List) lastOf(b int) uint32 {
	if b == l.blocks()-1 {
		return l.last
	}
	return uint32(packedAt(l.data, l.lasts, b, l.lastWidth))
}

// firstOf returns the least superblock that block b may have.
func (l *List) firstOf(b int) uint64 {
	if b == 0 {
		return 0
	}
	return uint64(l.lastOf(b-1)) + 1
}

// blockAfter returns the first block after b (-1 for the start) with a superblock that is at least
// x, which is not above the last one. It uses a galloping search.
func (l *List) blockAfter(b int, x uint32) int {
	from, to := b+1, l.blocks()-1
	for step := 1; from+step < to; step *= 2 {
		if l.lastOf(from+step) >= x {
			to = from + step
			break
		}
		from += step
	}
	return l.search(x, from, to)
}

// search returns the first block of [from, to) whose last superblock is at least x, or to if there
// is none.
func (l *List) search(x uint32, from, to int) int {
	for from < to {
		if mid := int(uint(from+to) / 2); l.lastOf(mid) < x {
			from = mid + 1
		} else {
			to = mid
		}
	}
	return from
}

// blockSpan returns the place of block b in the data, in bits.
func (l *List) blockSpan(b int) (from, to uint) {
	from, to = l.body, uint(len(l.data))*8
	if b < l.blocks()-1 {
		to = l.body + uint(packedAt(l.data, l.ends, b, l.endWidth))
	}
	if b > 0 {
		from += uint(packedAt(l.data, l.ends, b-1, l.endWidth))
	}
	return from, to
}
