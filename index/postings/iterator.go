package postings

import (
	"errors"
	"math"
	"slices"
)

var errListSkips = errors.New("the skip array of a posting list does not ascend")

// Iterator walks a posting list in ascending order of superblocks. It keeps one block, decoded as
// far as the seeks in it needed, and allocates nothing. It is not safe for concurrent use.
type Iterator struct {
	list   List
	values [blockSize]uint32
	block  []uint32 // the part of values that belongs to the block
	known  int      // number of decoded values of the block
	reader blockReader
	number int    // of the block; -1 before the first one
	i      int    // in the block
	first  uint64 // least superblock that may be in the block
	masks  maskReader
	loads  uint32 // blocks opened, of superblocks or of masks
	done   bool
	err    error
}

// Iterator returns an iterator before the first posting. It reuses the given one unless that is
// nil.
func (l *List) Iterator(reuse *Iterator) *Iterator {
	if reuse == nil {
		reuse = new(Iterator)
	}
	it := reuse
	it.list = *l
	it.block, it.number, it.i, it.first = nil, -1, 0, 0
	it.done, it.err, it.loads = false, nil, 0
	it.masks.reset()
	return it
}

// release drops the list and keeps the memory.
func (it *Iterator) release() {
	it.list, it.block, it.done = List{}, nil, true
	it.masks.ends, it.masks.block.bits.data = blockEnds{}, nil
}

// Next moves to the next posting and returns its superblock; false at the end or
// after an error.
func (it *Iterator) Next() (superblock uint32, ok bool) {
	if it.done || !it.step() {
		it.done = true
		return 0, false
	}
	return it.value(), true
}

// SeekGE moves to the first posting whose superblock is at least the given one, and returns it. It
// never moves back: it stays at the current posting if that is far enough.
func (it *Iterator) SeekGE(superblock uint32) (uint32, bool) {
	if !it.done && it.number >= 0 && it.value() >= superblock {
		return it.value(), true
	}
	if it.done || !it.seek(superblock) {
		it.done = true
		return 0, false
	}
	return it.value(), true
}

// Mask returns the blocks of the current superblock in which the n-gram starts, bit j for block j.
// Only calls of it read masks. It must follow a Next or SeekGE that returned true.
func (it *Iterator) Mask() (uint8, error) {
	if it.done || it.number < 0 {
		return 0, it.err
	}
	return it.maskOf(it.number, it.i)
}

// maskOf returns mask i of a block, which need not be the current one.
func (it *Iterator) maskOf(number, i int) (uint8, error) {
	var superblocks []uint32
	if number == it.number {
		superblocks = it.block[:it.known]
	}
	if number != it.masks.number {
		it.loads++
	}
	mask, err := it.masks.at(&it.list, number, i, superblocks)
	if err != nil && it.err == nil {
		it.err = err
	}
	return mask, err
}

// Err returns the error that ended the iteration, nil at the end of the list.
func (it *Iterator) Err() error { return it.err }

// value returns the current superblock.
func (it *Iterator) value() uint32 { return it.block[it.i] }

// step advances by one.
func (it *Iterator) step() bool {
	if it.i+1 < len(it.block) {
		it.i++
		return it.i < it.known || it.decode(math.MaxUint64)
	}
	if it.number+1 >= it.list.raw.blocks() {
		return false
	}
	return it.load(it.number+1) && it.decode(math.MaxUint64)
}

// load opens a block and moves to its start.
func (it *Iterator) load(number int) bool {
	if it.err != nil {
		return false
	}
	it.loads++
	block, err := it.reader.open(&it.list.raw, number, &it.values)
	if err != nil {
		return it.fail(err)
	}
	it.block, it.number, it.i, it.first = block, number, 0, it.list.raw.firstOf(number)
	it.known = it.reader.known(block)
	return true
}

// decode continues decoding the block until a value is at least x, or to its end.
func (it *Iterator) decode(x uint64) bool {
	if err := it.reader.until(x); err != nil {
		return it.fail(err)
	}
	it.known = it.reader.known(it.block)
	return true
}

// fail drops a corrupt block.
func (it *Iterator) fail(err error) bool {
	it.err = it.list.corrupt(err)
	it.block, it.number = nil, -1
	return false
}

// seek moves to the first superblock that is at least x, forwards or backwards. If it returns
// false, it has not moved.
func (it *Iterator) seek(x uint32) bool {
	if x > it.list.raw.last || it.err != nil {
		return false
	}
	if it.number < 0 || uint64(x) < it.first || x > it.block[len(it.block)-1] {
		if !it.load(it.findBlock(x)) {
			return false
		}
		if x > it.block[len(it.block)-1] {
			it.err = it.list.corrupt(errListSkips)
			return false
		}
	}
	if it.known == 0 || it.block[it.known-1] < x {
		if !it.decode(max(uint64(x), it.first)) {
			return false
		}
	}
	it.i = seekIn(it.block[:it.known], it.i, x)
	return true
}

// findBlock returns the block with the first superblock that is at least x, which is not above the
// last one. It uses a galloping search from the current block.
func (it *Iterator) findBlock(x uint32) int {
	if it.number >= 0 && uint64(x) < it.first {
		return it.list.raw.search(x, 0, it.number)
	}
	return it.list.raw.blockAfter(it.number, x)
}

// seekIn returns the index of the first value that is at least x; the last one is. It looks near i
// first.
func seekIn(block []uint32, i int, x uint32) int {
	if block[i] >= x {
		if i == 0 || block[i-1] < x {
			return i
		}
		found, _ := slices.BinarySearch(block[:i], x)
		return found
	}
	step := 1
	for i+step < len(block) && block[i+step] < x {
		i += step
		step *= 2
	}
	found, _ := slices.BinarySearch(block[i+1:min(i+step+1, len(block))], x)
	return i + 1 + found
}
