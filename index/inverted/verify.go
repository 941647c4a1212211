package inverted

import (
	"bytes"
	"cmp"
	"errors"

	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/symbols"
)

// Verifier compares an index of words with the blobs that it describes. It is not safe for
// concurrent use.
type Verifier struct {
	x       *Words
	scanner wordScanner
	seeded  wordTable // only its seed is used
	blocks  []uint8   // for each superblock so far, blocks up to the last one in which a word starts
	opaque  int
	sum     uint64 // sum of a hash of each posting, since lists and text are in different orders

	postings uint64 // in the lists of words
}

// NewVerifier starts to verify an index. Definitions are compared if this version of package
// symbols found them.
func NewVerifier(x *Words) *Verifier { return &Verifier{x: x} }

// Add takes the next blob, as WordBuilder.Add does, and checks what the index says about this blob
// alone.
func (v *Verifier) Add(first uint32, blob []byte, opaque []uint32, language *symbols.Language) error {
	if !v.x.Marked() {
		language = nil
	}
	for uint64(len(v.blocks)) < uint64(first) {
		v.blocks = append(v.blocks, 0)
	}
	list, err := v.x.Opaque()
	if err != nil {
		return err
	}
	v.scanner.scan(&v.seeded, blob, opaque, language, func(superblock uint32, words []localWord, opaque bool) {
		if superblock += first; opaque {
			if v.opaque >= list.Len() || list.At(v.opaque) != uint64(superblock) {
				err = cmp.Or(err, v.x.opaque.Corruptf("superblock %d is opaque but not listed", superblock))
			}
			v.opaque++
		}
		for i := range words {
			w := &words[i]
			v.sum += postingHash(blob[w.start:w.start+uint32(w.size)], superblock, w.mask, w.count, w.defined)
		}
		v.blocks = append(v.blocks, blocksOf(words))
	})
	return err
}

// Close compares the whole index with all blobs. It calls tick now and then and stops with its
// error.
func (v *Verifier) Close(tick func() error) error {
	x := v.x
	list, err := x.Opaque()
	switch {
	case err != nil:
		return err
	case v.opaque != list.Len():
		return x.opaque.Corruptf("%d superblocks are opaque, not %d", list.Len(), v.opaque)
	}
	if err := x.lists.check(v.blocks); err != nil {
		return err
	}
	if err := cmp.Or(x.checkEnd(), x.checkSamples()); err != nil {
		return err
	}
	parts, err := v.parts(tick)
	if err != nil {
		return err
	}
	sum, windows, err := v.lists(tick, parts)
	if err != nil {
		return err
	}
	if err := v.compareParts(parts); err != nil {
		return err
	}
	if sum != v.sum {
		return x.dictionary.Corruptf(0, "words and their posting lists do not match the content")
	}
	found, err := x.ngrams.Sum(tick)
	if err == nil && found != windows {
		err = x.dictionary.Corruptf(0, "the n-grams of the dictionary do not match its words")
	}
	return err
}

// checkEnd compares the end of the last block of the dictionary with the end of the section.
func (x *Words) checkEnd() error {
	ends, err := x.offsets.List()
	if err != nil {
		return err
	}
	if end := ends.At(ends.Len() - 1); end != uint64(x.dictionary.Len()) { // 0 without words
		return x.dictionary.Corruptf(int64(end), "the last block ends here, the section at %d", x.dictionary.Len())
	}
	return nil
}

// checkSamples compares the samples with the blocks of the dictionary.
func (x *Words) checkSamples() error {
	var want []byte
	for number := uint32(0); number < x.Blocks(); number += sampleBlocks {
		var b Block
		if err := x.Block(number, &b); err != nil {
			return err
		}
		want = appendSample(want, b.Word(0))
	}
	got, err := x.samples.All()
	if err == nil && !bytes.Equal(got, want) {
		err = x.samples.Corruptf(0, "samples that the dictionary does not begin with")
	}
	return err
}

// parts returns the builder of the parts that the words make up.
func (v *Verifier) parts(tick func() error) (*partBuilder, error) {
	var block Block
	var components partCounter
	for number := range v.x.Blocks() {
		if err := tick(); err != nil {
			return nil, err
		}
		if err := v.x.Block(number, &block); err != nil {
			return nil, err
		}
		for i := range block.Len() {
			components.add(block.Word(i))
		}
	}
	return newPartBuilder(&components), nil
}

// compareParts compares the parts and their lists with those that the words make up.
func (v *Verifier) compareParts(parts *partBuilder) error {
	x := v.x
	if listed := x.parts.Len() / partEntry; listed != int64(len(parts.parts)) {
		return x.parts.Corruptf(0, "%d parts of words, not %d", listed, len(parts.parts))
	}
	var words, it Iterator
	n, postings, want := x.Len(), uint64(0), make([]Part, len(parts.parts))
	err := parts.runs(v.blocks, func(to *partSums, holders []uint64) error {
		for _, holder := range holders {
			word, matches := holderOf(holder)
			list, err := x.List(uint32(word))
			if err == nil {
				err = to.addList(&words, list, matches, func(superblock uint32) uint32 { return superblock })
			}
			if err != nil {
				return err
			}
		}
		return nil
	}, func(part int, flag uint32, r *run) error {
		if flag == hasEnds {
			want[part].Ends = n
		} else {
			want[part].Inside = n
		}
		list, err := x.List(n)
		if err != nil {
			return err
		}
		at := 0
		for it.Reset(list); it.Next(); at++ {
			if at >= len(r.superblocks) || it.Superblock() != r.superblocks[at] || it.Count() != r.counts[at] || it.Mask() != r.masks[at] || x.Marked() && it.Defined() != r.defined[at] {
				break
			}
		}
		if it.Err() != nil {
			return it.Err()
		}
		if at < len(r.superblocks) || int(list.DF()) != at {
			return x.parts.Corruptf(int64(part)*partEntry, "the lists of the part %q are not those of its words", parts.parts[part])
		}
		postings += uint64(at)
		n++
		return nil
	})
	if errors.Is(err, errPartCount) {
		return x.lists.lists.Corruptf(0, "%v", err)
	}
	if err != nil {
		return err
	}
	for i, part := range parts.parts {
		listed, ok, err := x.Part(part)
		if err != nil {
			return err
		}
		if !ok || listed != want[i] {
			return x.parts.Corruptf(int64(i)*partEntry, "the part %q has the lists %v, not %v", part, listed, want[i])
		}
	}
	if n != x.lists.Terms() || postings+v.postings != x.Postings() {
		return x.parts.Corruptf(0, "%d lists with %d postings, not %d with %d", x.lists.Terms(), x.Postings(), n, postings+v.postings)
	}
	return nil
}

// lists reads the whole dictionary with all lists of words, which it adds to those of their parts, and returns the sums of the postings and
// of the dictionary's n-grams.
func (v *Verifier) lists(tick func() error, parts *partBuilder) (sum, windowSum uint64, err error) {
	var block Block
	var it Iterator
	var last []byte
	found := &windows{}
	for number := range v.x.Blocks() {
		if err := tick(); err != nil {
			return 0, 0, err
		}
		if err := v.x.Block(number, &block); err != nil {
			return 0, 0, err
		}
		for i := range block.Len() {
			word := block.Word(i)
			if !ngram.IsWords(word) || number+uint32(i) > 0 && compare(last, word) >= 0 {
				return 0, 0, v.x.dictionary.Corruptf(0, "%q is not a word that comes after %q", word, last)
			}
			last = append(last[:0], word...)
			found.add(word, number%ngram.BlocksPerSuperblock)
			list, err := v.x.List(block.First + uint32(i))
			if err != nil {
				return 0, 0, err
			}
			for it.Reset(list); it.Next(); {
				sum += postingHash(word, it.Superblock(), it.Mask(), it.Count(), it.Defined() && v.x.Marked())
				v.postings++
			}
			if it.Err() != nil {
				return 0, 0, it.Err()
			}
			parts.add(uint64(block.First)+uint64(i), word, false)
		}
		if number%ngram.BlocksPerSuperblock == ngram.BlocksPerSuperblock-1 || number == v.x.Blocks()-1 {
			windowSum += found.sum(number / ngram.BlocksPerSuperblock)
		}
	}
	return sum, windowSum, nil
}

// sum returns the sum of the hashes of the collected n-grams, and drops them.
func (s *windows) sum(superblock uint32) (sum uint64) {
	for _, id := range s.ids {
		sum += Hash(id, superblock, s.blocks[id])
		s.blocks[id] = 0
	}
	s.ids = s.ids[:0]
	return sum
}

func postingHash(word []byte, superblock uint32, mask uint8, count uint16, defined bool) uint64 {
	var t wordTable
	marked := uint64(0)
	if defined {
		marked = 1 << 41
	}
	h := t.hash(word, head(word, len(word)))
	return fold(h^uint64(superblock)<<32, uint64(count)<<8|uint64(mask)|1<<40|marked)
}

// Hash mixes a posting by two folded multiplications. The sum of hashes shows whether two
// sets of postings are equal, in any order.
func Hash(id ngram.ID, superblock uint32, mask uint8) uint64 {
	return fold(fold(uint64(id)<<8|uint64(mask)|1<<40, 0x9e3779b97f4a7c15^uint64(superblock)<<17), 0xd1342543de82ef95)
}

// Sum reads all lists of an n-gram index and returns the sum of the hashes of their postings. It
// calls tick before each list and stops with its error.
func (x *Index) Sum(tick func() error) (sum uint64, err error) {
	t, err := x.openedTable()
	if err != nil {
		return 0, err
	}
	var it Iterator
	for term := range x.terms {
		id := t.ngrams.At(int(term))
		if found, ok := t.ngrams.Find(id); !ok || found != int(term) {
			return 0, x.table.Corruptf(headSize, "n-gram %d is not found where it is", id)
		}
		list, err := x.list(term)
		if err != nil {
			return 0, err
		}
		if err := tick(); err != nil {
			return 0, err
		}
		for it.Reset(list); it.Next(); {
			sum += Hash(ngram.ID(id), it.Superblock(), it.Mask())
		}
		if it.Err() != nil {
			return 0, it.Err()
		}
	}
	return sum, nil
}
