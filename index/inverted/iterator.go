package inverted

import (
	"cmp"
	"errors"
	"slices"
)

var errListSkips = errors.New("the skip array of a posting list does not ascend")

// Iterator walks a posting list in ascending order of superblocks. It keeps one block and allocates nothing. It is not safe for concurrent use.
type Iterator struct {
	list  List
	block postings
	i     int // in the block
	done  bool
	err   error
}

// Reset moves the iterator before the first posting of a list.
func (it *Iterator) Reset(l List) {
	it.list = l
	it.rewind()
}

// rewind moves before the first posting.
func (it *Iterator) rewind() { it.block.number, it.i, it.done, it.err = -1, 0, false, nil }

// release drops the list and keeps the memory.
func (it *Iterator) release() {
	it.list, it.done = List{}, true
	it.block.number, it.block.defs, it.block.bits.data = -1, definitions{}, nil
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
	if it.block.number >= 0 && it.Superblock() >= superblock {
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
	if it.done || !it.load(it.block.number+1) {
		it.done = true
		return nil, nil
	}
	return it.block.superblocks[:it.block.n], it.block.counts[:it.block.n]
}

// DefinedBlock is Block for the next block with a definition of the word. Of other blocks it reads only whether they have one.
func (it *Iterator) DefinedBlock() (superblocks []uint32) {
	for number := it.block.number + 1; !it.done && number < it.list.blocks(); number++ {
		defs, err := it.block.definitions(&it.list, number)
		if err != nil {
			it.fail(err)
			break
		}
		if defs.any() && it.load(number) {
			return it.block.superblocks[:it.block.n]
		}
	}
	it.done = true
	return nil
}

// Superblock returns the superblock of the current posting. Like Count, Mask and Defined it must
// follow a Next or SeekGE that returned true.
func (it *Iterator) Superblock() uint32 { return it.block.superblocks[it.i] }

// Count returns how often the word starts in the superblock.
func (it *Iterator) Count() uint16 { return it.block.counts[it.i] }

// Defined reports whether the word is defined in the superblock. It reads one bit.
func (it *Iterator) Defined() bool { return it.block.defs.at(it.i) }

// DefinedAt is Defined for superblock i of those that Block returned last.
func (it *Iterator) DefinedAt(i int) bool { return it.block.defs.at(i) }

// Mask returns the blocks of the superblock in which the term starts, bit j for block j, or 0 after
// an error. Only calls of it and of Masks read masks.
func (it *Iterator) Mask() uint8 {
	if it.block.number < 0 {
		return 0
	}
	mask, err := it.maskOf(it.block.number, it.i)
	it.done = it.done || err != nil
	return mask
}

// Masks returns the masks of the postings that Block returned last. They are valid until the next
// call of Block.
func (it *Iterator) Masks() ([]uint8, error) {
	if _, err := it.maskOf(it.block.number, it.block.n-1); err != nil {
		return nil, err
	}
	return it.block.masks[:it.block.n], nil
}

// maskOf returns mask i of a block, which need not be the current one.
func (it *Iterator) maskOf(number, i int) (mask uint8, err error) {
	if number == it.block.number {
		mask, err = it.block.mask(&it.list, i)
	} else {
		var other postings
		if err = other.open(&it.list, number); err == nil {
			mask, err = other.mask(&it.list, i)
		}
	}
	it.err = cmp.Or(it.err, err)
	return mask, err
}

// Err returns the error that ended the iteration, nil at the end of the list.
func (it *Iterator) Err() error { return it.err }

// step advances by one.
func (it *Iterator) step() bool {
	if it.block.number >= 0 && it.i+1 < it.block.n {
		it.i++
		return true
	}
	return it.load(it.block.number + 1)
}

// load reads a block, if there is one of this number, and moves to its start.
func (it *Iterator) load(number int) bool {
	if it.err != nil || number >= it.list.blocks() {
		return false
	}
	if err := it.block.open(&it.list, number); err != nil {
		return it.fail(err)
	}
	it.i = 0
	return true
}

// fail drops a corrupt block.
func (it *Iterator) fail(err error) bool {
	it.err, it.block.number = err, -1
	return false
}

// seek moves to the first superblock that is at least x, forwards or backwards. If it returns
// false, it has not moved.
func (it *Iterator) seek(x uint32) bool {
	if x > it.list.last || it.err != nil {
		return false
	}
	b := &it.block
	if b.number < 0 || uint64(x) < b.first || x > b.last() {
		number := 0
		if b.number >= 0 && uint64(x) < b.first {
			number = it.list.search(x, 0, b.number)
		} else {
			number = it.list.blockAfter(b.number, x)
		}
		if !it.load(number) {
			return false
		}
		if x > b.last() {
			return it.fail(it.list.corrupt(errListSkips))
		}
	}
	it.i = seekIn(b.superblocks[:b.n], it.i, x)
	return true
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
