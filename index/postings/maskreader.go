package postings

// maskReader reads the masks of one list, block by block as they are asked for.
type maskReader struct {
	opened bool
	width  uint
	ends   []byte // packed, of every block but the last one
	start  int64  // of the first block in the masks section
	number int    // of the block that is open; -1 for none
	known  int    // superblocks that it has been told
	block  maskBlock
}

// reset makes the reader ready for another list.
func (r *maskReader) reset() { r.opened, r.number = false, -1 }

// at returns mask i of block number of the list. superblocks are those of the block, up to
// i at least, or nil when they are not at hand.
func (r *maskReader) at(l *List, number, i int, superblocks []uint32) (uint8, error) {
	if number != r.number {
		if err := r.open(l, number); err != nil {
			return 0, err
		}
	}
	if err := r.learn(l, i, superblocks); err != nil {
		return 0, err
	}
	mask, err := r.block.at(i, l.blocks)
	if err != nil {
		r.number = -1
		return 0, l.index.masks.Corruptf(l.maskFrom, "%v", err)
	}
	return mask, nil
}

func (r *maskReader) open(l *List, number int) error {
	if err := r.openEnds(l); err != nil {
		return err
	}
	from, to := uint64(0), uint64(l.maskTo-r.start)*8
	if number > 0 {
		from = packedAt(r.ends, 0, number-1, r.width)
	}
	if number < l.raw.blocks()-1 {
		to = min(to, packedAt(r.ends, 0, number, r.width))
	}
	if from > to {
		return l.index.masks.Corruptf(r.start, "a block of masks starts at bit %d and ends at bit %d", from, to)
	}
	first := r.start + int64(from/8)
	data, err := l.index.masks.Bytes(first, r.start+int64(byteLen(to))-first)
	if err != nil {
		return err
	}
	r.block.reset(data, uint(from%8), uint(to-from/8*8))
	r.number, r.known = number, 0
	return nil
}

// learn makes sure that the block has its superblocks up to i.
func (r *maskReader) learn(l *List, i int, superblocks []uint32) error {
	if i < r.known {
		return nil
	}
	if i < len(superblocks) {
		r.known += copy(r.block.superblocks[r.known:], superblocks[r.known:])
		return nil
	}
	block, err := l.raw.decode(r.number, &r.block.superblocks)
	if err != nil {
		r.number = -1
		return l.corrupt(err)
	}
	r.known = len(block)
	return nil
}

// openEnds finds the ends of the list's blocks.
func (r *maskReader) openEnds(l *List) error {
	if r.opened {
		return nil
	}
	r.start = l.maskFrom
	if skips := l.raw.blocks() - 1; skips > 0 {
		width, err := l.index.masks.Bytes(l.maskFrom, 1)
		if err != nil {
			return err
		}
		if r.width = uint(width[0]); r.width > 32 {
			return l.index.masks.Corruptf(l.maskFrom, "ends of %d bits", r.width)
		}
		size := int64(byteLen(uint64(skips) * uint64(r.width)))
		if r.ends, err = l.index.masks.Bytes(l.maskFrom+1, size); err != nil {
			return err
		}
		r.start += 1 + size
	}
	r.opened = true
	return nil
}
