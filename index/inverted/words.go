package inverted

import (
	"bytes"
	"cmp"
	"iter"
	"sort"

	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/symbols"
)

// Words reads the index of words of a shard. It keeps nothing per word on the heap. It is safe for
// concurrent use, and valid until the file is closed. Every error is a *format.CorruptError.
type Words struct {
	counts     format.Section
	dictionary format.Section
	offsets    eliasfano.Column // where each block of the dictionary ends
	samples    format.Section   // how some blocks of the dictionary begin
	ngrams     *Index           // of the words
	lists      *Index
	opaque     eliasfano.Column
	parts      format.Section
	finder     uint32 // version that found the definitions

	opaques   uint32
	partLists uint32 // posting lists of parts, after those of all words
}

// OpenWords opens the index of words of a shard. It reads only a few bytes.
func OpenWords(f *format.File) (x *Words, err error) {
	x = &Words{}
	if x.lists, err = Open(f, wordTags); err != nil {
		return nil, err
	}
	if x.dictionary, err = f.Need(format.TagLexicon); err != nil {
		return nil, err
	}
	if x.samples, err = f.Need(format.TagLexiconSamples); err != nil {
		return nil, err
	}
	if x.parts, err = f.Need(format.TagParts); err != nil {
		return nil, err
	}
	if err := x.readInfo(f); err != nil {
		return nil, err
	}
	err = cmp.Or(
		x.offsets.Open(f, format.TagLexiconOffsets, int(x.Blocks()), uint64(x.dictionary.Len())+1),
		x.opaque.Open(f, format.TagOpaque, int(x.opaques), uint64(x.Superblocks())))
	if err != nil {
		return nil, err
	}
	definitions, err := f.Decode(format.TagDefinitions)
	if err != nil {
		return nil, err
	}
	x.finder = definitions.U32()
	if err := definitions.End(); err != nil {
		return nil, err
	}
	if x.ngrams, err = Open(f, dictionaryTags); err != nil {
		return nil, err
	}
	if of := (uint64(x.Len()) + wordsPerSuperblock - 1) / wordsPerSuperblock; uint64(x.ngrams.Superblocks()) != of {
		return nil, x.Corruptf("a term dictionary of %d superblocks has n-grams of %d", of, x.ngrams.Superblocks())
	}
	return x, nil
}

// Announce announces that words will be looked up; see format.Announcer.
func (x *Words) Announce() {
	x.ngrams.Announce()
	x.lists.Announce()
	x.parts.Soon(0, x.parts.Len())
	x.offsets.Announce()
	x.opaque.Announce()
}

// AnnounceLists announces that the lists of ascending words will be read; see format.Announcer. It
// ignores words that there are not.
func (x *Words) AnnounceLists(words iter.Seq[uint32]) error {
	if !x.lists.lists.Announces() {
		return nil
	}
	t, err := x.lists.openedTable()
	if err != nil {
		return err
	}
	x.lists.announce(func(yield func(span) bool) {
		for word := range words {
			if word < x.lists.terms && !yield(t.find(word)) {
				return
			}
		}
	})
	return nil
}

// AnnounceBlocks announces that blocks of the dictionary will be read, which ascend.
func (x *Words) AnnounceBlocks(numbers []uint32) error {
	if !x.dictionary.Announces() {
		return nil
	}
	ends, err := x.offsets.List()
	if err != nil {
		return err
	}
	blocks := x.dictionary.Announcer()
	for _, number := range numbers {
		if number >= x.Blocks() {
			break
		}
		from, to := bounds(&ends, int(number))
		blocks.Add(from, to-from)
	}
	blocks.Flush()
	return nil
}

// Corruptf returns the error for counts of the index that disagree with the data.
func (x *Words) Corruptf(format string, args ...any) error {
	return x.counts.Corruptf(0, format, args...)
}

func (x *Words) readInfo(f *format.File) error {
	var err error
	if x.counts, err = f.Need(format.TagWordInfo); err != nil {
		return err
	}
	d, err := x.counts.Decoder()
	if err != nil {
		return err
	}
	x.opaques, x.partLists = d.U32(), d.U32()
	if x.partLists > x.lists.Terms() || x.parts.Len()%partEntry != 0 {
		d.Failf("%d of %d lists are of parts, which take %d bytes", x.partLists, x.lists.Terms(), x.parts.Len())
	}
	if x.opaques > x.Superblocks() {
		d.Failf("%d of %d superblocks are opaque", x.opaques, x.Superblocks())
	}
	return d.End()
}

// Marked reports whether the posting lists mark where each word is defined, as this version of
// package symbols finds it in the language of a blob's first document. Otherwise another version
// marked them.
func (x *Words) Marked() bool { return x.finder == symbols.Version }

// Len returns the number of distinct words. They are numbered from 0 in the order of the dictionary.
func (x *Words) Len() uint32 { return x.lists.Terms() - x.partLists }

// Superblocks returns the number of superblocks of the content.
func (x *Words) Superblocks() uint32 { return x.lists.Superblocks() }

// List returns the posting list of a word, or one of a Part.
func (x *Words) List(word uint32) (List, error) { return x.lists.list(word) }

// Postings returns the number of postings of all words and parts.
func (x *Words) Postings() uint64 { return x.lists.Postings() }

// Opaque returns the superblocks that have no words here, ascending: their text decides.
func (x *Words) Opaque() (eliasfano.List, error) { return x.opaque.List() }

// Blocks returns the number of blocks of the dictionary.
func (x *Words) Blocks() uint32 { return uint32((uint64(x.Len()) + BlockWords - 1) / BlockWords) }

// Block reads a block of the dictionary.
func (x *Words) Block(number uint32, to *Block) error { return x.block(number, to, true) }

// SmallBlock reads a block of the dictionary with all words in lower case, which is faster.
func (x *Words) SmallBlock(number uint32, to *Block) error { return x.block(number, to, false) }

func (x *Words) block(number uint32, to *Block, spelled bool) error {
	data, n, at, err := x.blockData(number)
	if err != nil {
		return err
	}
	if err := to.decode(data, n, spelled); err != nil {
		return x.dictionary.Corruptf(at, "%v", err)
	}
	to.First = number * BlockWords
	return nil
}

// blockData returns the bytes of a block, the number of its words, and its offset.
func (x *Words) blockData(number uint32) (data []byte, n int, at int64, err error) {
	if number >= x.Blocks() {
		return nil, 0, 0, x.dictionary.Corruptf(0, "no block %d: there are %d", number, x.Blocks())
	}
	ends, err := x.offsets.List()
	if err != nil {
		return nil, 0, 0, err
	}
	from, to := bounds(&ends, int(number))
	if from > to {
		return nil, 0, 0, x.offsets.Corruptf("block %d of the dictionary reaches from %d to %d", number, from, to)
	}
	data, err = x.dictionary.Bytes(from, to-from)
	return data, int(min(BlockWords, x.Len()-number*BlockWords)), from, err
}

// Holding returns the blocks of the dictionary that may have a word that contains a text of word
// bytes, with or without case; ok is false if the text has fewer than three bytes. Bit j of a
// candidate's superblock i stands for block 8·i + j.
func (x *Words) Holding(text string) (blocks *Candidates, ok bool, err error) {
	var few [32]ngram.Window // of most texts, on the stack
	windows := appendWindows(few[:0], text)
	if len(windows) == 0 {
		return nil, false, nil
	}
	blocks, err = x.ngrams.Literal(windows)
	return blocks, err == nil, err
}

// AnnounceHolding announces that Holding will be called.
func (x *Words) AnnounceHolding(text string) error {
	return x.ngrams.AnnounceLiteral(appendWindows(nil, text))
}

// appendWindows appends the windows of a text of word bytes.
func appendWindows(windows []ngram.Window, text string) []ngram.Window {
	for i := 0; i+3 <= len(text); i++ {
		windows = append(windows, ngram.Window{ID: ngram.WordWindow(text[i], text[i+1], text[i+2])})
	}
	return windows
}

// Bytes above and below all word bytes.
const (
	aboveWords = "\x7f"
	belowWords = "\x00"
)

// WithPrefix returns the numbers [from, to) of the words that begin with a text, without case. It
// reads blocks into b.
func (x *Words) WithPrefix(text string, b *Block) (from, to uint32, err error) {
	return x.between(text, text+aboveWords, b)
}

// AnnounceSpellings announces that Spellings or WithPrefix will be called.
func (x *Words) AnnounceSpellings(text string) error {
	low, high, err := x.sampled([]byte(text))
	if err != nil {
		return err
	}
	return x.announceSearch(low, high)
}

// Spellings returns the numbers [from, to) of the words that equal a text, without case. It reads
// blocks into b.
func (x *Words) Spellings(text string, b *Block) (from, to uint32, err error) {
	return x.between(text, text+belowWords, b)
}

// between returns the numbers of the words at or after low and before high.
func (x *Words) between(low, high string, b *Block) (from, to uint32, err error) {
	if from, err = x.search([]byte(low), 0, b); err != nil {
		return 0, 0, err
	}
	if b.n > 0 && from < b.First+uint32(b.n) && compareFolded(b.Word(b.n-1), []byte(high)) >= 0 {
		return from, b.after([]byte(high)), nil // the last one is usually in the block of the first
	}
	to, err = x.search([]byte(high), from/BlockWords, b)
	return from, max(from, to), err
}

// search returns the number of the first word that is not before a text, without case. No word
// before the given block may be. It leaves the block of the word before the result in b.
func (x *Words) search(text []byte, block uint32, b *Block) (uint32, error) {
	b.n = 0
	low, high, err := x.sampled(text)
	if err != nil {
		return 0, err
	}
	low = max(low, block) // blocks before low begin before the text, those from high on do not
	if err := x.announceSearch(low, high); err != nil {
		return 0, err
	}
	for low < high {
		mid := low + (high-low)/2
		before, err := x.beginsBefore(mid, text)
		if err != nil {
			return 0, err
		}
		if before {
			low = mid + 1
		} else {
			high = mid
		}
	}
	if low == 0 {
		return 0, nil
	}
	if err := x.Block(low-1, b); err != nil {
		return 0, err
	}
	return b.after(text), nil
}

// sampled returns blocks between which a text is, by the samples: blocks before low begin before the text, and those from high on do
// not.
func (x *Words) sampled(text []byte) (low, high uint32, err error) {
	data, err := x.samples.Bytes(0, x.samples.Len())
	if err != nil {
		return 0, 0, err
	}
	n := len(data) / sampleSize
	if len(data)%sampleSize != 0 || uint32(n) != (x.Blocks()+sampleBlocks-1)/sampleBlocks {
		return 0, 0, x.samples.Corruptf(0, "%d bytes of samples of %d blocks", len(data), x.Blocks())
	}
	want := appendSample(nil, text)
	compare := func(i int) int { return bytes.Compare(data[i*sampleSize:][:sampleSize], want) }
	less := sort.Search(n, func(i int) bool { return compare(i) >= 0 })
	most := less + sort.Search(n-less, func(i int) bool { return compare(less+i) > 0 }) // equal ones may be before or after the text
	if less > 0 {
		low = uint32(less-1)*sampleBlocks + 1
	}
	return low, min(uint32(most)*sampleBlocks, x.Blocks()), nil
}

// announceSearch announces the blocks that a search between low and high reads, with the one before, unless there are too many.
func (x *Words) announceSearch(low, high uint32) error {
	from := low - min(low, 1)
	if from >= high || high-min(low, high) > 2*sampleBlocks || !x.dictionary.Announces() {
		return nil
	}
	ends, err := x.offsets.List()
	if err != nil {
		return err
	}
	start, _ := bounds(&ends, int(from))
	_, end := bounds(&ends, int(high-1))
	x.dictionary.Soon(start, end-start)
	return nil
}

// after returns the number of the first word of the block that is not before a text, without case,
// or the number after the block's last word.
func (b *Block) after(text []byte) uint32 {
	for i := range b.n {
		if compareFolded(b.Word(i), text) >= 0 {
			return b.First + uint32(i)
		}
	}
	return b.First + uint32(b.n)
}

// beginsBefore reports whether the first word of a block comes before a text.
func (x *Words) beginsBefore(number uint32, text []byte) (bool, error) {
	data, n, at, err := x.blockData(number)
	if err != nil {
		return false, err
	}
	_, suffix, rest, ok := readHead(data[min((n+3)/4, len(data)):])
	if !ok || suffix > len(rest) {
		return false, x.dictionary.Corruptf(at, "%v", errBlock)
	}
	return compareFolded(rest[:suffix], text) < 0, nil
}
