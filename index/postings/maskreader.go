package postings

// maskReader reads the masks of one list, block by block as needed.
type maskReader struct {
	ends   blockEnds
	number int // of the open block; -1 for none
	known  int // number of its superblocks that it knows
	block  maskBlock
}

// reset prepares the reader for another list.
func (r *maskReader) reset() { r.ends, r.number = blockEnds{}, -1 }

// at returns mask i of block number of the list. superblocks are those of the block, at
// least up to i, or nil if the caller does not have them.
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
	bits, end, err := r.ends.block(&l.index.masks, l.maskFrom, l.maskTo, l.raw.blocks(), number)
	if err != nil {
		return err
	}
	r.block.reset(bits, end)
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
