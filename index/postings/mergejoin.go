package postings

// joiner sorts the postings of one n-gram, which come in few ascending stretches: those
// of each source, cut where a blob has changed its place among the others. Its memory
// is reused.
type joiner struct {
	keys, other []uint64 // superblocks, above their masks
	ends        []int    // of the stretches in keys
	superblocks []uint32
	masks       []uint8
}

func (j *joiner) reset() { j.keys, j.ends = j.keys[:0], j.ends[:0] }

// add adds postings, of which no superblock has come before.
func (j *joiner) add(superblocks []uint32, masks []uint8) {
	for i, superblock := range superblocks {
		key := uint64(superblock)<<maskBlocks | uint64(masks[i])
		if n := len(j.keys); n > 0 && key < j.keys[n-1] {
			j.ends = append(j.ends, n)
		}
		j.keys = append(j.keys, key)
	}
}

// sorted returns all postings, ascending: good until the next reset. It merges
// neighbouring stretches until one is left.
func (j *joiner) sorted() ([]uint32, []uint8) {
	for j.ends = append(j.ends, len(j.keys)); len(j.ends) > 1; {
		j.other = j.other[:0]
		ends, start := j.ends[:0], 0
		for i := 0; i < len(j.ends); i += 2 {
			middle, end := j.ends[i], j.ends[min(i+1, len(j.ends)-1)]
			j.other = mergeSorted(j.other, j.keys[start:middle], j.keys[middle:end])
			ends, start = append(ends, end), end
		}
		j.keys, j.other, j.ends = j.other, j.keys, ends
	}
	j.superblocks, j.masks = j.superblocks[:0], j.masks[:0]
	for _, key := range j.keys {
		j.superblocks, j.masks = append(j.superblocks, uint32(key>>maskBlocks)), append(j.masks, uint8(key))
	}
	return j.superblocks, j.masks
}

// mergeSorted appends two ascending sequences as one.
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
