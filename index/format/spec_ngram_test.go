package format_test

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"strings"
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

func (b *bitReader) gamma() uint64 {
	k := 0
	for b.bits(1) == 0 {
		k++
	}
	return 1<<k | b.bits(k)
}

// packed reads count numbers.
func (b *bitReader) packed(count, width int) (numbers []uint64) {
	for range count {
		numbers = append(numbers, b.bits(width))
	}
	return numbers
}

// code is a code of length bits, the first bit highest.
type code struct{ length, bits int }

// codes maps codes to values.
type codes map[code]int

// canonical assigns codes by length to the values first, first + 1, ….
func canonical(lengths []int, first int) codes {
	c, next := codes{}, 0
	for length := range 16 {
		next <<= 1
		for i, l := range lengths {
			if l == length {
				c[code{length, next}] = first + i
				next++
			}
		}
	}
	return c
}

func (b *bitReader) value(t *testing.T, in codes) int {
	t.Helper()
	for c := (code{}); c.length < 16; c = (code{c.length + 1, c.bits<<1 | int(b.bits(1))}) {
		if v, ok := in[c]; ok {
			return v
		}
	}
	t.Fatal("bits that are not a code")
	return 0
}

func numbers(t *testing.T, text string) (all []int) {
	t.Helper()
	for word := range strings.FieldsSeq(text) {
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, n)
	}
	return all
}

// indexSpec has the codes that FORMAT.md defines.
type indexSpec struct {
	gaps  []codes     // by scale
	masks [8][9]codes // by class and block count
	// seen counts the codings of blocks; counts counts the block counts of masks.
	seen, counts [9]int
}

func readIndexSpec(t *testing.T, s spec) *indexSpec {
	t.Helper()
	x := &indexSpec{}
	for scale, row := range s.rows(t, "Superblocks of a block 2") {
		if row[0] != strconv.Itoa(scale) {
			t.Fatalf("row %d is of scale %s", scale, row[0])
		}
		x.gaps = append(x.gaps, canonical(numbers(t, row[1]), 0))
	}
	for class, row := range s.rows(t, "Masks") {
		factors := numbers(t, strings.Join(row, " "))
		for count := 1; count <= 8; count++ {
			x.masks[class][count] = canonical(huffman(maskWeights(factors[1:], count)), 1)
		}
	}
	return x
}

func maskWeights(factors []int, count int) (weights []int) {
	for mask := 1; mask < 1<<count; mask++ {
		runs := bits.OnesCount(uint(mask &^ (mask << 1)))
		weight := 1 << 20
		for i, times := range []int{bits.OnesCount(uint(mask)) - 1, runs - 1, mask&1 + mask>>(count-1)} {
			for range times {
				weight = weight * factors[i] / 64
			}
		}
		weights = append(weights, weight+1)
	}
	return weights
}

// huffman returns the lengths of codes of at most 11 bits.
func huffman(weights []int) []int {
	type node struct {
		weight int
		leaves []int
	}
	for {
		lengths := make([]int, len(weights))
		var nodes []node
		for i, w := range weights {
			nodes = append(nodes, node{w, []int{i}})
		}
		byWeight := func(a, b node) int { return cmp.Compare(a.weight, b.weight) }
		slices.SortStableFunc(nodes, byWeight)
		for len(nodes) > 1 {
			joined := node{nodes[0].weight + nodes[1].weight, slices.Concat(nodes[0].leaves, nodes[1].leaves)}
			for _, leaf := range joined.leaves {
				lengths[leaf]++
			}
			nodes = append(nodes[2:], joined)
			slices.SortStableFunc(nodes, byWeight)
		}
		if slices.Max(lengths) <= 11 {
			return lengths
		}
		for i, w := range weights {
			weights[i] = 1 + w/2
		}
	}
}

// blockStarts returns where the blocks of a list start and where the last one ends.
func blockStarts(ends []uint64, start, size int) []int {
	starts := []int{start}
	for _, end := range ends {
		starts = append(starts, start+int(end))
	}
	return append(starts, size)
}

// postings decodes a posting list as FORMAT.md says. blocks has the block counts of all superblocks of the text.
func (x *indexSpec) postings(t *testing.T, data []byte, textSuperblocks uint64, blocks []byte, words bool) (superblocks []uint64, postings []wordPosting) {
	t.Helper()
	b := &bitReader{data: data}
	df := int(b.gamma())
	w := bits.Len64(textSuperblocks - 1)
	lasts, ends := []uint64{b.bits(w)}, []uint64(nil)
	if more := (df - 1) / 128; more > 0 {
		width := int(b.bits(6))
		lasts = append(b.packed(more, w), lasts...)
		ends = b.packed(more, width)
	}
	starts := blockStarts(ends, b.pos, len(data)*8)
	next := uint64(0) // the least superblock that may follow
	for i, last := range lasts {
		if b.pos != starts[i] {
			t.Fatalf("block %d starts at bit %d, the one before ends at %d", i, starts[i], b.pos)
		}
		block := make([]wordPosting, min(df-i*128, 128))
		if words {
			readDefinitions(t, b, block)
		}
		for _, gap := range x.gapsOf(t, b, len(block), last+1-next-uint64(len(block))) {
			superblocks = append(superblocks, next+gap)
			next += gap + 1
		}
		superblocks = append(superblocks, last)
		next = last + 1
		for j := range block {
			if words {
				block[j].count = b.gamma()
			}
		}
		for j, mask := range x.maskBlock(t, b, superblocks[i*128:], blocks) {
			block[j].mask = mask
		}
		postings = append(postings, block...)
	}
	if len(data) != (b.pos+7)/8 {
		t.Fatalf("%d bits in %d bytes", b.pos, len(data))
	}
	return superblocks, postings
}

func readDefinitions(t *testing.T, b *bitReader, block []wordPosting) {
	t.Helper()
	if b.bits(1) == 0 {
		return
	}
	for i := range block {
		block[i].defined = b.bits(1) == 1
	}
	if !slices.ContainsFunc(block, func(p wordPosting) bool { return p.defined }) {
		t.Fatal("a block is marked and has no definition")
	}
}

// gapsOf decodes the gaps of a block of n superblocks.
func (x *indexSpec) gapsOf(t *testing.T, b *bitReader, n int, left uint64) (gaps []uint64) {
	t.Helper()
	if n == 1 || left == 0 {
		return make([]uint64, n-1)
	}
	coding := b.bits(1)
	x.seen[coding]++
	if coding == 1 {
		plus := uint64(1)
		for len(gaps) < n-1 {
			gaps = append(gaps, b.gamma()-plus)
			gaps = append(gaps, make([]uint64, b.gamma()-1)...)
			plus = 0
		}
		return gaps
	}
	scale := bits.Len64(16 * left / uint64(n-1))
	low := max(scale-18, 0)
	for range n - 1 {
		k := b.value(t, x.gaps[scale-low])
		gaps = append(gaps, b.bits(k+low)+(1<<k-1)<<low)
	}
	return gaps
}

// maskBlock decodes class and masks of a block of postings.
func (x *indexSpec) maskBlock(t *testing.T, b *bitReader, superblocks []uint64, counts []byte) (masks []uint8) {
	t.Helper()
	class := b.bits(3)
	for _, superblock := range superblocks {
		count := counts[superblock/2] >> (superblock % 2 * 4) & 15
		x.counts[count]++
		masks = append(masks, uint8(b.value(t, x.masks[class][count])))
	}
	return masks
}

func TestSpecOfNgramIndex(t *testing.T) {
	s, sh := readSpec(t), sample(t)
	x := readIndexSpec(t, s)
	blocks := 0
	for _, index := range []struct {
		table, lists string
		want         indexed
	}{{"NGRM", "POST", sh.content}, {"NNGM", "NPST", sh.names}, {"WNGM", "WNPS", sh.lexicon}} {
		values := map[string]uint64{}
		_, lists, counts := s.record(t, "Tables", sh.sections[index.table], values)
		if values["terms"] != uint64(len(index.want.masks)) || values["text superblocks"] != uint64(index.want.superblocks) || len(lists["ngrams"]) != len(index.want.masks) {
			t.Fatalf("%s: %v, %d n-grams of %d", index.table, values, len(lists["ngrams"]), len(index.want.masks))
		}
		from, total := uint64(0), uint64(0)
		for i, id := range lists["ngrams"] {
			superblocks, postings := x.postings(t, sh.sections[index.lists][from:lists["ends"][i]], values["text superblocks"], counts, false)
			from = lists["ends"][i]
			total += uint64(len(superblocks))
			blocks = max(blocks, (len(superblocks)+127)/128)
			checkPostings(t, superblocks, postings, index.want.masks[id])
		}
		if total != values["postings"] || from != uint64(len(sh.sections[index.lists])) ||
			len(counts) != int(index.want.superblocks+1)/2 {
			t.Errorf("%s: %d postings of %d, or bytes that no list has", index.table, total, values["postings"])
		}
	}
	if blocks < 2 || x.seen[0] == 0 || x.seen[1] == 0 || x.counts[8] == 0 || x.counts[0] > 0 {
		t.Errorf("the sample does not show all: %d blocks, codings %v, block counts %v", blocks, x.seen, x.counts)
	}
}

func checkPostings(t *testing.T, superblocks []uint64, postings []wordPosting, want map[uint32]uint8) {
	t.Helper()
	if len(superblocks) != len(want) || !slices.IsSorted(superblocks) {
		t.Fatalf("%d postings, want %d", len(superblocks), len(want))
	}
	for i, superblock := range superblocks {
		if mask, ok := want[uint32(superblock)]; !ok || mask != postings[i].mask {
			t.Fatalf("superblock %d has mask %08b, want %08b %v", superblock, postings[i].mask, mask, ok)
		}
	}
}
