package inverted

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/symbols"
)

const (
	// wordsPerSuperblock is the number of words in a superblock of the dictionary, which has
	// BlocksPerSuperblock blocks.
	wordsPerSuperblock = BlockWords * ngram.BlocksPerSuperblock

	// fetchedAhead is the number of words whose first bytes or postings are read before any word is
	// written. They are scattered in memory, and so the processor loads them concurrently.
	fetchedAhead = 32

	// A sample is how the first word of every sampleBlocks blocks begins, in small letters: sampleSize bytes, filled up with zeros.
	// The blocks from one sample to the next take some 16 KiB, so that a reader of a remote shard finds a word with one read.
	sampleBlocks, sampleSize = 64, 16
)

// appendSample appends the sample of a word.
func appendSample(dst, word []byte) []byte {
	for i := range sampleSize {
		c := byte(0)
		if i < len(word) {
			c = lower[word[i]]
		}
		dst = append(dst, c)
	}
	return dst
}

// Write writes the index of all blobs added, for a content of that many superblocks. ngrams lends
// its memory and must be empty. Afterwards both are as after Reset.
func (b *WordBuilder) Write(w format.SectionWriter, superblocks uint32, ngrams *NgramBuilder) error {
	defer b.Reset()
	b.blocks = append(b.blocks, make([]uint8, superblocks-min(superblocks, uint32(len(b.blocks))))...)
	b.pool.sort(b.table.len())
	b.keys = b.table.order(b.keys)
	dictionary := newDictionaryWriter(w, ngrams)
	var components partCounter
	for keys := range slices.Chunk(b.keys, fetchedAhead) {
		for _, key := range keys {
			b.fetched += uint32(b.table.word(key.number)[0])
		}
		for _, key := range keys {
			word := b.table.word(key.number)
			if err := dictionary.add(word); err != nil {
				return err
			}
			components.add(word)
		}
	}
	if err := dictionary.close(); err != nil {
		return err
	}
	lists, parts := newWriter(wordTags, b.blocks, inMemory), newPartBuilder(&components)
	for keys := range slices.Chunk(b.keys, fetchedAhead) {
		for _, key := range keys {
			b.fetched += b.pool.fetch(key.number)
		}
		for _, key := range keys {
			b.pool.read(&b.run, key.number)
			if err := lists.append(&b.run); err != nil {
				return err
			}
			parts.add(uint64(key.number), b.table.word(key.number), false)
		}
	}
	partLists, err := parts.write(w, lists, func(to *partSums, holders []uint64) error {
		for _, holder := range holders {
			word, _ := holderOf(holder)
			b.fetched += b.pool.fetch(uint32(word))
		}
		for _, holder := range holders {
			word, matches := holderOf(holder)
			if err := b.pool.addTo(to, uint32(word), matches); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := lists.write(w); err != nil {
		return err
	}
	return writeInfo(w, superblocks, b.opaque, partLists)
}

// writeInfo writes the opaque superblocks, who found the definitions, and the counts.
func writeInfo(w format.SectionWriter, superblocks uint32, opaque []uint64, partLists uint32) error {
	data, err := eliasfano.Append(nil, opaque, uint64(superblocks))
	if err != nil {
		return fmt.Errorf("encode section %s: %w", format.TagOpaque, err)
	}
	_ = w.WriteSection(format.TagOpaque, format.Required, data) // the writer's errors stay
	_ = w.WriteSection(format.TagDefinitions, format.Optional, binary.LittleEndian.AppendUint32(nil, symbols.Version))
	data = binary.LittleEndian.AppendUint32(nil, uint32(len(opaque)))
	data = binary.LittleEndian.AppendUint32(data, partLists)
	if err := w.WriteSection(format.TagWordInfo, format.Required, data); err != nil {
		return fmt.Errorf("write the counts of the words: %w", err)
	}
	return nil
}

// dictionaryWriter writes a term dictionary word by word.
type dictionaryWriter struct {
	w       format.SectionWriter
	ngrams  *NgramBuilder
	windows *windows
	block   blockWriter
	piece   []byte
	written uint64
	ends    []uint64
	samples []byte
	n       uint32
}

// newDictionaryWriter starts the section. It collects the n-grams of the words in ngrams, which must
// be empty.
func newDictionaryWriter(w format.SectionWriter, ngrams *NgramBuilder) *dictionaryWriter {
	_ = w.Begin(format.TagLexicon, format.Required) // the writer's errors stay until close
	found, _ := idleWindows.Get().(*windows)
	return &dictionaryWriter{w: w, ngrams: ngrams, windows: found}
}

// add adds the next word in the order of the dictionary.
func (l *dictionaryWriter) add(word []byte) error {
	if l.n%(sampleBlocks*BlockWords) == 0 {
		l.samples = appendSample(l.samples, word)
	}
	l.block.add(word)
	l.windows.add(word, l.n%wordsPerSuperblock/BlockWords)
	l.n++
	if l.n%BlockWords == 0 {
		l.endBlock()
	}
	if l.n%wordsPerSuperblock == 0 {
		return l.windows.addTo(l.ngrams, l.n/wordsPerSuperblock-1)
	}
	return nil
}

func (l *dictionaryWriter) endBlock() {
	l.piece = l.block.appendTo(l.piece)
	l.ends = append(l.ends, l.written+uint64(len(l.piece)))
	if len(l.piece) >= pieceSize {
		l.flush()
	}
}

func (l *dictionaryWriter) flush() {
	_, _ = l.w.Write(l.piece)
	l.written += uint64(len(l.piece))
	l.piece = l.piece[:0]
}

// close writes the last words, the ends of the blocks, and the n-grams.
func (l *dictionaryWriter) close() error {
	if l.n%BlockWords > 0 {
		l.endBlock()
	}
	superblocks := (l.n + wordsPerSuperblock - 1) / wordsPerSuperblock
	if l.n%wordsPerSuperblock > 0 {
		if err := l.windows.addTo(l.ngrams, superblocks-1); err != nil {
			return err
		}
	}
	idleWindows.Put(l.windows)
	l.windows = nil
	l.flush()
	_ = l.w.End() // the writer's errors stay
	data, err := eliasfano.Append(nil, l.ends, l.written+1)
	if err != nil {
		return fmt.Errorf("encode the ends of %d blocks: %w", len(l.ends), err)
	}
	_ = l.w.WriteSection(format.TagLexiconOffsets, format.Required, data)
	if err := l.w.WriteSection(format.TagLexiconSamples, format.Required, l.samples); err != nil {
		return fmt.Errorf("write the dictionary: %w", err)
	}
	return l.ngrams.Write(l.w, dictionaryTags, superblocks)
}

// windows collects the n-grams of a superblock of the dictionary.
type windows struct {
	blocks [ngram.Space]uint8
	ids    []ngram.ID
	masks  []uint8
}

// idleWindows have no n-grams: reusing them avoids clearing a large array for each lexicon.
var idleWindows = sync.Pool{New: func() any { return new(windows) }}

func (s *windows) add(word []byte, block uint32) {
	for i := 0; i+3 <= len(word); i++ {
		id := ngram.WordWindow(word[i], word[i+1], word[i+2])
		if s.blocks[id] == 0 {
			s.ids = append(s.ids, id)
		}
		s.blocks[id] |= 1 << block
	}
}

func (s *windows) addTo(b *NgramBuilder, superblock uint32) error {
	s.masks = s.masks[:0]
	for _, id := range s.ids {
		s.masks = append(s.masks, s.blocks[id])
		s.blocks[id] = 0
	}
	err := b.Add(superblock, s.ids, s.masks)
	s.ids = s.ids[:0]
	if err != nil {
		return fmt.Errorf("index the dictionary: %w", err)
	}
	return nil
}
