package postings

// WordIterator walks the posting list of a word in ascending order of superblocks. It keeps one block, and allocates
// nothing. It is not safe for concurrent use.
type WordIterator struct {
	list        WordList
	superblocks []uint32 // of the block
	counts      [blockSize]uint16
	block       maskBlock // and its superblocks
	tail        tailReader
	number      int // of the block; -1 before the first one
	i           int // in the block
	masked      bool
	done        bool
	err         error
}

// Reset moves the iterator before the first posting of a list.
func (it *WordIterator) Reset(l WordList) {
	it.list = l
	it.tail = tailReader{}
	it.superblocks, it.number, it.i, it.masked, it.done, it.err = nil, -1, 0, false, false, nil
}

// Next moves to the next posting; false at the end or after an error.
func (it *WordIterator) Next() bool {
	if it.done {
		return false
	}
	if it.i++; it.number >= 0 && it.i < len(it.superblocks) {
		return true
	}
	return it.load(it.number + 1)
}

// Block moves to the first posting after the blocks returned so far, and returns the postings of its block:
// superblocks and counts, valid until the next call. It is meant for reading whole lists. Do not mix it with Next and
// SeekGE. It returns no superblocks at the end or after an error.
func (it *WordIterator) Block() (superblocks []uint32, counts []uint16) {
	if it.done || !it.load(it.number+1) {
		return nil, nil
	}
	return it.superblocks, it.counts[:len(it.superblocks)]
}

// DefinedBlock is Block for the next block with a definition of the word. Of other blocks it decodes
// only the marks of definitions.
func (it *WordIterator) DefinedBlock() (superblocks []uint32) {
	for number := it.number + 1; !it.done; number++ {
		if number == it.list.raw.blocks() {
			it.done = true
			break
		}
		if err := it.tail.openDefinitions(&it.list, number, it.list.raw.blockLen(number)); err != nil {
			it.fail(err)
			break
		}
		if it.tail.defs.any() && it.load(number) {
			return it.superblocks
		}
	}
	return nil
}

// SeekGE moves to the first posting whose superblock is at least the given one, and never back. It returns false if
// there is none, or after an error.
func (it *WordIterator) SeekGE(superblock uint32) bool {
	if it.done {
		return false
	}
	if it.number >= 0 && it.superblocks[it.i] >= superblock {
		return true
	}
	if superblock > it.list.raw.last {
		it.done = true
		return false
	}
	if it.number < 0 || it.superblocks[len(it.superblocks)-1] < superblock {
		if !it.load(it.list.raw.blockAfter(it.number, superblock)) {
			return false
		}
		if it.superblocks[len(it.superblocks)-1] < superblock {
			return it.fail(it.list.corrupt(errListSkips))
		}
	}
	it.i = seekIn(it.superblocks, it.i, superblock)
	return true
}

// load decodes a block and moves to its start.
func (it *WordIterator) load(number int) bool {
	if number >= it.list.raw.blocks() {
		it.done = true
		return false
	}
	block, err := it.list.raw.decode(number, &it.block.superblocks)
	if err != nil {
		return it.fail(it.list.corrupt(err))
	}
	it.superblocks, it.number, it.i, it.masked = block, number, 0, false
	if err := it.tail.open(&it.list, number, it.counts[:len(block)]); err != nil {
		return it.fail(err)
	}
	return true
}

func (it *WordIterator) fail(err error) bool {
	it.err, it.done = err, true
	return false
}

// Superblock returns the superblock of the current posting. Like Count and Mask it must follow a Next or SeekGE that
// returned true. Mask has bit j for block j, and is 0 after an error.
func (it *WordIterator) Superblock() uint32 { return it.superblocks[it.i] }

// Count returns how often the word starts in the superblock.
func (it *WordIterator) Count() uint16 { return it.counts[it.i] }

// Defined reports whether the word is defined in the superblock. It reads one bit.
func (it *WordIterator) Defined() bool { return it.tail.defs.at(it.i) }

// DefinedAt is Defined for superblock i of those that Block returned last.
func (it *WordIterator) DefinedAt(i int) bool { return it.tail.defs.at(i) }

// AnyDefined reports whether the word is defined in any superblock of the list's current block.
func (it *WordIterator) AnyDefined() bool { return it.tail.defs.any() }

// Mask returns the blocks in which the word starts.
func (it *WordIterator) Mask() uint8 {
	if !it.masked {
		it.tail.masks(&it.block)
		it.masked = true
	}
	mask, err := it.block.at(it.i, it.list.blocks)
	if err != nil {
		it.fail(it.list.index.tails.Corruptf(it.list.tailFrom, "%v", err))
	}
	return mask
}

// Masks returns the masks of the postings that Block returned last. They are valid until the next call of Block.
func (it *WordIterator) Masks() ([]uint8, error) {
	it.tail.masks(&it.block)
	n := len(it.superblocks)
	if _, err := it.block.at(n-1, it.list.blocks); err != nil {
		return nil, it.list.index.tails.Corruptf(it.list.tailFrom, "%v", err)
	}
	return it.block.masks[:n], nil
}

// Err returns the error that ended the iteration, nil at the end of the list.
func (it *WordIterator) Err() error { return it.err }
