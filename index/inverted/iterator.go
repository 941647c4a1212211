package inverted

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
	tail   tailReader
	done   bool
	err    error
}

// Reset moves the iterator before the first posting of a list.
func (it *Iterator) Reset(l List) {
	it.list = l
	it.rewind()
}

// rewind moves before the first posting.
func (it *Iterator) rewind() {
	it.block, it.known, it.number, it.i, it.first = nil, 0, -1, 0, 0
	it.done, it.err = false, nil
	it.tail.reset()
}

// release drops the list and keeps the memory.
func (it *Iterator) release() {
	it.list, it.block, it.done = List{}, nil, true
	it.tail.ends, it.tail.defs, it.tail.masks.bits.data = blockEnds{}, definitions{}, nil
}

// Next moves to the next posting; false at the end or after an error.
func (it *Iterator) Next() bool {
	if it.done || !it.step() {
		it.done = true
		return false
	}
	return true
}

// SeekGE moves to the first posting whose superblock is at least the given one, and never back: it
// stays at the current posting if that is far enough. It returns false if there is none, or after
// an error.
func (it *Iterator) SeekGE(superblock uint32) bool {
	if it.done {
		return false
	}
	if it.number >= 0 && it.Superblock() >= superblock {
		return true
	}
	it.done = !it.seek(superblock)
	return !it.done
}

// Block moves to the first posting after the blocks returned so far, and returns the postings of its
// block, valid until the next call: superblocks and, for words, counts. It is meant for reading
// whole lists. Do not mix it with Next and SeekGE. It returns no superblocks at the end or after an
// error.
func (it *Iterator) Block() (superblocks []uint32, counts []uint16) {
	if it.done || it.number+1 >= it.list.raw.blocks() || !it.load(it.number+1) || !it.decode(math.MaxUint64) {
		it.done = true
		return nil, nil
	}
	return it.block, it.tail.counts[:len(it.block)]
}

// DefinedBlock is Block for the next block with a definition of the word. Of other blocks it decodes
// only the marks of definitions.
func (it *Iterator) DefinedBlock() (superblocks []uint32) {
	for number := it.number + 1; !it.done && number < it.list.raw.blocks(); number++ {
		if err := it.tail.open(&it.list, number); err != nil {
			it.fail(err)
			break
		}
		if it.tail.defs.any() {
			it.number = number - 1
			superblocks, _ = it.Block()
			return superblocks
		}
	}
	it.done = true
	return nil
}

// Superblock returns the superblock of the current posting. Like Count, Mask and Defined it must
// follow a Next or SeekGE that returned true.
func (it *Iterator) Superblock() uint32 { return it.block[it.i] }

// Count returns how often the word starts in the superblock.
func (it *Iterator) Count() uint16 { return it.tail.counts[it.i] }

// Defined reports whether the word is defined in the superblock. It reads one bit.
func (it *Iterator) Defined() bool { return it.tail.defs.at(it.i) }

// DefinedAt is Defined for superblock i of those that Block returned last.
func (it *Iterator) DefinedAt(i int) bool { return it.tail.defs.at(i) }

// Mask returns the blocks of the superblock in which the term starts, bit j for block j, or 0 after
// an error. Only calls of it and of Masks read masks.
func (it *Iterator) Mask() uint8 {
	if it.number < 0 {
		return 0
	}
	mask, err := it.maskOf(it.number, it.i)
	it.done = it.done || err != nil
	return mask
}

// Masks returns the masks of the postings that Block returned last. They are valid until the next
// call of Block.
func (it *Iterator) Masks() ([]uint8, error) {
	if _, err := it.maskOf(it.number, len(it.block)-1); err != nil {
		return nil, err
	}
	return it.tail.masks.masks[:len(it.block)], nil
}

// maskOf returns mask i of a block, which need not be the current one.
func (it *Iterator) maskOf(number, i int) (uint8, error) {
	if number == it.tail.number && i < it.tail.masks.n {
		return it.tail.masks.masks[i], nil
	}
	var superblocks []uint32
	if number == it.number {
		superblocks = it.block[:it.known]
	}
	mask, err := it.tail.mask(&it.list, number, i, superblocks)
	if err != nil && it.err == nil {
		it.err = err
	}
	return mask, err
}

// Err returns the error that ended the iteration, nil at the end of the list.
func (it *Iterator) Err() error { return it.err }

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

// load opens a block and moves to its start. It reads the counts of words.
func (it *Iterator) load(number int) bool {
	if it.err != nil {
		return false
	}
	block, err := it.reader.open(&it.list.raw, number, &it.values)
	if err != nil {
		return it.fail(it.list.corrupt(err))
	}
	if it.list.index.words {
		if err := it.tail.openCounts(&it.list, number, len(block)); err != nil {
			return it.fail(err)
		}
	}
	it.block, it.number, it.i, it.first = block, number, 0, it.list.raw.firstOf(number)
	it.known = it.reader.known(block)
	return true
}

// decode continues decoding the block until a value is at least x, or to its end.
func (it *Iterator) decode(x uint64) bool {
	if it.known < len(it.block) {
		if err := it.reader.until(x); err != nil {
			return it.fail(it.list.corrupt(err))
		}
		it.known = it.reader.known(it.block)
	}
	return true
}

// fail drops a corrupt block.
func (it *Iterator) fail(err error) bool {
	it.err, it.block, it.number = err, nil, -1
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
			return it.fail(it.list.corrupt(errListSkips))
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
