package words

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/postings"
	"github.com/trawl-search/trawl/index/symbols"
)

const (
	layoutVersion = 1
	pieceSize     = 64 << 10 // sections are written in pieces of about this size

	// wordsPerSuperblock is the number of words in a superblock of the lexicon, which has
	// BlocksPerSuperblock blocks.
	wordsPerSuperblock = BlockWords * ngram.BlocksPerSuperblock

	// fetchedAhead is the number of words whose first bytes or postings are read before any word is
	// written. They are scattered in memory, and so the processor loads them concurrently.
	fetchedAhead = 32
)

// scratch is the memory that writing needs, kept for the next index.
type scratch struct {
	keys []sortKey
	run  run
}

// Write writes the index of all blobs added, for a content of that many superblocks. ngrams lends
// its memory and must be empty. Afterwards both are as after Reset.
func (b *Builder) Write(w format.SectionWriter, superblocks uint32, ngrams *postings.Builder) error {
	defer b.Reset()
	for uint32(len(b.blocks)) < superblocks {
		b.blocks = append(b.blocks, 0)
	}
	s := &b.scratch
	b.runs.sort(b.table.len())
	s.keys = b.table.order(s.keys)
	lexicon := NewLexiconWriter(w, ngrams)
	for keys := range slices.Chunk(s.keys, fetchedAhead) {
		for _, key := range keys {
			b.fetched += uint32(b.table.word(key.number)[0])
		}
		for _, key := range keys {
			if err := lexicon.Add(b.table.word(key.number)); err != nil {
				return err
			}
		}
	}
	if err := lexicon.Close(); err != nil {
		return err
	}
	lists := postings.NewWordWriter(w, b.blocks)
	for keys := range slices.Chunk(s.keys, fetchedAhead) {
		for _, key := range keys {
			b.fetched += b.runs.fetch(key.number)
		}
		for _, key := range keys {
			b.runs.read(&s.run, key.number)
			lists.Append(s.run.superblocks, s.run.masks, s.run.counts, s.run.defined)
		}
	}
	if err := lists.Close(); err != nil {
		return err
	}
	return writeInfo(w, uint32(len(s.keys)), superblocks, b.words, b.starts, b.opaque)
}

// writeInfo writes the columns of blobs and superblocks, and the counts.
func writeInfo(w format.SectionWriter, distinct, superblocks uint32, words uint64, starts, opaque []uint64) error {
	for _, column := range []struct {
		tag      format.Tag
		values   []uint64
		universe uint64
	}{{format.TagWordStarts, starts, words + 1}, {format.TagOpaque, opaque, uint64(superblocks)}} {
		data, err := eliasfano.Append(nil, column.values, column.universe)
		if err != nil {
			return fmt.Errorf("encode section %s: %w", column.tag, err)
		}
		if err := w.WriteSection(column.tag, format.Required, data); err != nil {
			return fmt.Errorf("write section %s: %w", column.tag, err)
		}
	}
	finder := binary.LittleEndian.AppendUint32([]byte{layoutVersion}, symbols.Version)
	if err := w.WriteSection(format.TagDefinitions, format.Optional, finder); err != nil {
		return fmt.Errorf("write section %s: %w", format.TagDefinitions, err)
	}
	data := []byte{layoutVersion}
	for _, n := range []uint32{distinct, superblocks, uint32(len(starts)), uint32(len(opaque))} {
		data = binary.LittleEndian.AppendUint32(data, n)
	}
	data = binary.LittleEndian.AppendUint64(data, words)
	if err := w.WriteSection(format.TagWordInfo, format.Required, data); err != nil {
		return fmt.Errorf("write section %s: %w", format.TagWordInfo, err)
	}
	return nil
}

// LexiconWriter writes a lexicon word by word.
type LexiconWriter struct {
	w       format.SectionWriter
	ngrams  *postings.Builder
	windows *windows
	block   blockWriter
	piece   []byte
	written uint64
	ends    []uint64
	n       uint32
}

// NewLexiconWriter starts the section. It collects the n-grams of the words in ngrams, which must
// be empty.
func NewLexiconWriter(w format.SectionWriter, ngrams *postings.Builder) *LexiconWriter {
	_ = w.Begin(format.TagLexicon, format.Required) // the writer's errors stay until Close
	found, _ := idleWindows.Get().(*windows)
	return &LexiconWriter{w: w, ngrams: ngrams, windows: found}
}

// Add adds the next word in the order of the lexicon.
func (l *LexiconWriter) Add(word []byte) error {
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

func (l *LexiconWriter) endBlock() {
	l.piece = l.block.appendTo(l.piece)
	l.ends = append(l.ends, l.written+uint64(len(l.piece)))
	if len(l.piece) >= pieceSize {
		l.flush()
	}
}

func (l *LexiconWriter) flush() {
	_, _ = l.w.Write(l.piece)
	l.written += uint64(len(l.piece))
	l.piece = l.piece[:0]
}

// Close writes the last words, the ends of the blocks, and the n-grams.
func (l *LexiconWriter) Close() error {
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
	if err := l.w.End(); err != nil {
		return fmt.Errorf("write the lexicon: %w", err)
	}
	data, err := eliasfano.Append(nil, l.ends, l.written+1)
	if err != nil {
		return fmt.Errorf("encode the ends of %d blocks: %w", len(l.ends), err)
	}
	if err := l.w.WriteSection(format.TagLexiconOffsets, format.Required, data); err != nil {
		return fmt.Errorf("write the ends of the lexicon's blocks: %w", err)
	}
	return l.ngrams.Write(l.w, postings.LexiconTags, superblocks)
}

// windows collects the n-grams of a superblock of the lexicon.
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

func (s *windows) addTo(b *postings.Builder, superblock uint32) error {
	s.masks = s.masks[:0]
	for _, id := range s.ids {
		s.masks = append(s.masks, s.blocks[id])
		s.blocks[id] = 0
	}
	err := b.Add(superblock, s.ids, s.masks)
	s.ids = s.ids[:0]
	if err != nil {
		return fmt.Errorf("index the lexicon: %w", err)
	}
	return nil
}
