package inverted_test

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/symbols"
	"github.com/trawl-search/trawl/internal/testrun"
)

// posting is what an index says of a word in a superblock.
type posting struct {
	superblock uint32
	mask       uint8
	count      uint16
}

// model is what the index of some blobs must say, according to the definitions.
type model struct {
	words       map[string][]posting
	opaque      []uint64
	superblocks uint32
}

func modelOf(blobs [][]byte) *model {
	m := &model{words: map[string][]posting{}}
	for _, blob := range blobs {
		opaque := ngram.AppendOpaque(nil, blob)
		for _, s := range opaque {
			m.opaque = append(m.opaque, uint64(m.superblocks+s))
		}
		for start := 0; start < len(blob); {
			end := start
			for end < len(blob) && ngram.IsWord(blob[end]) {
				end++
			}
			if end > start {
				if s := uint32(start / ngram.SuperblockSize); !slices.Contains(opaque, s) {
					m.add(string(blob[start:end]), m.superblocks+s, start%ngram.SuperblockSize/ngram.BlockSize)
				}
			}
			start = end + 1
		}
		m.superblocks += uint32((len(blob) + ngram.SuperblockSize - 1) / ngram.SuperblockSize)
	}
	return m
}

func (m *model) add(word string, superblock uint32, block int) {
	list := m.words[word]
	if n := len(list); n > 0 && list[n-1].superblock == superblock {
		list[n-1].mask |= 1 << block
		list[n-1].count++
		return
	}
	m.words[word] = append(list, posting{superblock, 1 << block, 1})
}

// sorted returns the words in the order that the lexicon promises.
func (m *model) sorted() (all []string) {
	for w := range m.words {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(strings.Compare(strings.ToLower(a), strings.ToLower(b)), strings.Compare(a, b))
	})
	return all
}

func build(t testing.TB, b *inverted.WordBuilder, blobs [][]byte) *format.File {
	t.Helper()
	first := uint32(0)
	for _, blob := range blobs {
		if err := b.Add(first, blob, ngram.AppendOpaque(nil, blob), nil); err != nil {
			t.Fatal(err)
		}
		first += uint32((len(blob) + ngram.SuperblockSize - 1) / ngram.SuperblockSize)
	}
	var data bytes.Buffer
	w := format.NewWriter(&data)
	if err := b.Write(w, first, inverted.NewNgramBuilder()); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := format.NewFile("test", data.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestDefinitions builds an index of Go code, and reads which words are defined and where.
func TestDefinedWords(t *testing.T) {
	filler := strings.Repeat("// Other is only mentioned\n", 200) // more than one superblock
	blob := []byte("package p\nfunc Defined() { Called() }\n" + filler + "type Other int\nvar Called = Defined\n")
	b := inverted.NewWordBuilder()
	if err := b.Add(0, blob, nil, symbols.For("Go")); err != nil {
		t.Fatal(err)
	}
	var data bytes.Buffer
	w := format.NewWriter(&data)
	if err := errors.Join(b.Write(w, 2, inverted.NewNgramBuilder()), w.Close()); err != nil {
		t.Fatal(err)
	}
	f, err := format.NewFile("test", data.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	x, err := inverted.OpenWords(f)
	if err != nil {
		t.Fatal(err)
	}
	if !x.Marked() {
		t.Error("an index that was just written is not marked")
	}
	for word, want := range map[string]string{"defined": "[true false]", "called": "[false true]", "other": "[false true]", "only": "[false false]", "p": "[false]", "func": "[false]"} {
		from, _, err := x.Spellings(word, new(inverted.Block))
		if err != nil {
			t.Fatal(err)
		}
		list, err := x.List(from)
		if err != nil {
			t.Fatal(err)
		}
		var it inverted.Iterator
		var got []bool
		for it.Reset(list); it.Next(); {
			got = append(got, it.Defined())
		}
		if fmt.Sprint(got) != want {
			t.Errorf("%s is defined in %v, want %s", word, got, want)
		}
	}
}

// randomBlob returns text of random words, some of them in many blobs and some in one, of all
// lengths and spellings, between bytes of all kinds.
func randomBlob(r *rand.Rand, size int) (blob []byte) {
	for len(blob) < size {
		switch r.IntN(3000) {
		case 0:
			blob = append(blob, "\u212Aey"...)
		case 1:
			blob = append(blob, strings.Repeat("long", 31+r.IntN(4))...)
		case 2:
			blob = append(blob, strings.Repeat("x", r.IntN(9000))...)
		case 3, 4, 5, 6, 7, 8, 9:
			blob = append(blob, "é\xff"...)
		case 10, 11: // about as many words that hold a part as have it listed
			for range r.IntN(60) {
				blob = fmt.Appendf(blob, []string{"field%d ", "aField_%d ", "%dfields ", "fieldfield%d "}[r.IntN(4)], r.IntN(200))
			}
		default:
			for range 1 + r.IntN(1+r.IntN(12)) {
				blob = append(blob, "aaabcdeXYZ019_"[r.IntN(14)])
			}
		}
		blob = append(blob, " \n.("[r.IntN(4)])
	}
	return blob
}

func randomBlobs(r *rand.Rand) (blobs [][]byte) {
	for range r.IntN(12) {
		blobs = append(blobs, randomBlob(r, r.IntN(1+r.IntN(40_000))))
	}
	return blobs
}

func TestIndex(t *testing.T) {
	b := inverted.NewWordBuilder()
	for seed := range testrun.Rounds[uint64](20, 60) {
		r := rand.New(rand.NewPCG(seed, 1))
		blobs := randomBlobs(r)
		checkIndex(t, build(t, b, blobs), modelOf(blobs), r)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func checkIndex(t *testing.T, f *format.File, m *model, r *rand.Rand) {
	t.Helper()
	x, err := inverted.OpenWords(f)
	if err != nil {
		t.Fatal(err)
	}
	sorted := m.sorted()
	if int(x.Len()) != len(sorted) || x.Superblocks() != m.superblocks {
		t.Fatalf("%d words in %d superblocks, want %d in %d", x.Len(), x.Superblocks(), len(sorted), m.superblocks)
	}
	opaque, err := x.Opaque()
	if err != nil {
		t.Fatal(err)
	}
	var got []uint64
	for i := range opaque.Len() {
		got = append(got, opaque.At(i))
	}
	if !slices.Equal(got, m.opaque) {
		t.Errorf("opaque %v, want %v", got, m.opaque)
	}
	var block inverted.Block
	for n := range x.Blocks() {
		if err := x.Block(n, &block); err != nil {
			t.Fatal(err)
		}
		for i := range block.Len() {
			word := int(block.First) + i
			if want := sorted[word]; string(block.Word(i)) != want {
				t.Fatalf("word %d is %q, want %q", word, block.Word(i), want)
			}
			checkList(t, x, uint32(word), m.words[sorted[word]], r)
		}
	}
	checkLookups(t, x, sorted, r)
}

func checkList(t *testing.T, x *inverted.Words, word uint32, want []posting, r *rand.Rand) {
	t.Helper()
	list, err := x.List(word)
	if err != nil {
		t.Fatal(err)
	}
	var it inverted.Iterator
	it.Reset(list)
	var got []posting
	for it.Next() {
		got = append(got, posting{it.Superblock(), it.Mask(), it.Count()})
	}
	if it.Err() != nil || !slices.Equal(got, want) || int(list.DF()) != len(want) {
		t.Fatalf("postings of word %d: %v, want %v (%v)", word, got, want, it.Err())
	}
	it.Reset(list)
	for from := uint32(0); ; {
		from += uint32(r.IntN(4))
		i, _ := slices.BinarySearchFunc(want, from, func(p posting, s uint32) int { return cmp.Compare(p.superblock, s) })
		ok := it.SeekGE(from)
		if ok != (i < len(want)) {
			t.Fatalf("word %d: seek of %d is %v", word, from, ok)
		}
		if !ok {
			break
		}
		if got := (posting{it.Superblock(), it.Mask(), it.Count()}); got != want[i] {
			t.Fatalf("word %d: seek of %d stands at %v, want %v", word, from, got, want[i])
		}
		from = it.Superblock() + 1
	}
}

// TestWordsBetweenSamples looks words up in a dictionary with several samples. Some samples are equal, since many words begin with the same
// 16 letters.
func TestWordsBetweenSamples(t *testing.T) {
	long := strings.Repeat("same", 5)
	var sorted []string
	for i := range 3000 {
		sorted = append(sorted, fmt.Sprintf("%s%05d", long, i))
	}
	for i := range 3000 {
		sorted = append(sorted, fmt.Sprintf("t%05d", i))
	}
	b := inverted.NewWordBuilder()
	text := []byte(strings.Join(sorted, "\n"))
	var data bytes.Buffer
	w := format.NewWriter(&data)
	superblocks := uint32(len(text)+ngram.SuperblockSize-1) / ngram.SuperblockSize
	if err := errors.Join(b.Add(0, text, nil, nil), b.Write(w, superblocks, inverted.NewNgramBuilder()), w.Close()); err != nil {
		t.Fatal(err)
	}
	f, err := format.NewFile("words", data.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	x, err := inverted.OpenWords(f)
	if err != nil {
		t.Fatal(err)
	}
	for i, word := range sorted {
		if from, to, err := x.Spellings(strings.ToUpper(word), new(inverted.Block)); err != nil || from != uint32(i) || to != from+1 {
			t.Fatalf("word %d has the spellings [%d, %d): %v", i, from, to, err)
		}
	}
	for text, want := range map[string][2]uint32{long: {0, 3000}, "t": {3000, 6000}, "a": {0, 0}, "z": {6000, 6000}, long + "z": {3000, 3000}, long + "015": {1500, 1600}} {
		if from, to, err := x.WithPrefix(text, new(inverted.Block)); err != nil || from != want[0] || to != want[1] {
			t.Errorf("words [%d, %d) begin with %q: %v", from, to, text, err)
		}
	}
}

// checkLookups looks up pieces of words, and texts that are in no word.
func checkLookups(t *testing.T, x *inverted.Words, sorted []string, r *rand.Rand) {
	t.Helper()
	for range 50 {
		text := "zz"
		if len(sorted) > 0 && r.IntN(5) > 0 {
			text = sorted[r.IntN(len(sorted))]
			from := r.IntN(len(text))
			if r.IntN(2) == 0 {
				from = 0
			}
			text = text[from : from+1+r.IntN(len(text)-from)]
		}
		folded := strings.ToLower(text)
		from, to, err := x.WithPrefix(text, new(inverted.Block))
		if err != nil {
			t.Fatal(err)
		}
		same, sameEnd, err := x.Spellings(text, new(inverted.Block))
		if err != nil {
			t.Fatal(err)
		}
		for i, word := range sorted {
			word = strings.ToLower(word)
			if in := uint32(i) >= from && uint32(i) < to; in != strings.HasPrefix(word, folded) {
				t.Fatalf("word %q in [%d, %d) with prefix %q: %v", word, from, to, text, in)
			}
			if in := uint32(i) >= same && uint32(i) < sameEnd; in != (word == folded) {
				t.Fatalf("word %q in [%d, %d) of spellings of %q: %v", word, same, sameEnd, text, in)
			}
		}
		checkHolding(t, x, sorted, text)
	}
}

func checkHolding(t *testing.T, x *inverted.Words, sorted []string, text string) {
	t.Helper()
	blocks, ok, err := x.Holding(text)
	if err != nil {
		t.Fatal(err)
	}
	if ok != (len(text) >= 3) {
		t.Fatalf("holding %q: %v", text, ok)
	}
	if !ok {
		return
	}
	defer blocks.Release()
	found := map[uint32]bool{}
	for s, mask, ok := blocks.Next(); ok; s, mask, ok = blocks.Next() {
		for j := range uint32(8) {
			found[s*8+j] = mask>>j&1 == 1
		}
	}
	if blocks.Err() != nil {
		t.Fatal(blocks.Err())
	}
	for i, word := range sorted {
		if strings.Contains(strings.ToLower(word), strings.ToLower(text)) && !found[uint32(i/inverted.BlockWords)] {
			t.Fatalf("block %d holds %q in %q and is not found", i/inverted.BlockWords, text, word)
		}
	}
}
