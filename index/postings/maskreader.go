package postings

// maskReader reads the masks of one list, block by block as they are asked for.
type maskReader struct {
	opened bool
	width  uint
	ends   []byte // packed, of every block but the last one
	start  int64  // of the first block in the masks section
	number int    // of the block that is open; -1 for none
	block  maskBlock
}

// reset makes the reader ready for another list.
func (r *maskReader) reset() { r.opened, r.number = false, -1 }

// at returns mask i of block number of the list.
func (r *maskReader) at(l *List, number, i int) (uint8, error) {
	if number != r.number {
		if err := r.open(l, number); err != nil {
			return 0, err
		}
	}
	mask, err := r.block.at(i)
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
	from, to := r.start, l.maskTo
	if number > 0 {
		from += int64(packedAt(r.ends, number-1, r.width))
	}
	if number < l.raw.blocks()-1 {
		to = r.start + int64(packedAt(r.ends, number, r.width))
	}
	if to > l.maskTo {
		return l.index.masks.Corruptf(r.start, "a block of masks ends at %d, its list at %d", to, l.maskTo)
	}
	data, err := l.index.masks.Bytes(from, to-from)
	if err != nil {
		return err
	}
	if err := r.block.reset(l.codes, data); err != nil {
		return l.index.masks.Corruptf(from, "%v", err)
	}
	r.number = number
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
