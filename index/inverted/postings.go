package inverted

// postings are those of one block of a list: all superblocks, for words the definitions and counts, and the masks as far as they were needed.
// Reading them allocates nothing.
type postings struct {
	number int    // of the block; -1 for none
	first  uint64 // the least superblock that the block may have
	n      int    // postings
	defs   definitions

	bits  bitReader                              // at the next mask
	end   uint                                   // of the block, in bits
	codes *[maskBlocks][1 << maskCodeBits]uint16 // of the masks, once one is read
	known int                                    // masks that are read

	// These have n values, and known masks.
	superblocks [blockSize]uint32
	counts      [blockSize]uint16
	masks       [blockSize]uint8
}

// open reads block number of a list, without its masks.
func (p *postings) open(l *List, number int) error {
	p.number = -1
	defs, err := p.definitions(l, number)
	if err != nil {
		return err
	}
	p.n, p.first = l.blockLen(number), l.firstOf(number)
	if err := p.bits.superblocks(p.superblocks[:p.n], p.first, l.lastOf(number)); err != nil {
		return l.corrupt(err)
	}
	if l.index.words {
		if err := p.bits.counts(p.counts[:p.n]); err != nil {
			return l.corrupt(err)
		}
	}
	if p.bits.pos > p.end {
		return l.corrupt(errBlockEnds)
	}
	p.number, p.defs, p.codes, p.known = number, defs, nil, 0
	return nil
}

// last returns the last superblock.
func (p *postings) last() uint32 { return p.superblocks[p.n-1] }

// definitions begins to read block number of a list: the definitions of a word.
func (p *postings) definitions(l *List, number int) (d definitions, err error) {
	from, to := l.blockSpan(number)
	switch {
	case from > to || to > uint(len(l.data))*8:
		return d, l.corrupt(errBlockEnds)
	case l.lastOf(number) > l.last:
		return d, l.corrupt(errBlockOrder)
	}
	if p.bits, p.end = (bitReader{data: l.data, pos: from}), to; l.index.words {
		d = p.bits.definitions(l.blockLen(number))
	}
	return d, nil
}

// mask returns mask i of the block. It reads as many at once as the bits of one load certainly have.
func (p *postings) mask(l *List, i int) (uint8, error) {
	if p.codes == nil {
		p.codes = &masks().decode[p.bits.get(maskClassBits)]
	}
	for p.known <= i {
		v, used, n := p.bits.load(), uint(0), min(p.n, p.known+loadedBits/maskCodeBits)
		for j := p.known; j < n; j++ {
			count := l.blockCounts.at(p.superblocks[j])
			code := p.codes[(count-1)%maskBlocks][v%(1<<maskCodeBits)]
			length := uint(code % (1 << codeLengthBits))
			v >>= length
			used += length
			if count-1 >= maskBlocks {
				return 0, l.corrupt(errMasks)
			}
			p.masks[j] = uint8(code >> codeLengthBits)
		}
		if p.bits.pos += used; p.bits.pos > p.end {
			return 0, l.corrupt(errMasks)
		}
		p.known = n
	}
	return p.masks[i], nil
}
