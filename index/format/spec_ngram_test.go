package format_test

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"testing"
)

// bitReader reads bits, the lowest of each byte first.
type bitReader struct {
	data []byte
	pos  int
}

func (b *bitReader) bits(n int) (v uint64) {
	for i := range n {
		v |= uint64(b.data[b.pos/8]>>(b.pos%8)&1) << i
		b.pos++
	}
	return v
}

// packed reads count numbers and skips to the next whole byte.
func packed(data []byte, count, width int) (numbers []uint64, rest []byte) {
	b := bitReader{data: data}
	for range count {
		numbers = append(numbers, b.bits(width))
	}
	return numbers, data[(count*width+7)/8:]
}

// blockEnds returns the bytes of each block of a list of blocks.
func blockEnds(data []byte, ends []uint64) (blocks [][]byte) {
	from := uint64(0)
	for _, end := range append(ends, uint64(len(data))) {
		blocks = append(blocks, data[from:end])
		from = end
	}
	return blocks
}

// readPostings decodes a posting list as FORMAT.md says.
func readPostings(data []byte, seen *[4]int) (superblocks []uint64) {
	df, used := binary.Uvarint(data)
	last, more := binary.Uvarint(data[used:])
	data = data[used+more:]
	count := int(df+127) / 128
	var lasts, ends []uint64
	if count > 1 {
		width := int(data[0])
		lasts, data = packed(data[1:], count-1, bits.Len64(last))
		ends, data = packed(data, count-1, width)
	}
	next := uint64(0) // the least superblock that may come
	for i, block := range blockEnds(data, ends) {
		n, end := min(int(df)-i*128, 128), append(lasts, last)[i]
		for _, gap := range readGaps(block, n-1, seen) {
			superblocks = append(superblocks, next+gap)
			next += gap + 1
		}
		superblocks = append(superblocks, end)
		next = end + 1
	}
	return superblocks
}

// readGaps decodes n gaps and counts the codings seen.
func readGaps(block []byte, n int, seen *[4]int) (gaps []uint64) {
	if len(block) == 0 {
		return make([]uint64, n)
	}
	coding, p := block[0]&7, int(block[0]>>3)
	seen[coding]++
	b := bitReader{data: block[1:]}
	for data := block[1:]; len(gaps) < n; {
		switch coding {
		case 0:
			gaps = append(gaps, b.bits(p))
		case 1:
			high := uint64(0)
			for b.bits(1) == 0 {
				high++
			}
			gaps = append(gaps, high<<p|b.bits(p))
		default:
			gap, used := binary.Uvarint(data)
			gaps, data = append(gaps, gap), data[used:]
			if coding == 2 {
				run, used := binary.Uvarint(data)
				gaps, data = append(gaps, make([]uint64, run)...), data[used:]
			}
		}
	}
	return gaps
}

// code is the canonical code of a mask.
type code struct{ length, bits int }

// readTables decodes the tables at the start of MASK.
func readTables(data []byte) (tables [8]map[code]uint8, rest []byte) {
	for class := range tables {
		tables[class] = map[code]uint8{}
		lengths, next := data[:12], 0
		data = data[12:]
		for i, count := range lengths {
			next <<= 1
			for range count {
				tables[class][code{i + 1, next}] = data[0]
				data = data[1:]
				next++
			}
		}
	}
	return tables, data
}

// readMasks decodes the masks of an n-gram with df postings.
func readMasks(t *testing.T, data []byte, df int, tables *[8]map[code]uint8) (masks []uint8) {
	t.Helper()
	count := (df + 127) / 128
	var ends []uint64
	if count > 1 {
		ends, data = packed(data[1:], count-1, int(data[0]))
	}
	for i, block := range blockEnds(data, ends) {
		pos := 0
		bit := func() int {
			pos++
			return int(block[(pos-1)/8]>>(7-(pos-1)%8)) & 1
		}
		class := bit()<<2 | bit()<<1 | bit()
		for range min(df-i*128, 128) {
			c := code{}
			for mask, ok := tables[class][c]; ; mask, ok = tables[class][c] {
				if ok {
					masks = append(masks, mask)
					break
				}
				if c.length == 12 {
					t.Fatal("a mask has no code")
				}
				c = code{c.length + 1, c.bits<<1 | bit()}
			}
		}
	}
	return masks
}

func TestSpecOfNgramIndex(t *testing.T) {
	s, sh := readSpec(t), sample(t)
	if rows := s.rows(t, "Lists of POST and NPST 2"); len(rows) != 4 || rows[0][0] != "0" || rows[3][0] != "3" {
		t.Errorf("codings %v", rows)
	}
	var seen [4]int
	blocks := 0
	for _, index := range []struct {
		table, lists, masks string
		want                indexed
	}{{"NGRM", "POST", "MASK", sh.content}, {"NNGM", "NPST", "NMSK", sh.names}} {
		values := map[string]uint64{}
		_, lists, rest := s.record(t, "Record of NGRM and NNGM", sh.sections[index.table], values)
		if len(rest) != 0 || values["layout"] != 1 || values["text superblocks"] != uint64(index.want.superblocks) || len(lists["ngrams"]) != len(index.want.masks) {
			t.Fatalf("%s: %v, %d n-grams of %d", index.table, values, len(lists["ngrams"]), len(index.want.masks))
		}
		tables, tail := readTables(sh.sections[index.masks])
		from, fromMask, postings := uint64(0), uint64(len(sh.sections[index.masks])-len(tail)), uint64(0)
		for i, id := range lists["ngrams"] {
			superblocks := readPostings(sh.sections[index.lists][from:lists["list ends"][i]], &seen)
			masks := readMasks(t, sh.sections[index.masks][fromMask:lists["mask ends"][i]], len(superblocks), &tables)
			from, fromMask = lists["list ends"][i], lists["mask ends"][i]
			postings += uint64(len(superblocks))
			blocks = max(blocks, (len(superblocks)+127)/128)
			checkPostings(t, superblocks, masks, index.want.masks[id])
		}
		if postings != values["postings"] || from != uint64(len(sh.sections[index.lists])) || fromMask != uint64(len(sh.sections[index.masks])) {
			t.Errorf("%s: %d postings of %d, or bytes that no list has", index.table, postings, values["postings"])
		}
	}
	if blocks < 2 || slices.Contains(seen[:], 0) {
		t.Errorf("the sample does not show all: %d blocks, codings seen %v", blocks, seen)
	}
}

func checkPostings(t *testing.T, superblocks []uint64, masks []uint8, want map[uint32]uint8) {
	t.Helper()
	if len(superblocks) != len(want) || !slices.IsSorted(superblocks) {
		t.Fatalf("%d postings, want %d", len(superblocks), len(want))
	}
	for i, superblock := range superblocks {
		if mask, ok := want[uint32(superblock)]; !ok || mask != masks[i] {
			t.Fatalf("superblock %d has mask %08b, want %08b %v", superblock, masks[i], mask, ok)
		}
	}
}
