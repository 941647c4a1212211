package postings

// joiner sorts the postings of one n-gram. It reuses its memory.
type joiner struct {
	stretches   stretches // of superblocks, above their masks
	superblocks []uint32
	masks       []uint8
}

func (j *joiner) reset() { j.stretches.reset() }

// add adds postings of superblocks that have not come before.
func (j *joiner) add(superblocks []uint32, masks []uint8) {
	for i, superblock := range superblocks {
		j.stretches.add(uint64(superblock)<<maskBlocks | uint64(masks[i]))
	}
}

// sorted returns all postings, ascending. They are valid until the next reset.
func (j *joiner) sorted() ([]uint32, []uint8) {
	j.superblocks, j.masks = j.superblocks[:0], j.masks[:0]
	for _, key := range j.stretches.sorted() {
		j.superblocks, j.masks = append(j.superblocks, uint32(key>>maskBlocks)), append(j.masks, uint8(key))
	}
	return j.superblocks, j.masks
}

// stretches sorts the postings of one list. They come in few ascending stretches: those of each
// source, cut where a blob has moved relative to others. A posting is a number whose highest bits
// are its superblock. It reuses its memory.
type stretches struct {
	keys, other []uint64
	ends        []int // of the stretches in keys
}

func (s *stretches) reset() { s.keys, s.ends = s.keys[:0], s.ends[:0] }

func (s *stretches) add(key uint64) {
	if n := len(s.keys); n > 0 && key < s.keys[n-1] {
		s.ends = append(s.ends, n)
	}
	s.keys = append(s.keys, key)
}

// sorted returns all postings, ascending. They are valid until the next reset. It merges adjacent
// stretches until one is left.
func (s *stretches) sorted() []uint64 {
	for s.ends = append(s.ends, len(s.keys)); len(s.ends) > 1; {
		s.other = s.other[:0]
		ends, start := s.ends[:0], 0
		for i := 0; i < len(s.ends); i += 2 {
			middle, end := s.ends[i], s.ends[min(i+1, len(s.ends)-1)]
			s.other = mergeSorted(s.other, s.keys[start:middle], s.keys[middle:end])
			ends, start = append(ends, end), end
		}
		s.keys, s.other, s.ends = s.other, s.keys, ends
	}
	return s.keys
}

// mergeSorted merges two ascending sequences and appends the result.
func mergeSorted(dst, a, b []uint64) []uint64 {
	for len(a) > 0 && len(b) > 0 {
		if a[0] > b[0] {
			a, b = b, a
		}
		n := 1
		for n < len(a) && a[n] < b[0] {
			n++
		}
		dst, a = append(dst, a[:n]...), a[n:]
	}
	return append(append(dst, a...), b...)
}
