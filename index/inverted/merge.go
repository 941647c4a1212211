package inverted

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/inorder"
)

// Gone is the place of an omitted superblock.
const Gone = math.MaxUint32

// Source is a file with an index to merge, and where its text went.
type Source struct {
	File *format.File
	// Places has, for each superblock of the index, its number in the new one, or Gone. No two
	// superblocks of all sources may have the same place.
	Places []uint32
}

// MergeOptions configure a merge. The zero value is valid.
type MergeOptions struct {
	// Processors that work, including the caller's; at least 1.
	Processors int
	// Pace is called with the number of bytes to be read next. It may wait; an error of it ends the
	// merge. Nil means no waiting.
	Pace func(bytes int) error
	// Spill says where data is kept that waits for its section.
	Spill inorder.BufferConfig
}

// Merge writes the n-gram index of a text of that many superblocks, whose parts are in the sources.
// It writes what a NgramBuilder would write. It reads each source once, from front to back, and joins the
// lists of equal terms, in batches and concurrently. It keeps the lists, encoded, until all are
// there, in memory as far as opts.Spill allows. The errors are those of w, Pace, the context and
// temporary files, and *format.CorruptError of a source.
func Merge(ctx context.Context, w *format.Writer, tags Tags, superblocks uint32, sources []Source, opts MergeOptions) error {
	m := newMerger(tags, superblocks, opts)
	return m.run(sources, func() error {
		if err := m.mergeTerms(ctx); err != nil {
			return err
		}
		return m.writer.write(w)
	})
}

// merger merges indexes.
type merger struct {
	opts       MergeOptions
	sources    []mergeSource
	files      []*format.File
	blocks     []uint8 // of each superblock, up to the last one in which a term starts
	writer     *writer
	dictionary *dictionaryWriter // nil for n-grams
	components partCounter       // of the words that stay
}

// mergeSource is a source with its table.
type mergeSource struct {
	index  *Index
	words  *Words // nil for n-grams
	places []uint32
	table  *table
	stay   []staying // of each word
	first  uint64    // number of its first word, as if the words of all sources followed each other
}

// staying says whether a word of a source stays.
type staying uint8

const (
	_        staying = iota // it does not
	repeated                // an earlier source has it, too
	first                   // it is the first source with the word
)

func newMerger(tags Tags, superblocks uint32, opts MergeOptions) *merger {
	blocks := make([]uint8, superblocks)
	return &merger{opts: opts, blocks: blocks, writer: newWriter(tags, blocks, opts.Spill)}
}

// run opens the sources and merges them.
func (m *merger) run(sources []Source, merge func() error) (err error) {
	defer func() { err = errors.Join(err, m.writer.close()) }()
	for _, s := range sources {
		m.files = append(m.files, s.File)
	}
	return format.GuardFiles(m.files, func() error {
		for _, s := range sources {
			if err := m.add(s); err != nil {
				return err
			}
		}
		return merge()
	})
}

// add adds a source, and takes over the counts of its superblocks.
func (m *merger) add(source Source) (err error) {
	s := mergeSource{places: source.Places}
	if !m.writer.tags.words() {
		s.index, err = Open(source.File, m.writer.tags)
	} else if s.words, err = OpenWords(source.File); err == nil {
		s.index, s.stay = s.words.lists, make([]staying, s.words.Len())
	}
	if err != nil {
		return err
	}
	if s.table, err = s.index.openedTable(); err != nil {
		return err
	}
	if uint64(len(s.places)) != uint64(s.index.superblocks) {
		return s.index.table.Corruptf(4, "an index of %d superblocks of a text of %d", s.index.superblocks, len(s.places))
	}
	for superblock, place := range s.places {
		if place != Gone {
			m.blocks[place] = s.table.blocks.at(uint32(superblock))
		}
	}
	m.sources = append(m.sources, s)
	return nil
}

// Bounds on a batch of terms, whose lists are joined together.
const (
	batchTerms = 4096
	batchLists = 16384
	batchBytes = 1 << 20 // of lists
)

// batch has successive terms of all sources, their lists there, and the joined lists. Its memory is
// reused.
type batch struct {
	keys     []uint64 // of the terms: see cursor
	text     []byte   // words
	ends     []uint32 // 0, and where each word ends in text
	refs     []listRef
	refEnds  []uint32 // 0, and where the lists of each term end in refs
	refBytes int64

	encoder listEncoder
	joined  []joined // of each term
	err     error
}

// joined is the size in bytes of a joined list and how many postings it has: none if none stay.
type joined struct{ size, postings int }

// listRef refers to a list of a source.
type listRef struct {
	source int
	term   uint32 // its number there
	at     span
}

var batches = sync.Pool{New: func() any { return new(batch) }}

func takeBatch() *batch {
	b, _ := batches.Get().(*batch)
	b.keys, b.text, b.ends, b.refs, b.refEnds, b.refBytes = b.keys[:0], b.text[:0], append(b.ends[:0], 0), b.refs[:0], append(b.refEnds[:0], 0), 0
	b.joined, b.err = b.joined[:0], nil
	b.encoder.lists.reset()
	return b
}

func (b *batch) full() bool {
	return len(b.keys) >= batchTerms || len(b.refs) >= batchLists || b.refBytes >= batchBytes
}

// mergeTerms merges the terms and joins their lists.
func (m *merger) mergeTerms(ctx context.Context) error {
	heap, err := m.cursors()
	if err != nil {
		return err
	}
	queue := inorder.New[*batch](m.opts.Processors - 1)
	defer func() {
		for !queue.Empty() {
			_, _ = queue.Next()
		}
	}()
	for len(heap) > 0 {
		b := takeBatch()
		for len(heap) > 0 && !b.full() {
			if err := heap.next(b); err != nil {
				return err
			}
		}
		if m.opts.Pace != nil {
			if err := m.opts.Pace(int(b.refBytes) + len(b.text)); err != nil {
				return err
			}
		}
		queue.Start(func() *batch {
			b.err = m.join(ctx, b)
			return b
		})
		for queue.Full() {
			if err := m.take(queue); err != nil {
				return err
			}
		}
	}
	for !queue.Empty() {
		if err := m.take(queue); err != nil {
			return err
		}
	}
	return nil
}

// take takes the next batch.
func (m *merger) take(queue *inorder.Queue[*batch]) error {
	b, _ := queue.Next()
	if b.err != nil {
		return b.err
	}
	for i, list := range b.joined {
		if list.postings == 0 {
			continue
		}
		m.writer.table.add(list.size, list.postings)
		if m.dictionary == nil {
			m.writer.table.addNgram(b.keys[i])
			continue
		}
		if err := m.dictionary.add(b.word(i)); err != nil {
			return err
		}
		m.components.add(b.word(i))
		for j, ref := range b.refsOf(i) {
			stay := repeated
			if j == 0 {
				stay = first
			}
			m.sources[ref.source].stay[ref.term] = stay
		}
	}
	defer batches.Put(b)
	return m.writer.hold(&b.encoder)
}

// word returns word i of the batch.
func (b *batch) word(i int) []byte { return b.text[b.ends[i]:b.ends[i+1]] }

// refsOf returns the lists of term i, in the order of sources.
func (b *batch) refsOf(i int) []listRef { return b.refs[b.refEnds[i]:b.refEnds[i+1]] }

// joiner is memory for joining lists.
type joiner struct {
	it   Iterator
	keys []uint64 // of the postings of a term
	run  run
}

var joiners = sync.Pool{New: func() any { return new(joiner) }}

// A posting as a number has, from the highest bits on, its superblock, the mask, whether the word is
// defined there, and the count.
const (
	keyDefined         = 1 << 15 // greater than any count
	keyMaskShift       = 16
	keySuperblockShift = keyMaskShift + maskBlocks
)

// join joins the lists of a batch. It keeps the postings of one term at a time. The errors are that
// of the context and *format.CorruptError. It runs in its own goroutine.
func (m *merger) join(ctx context.Context, b *batch) error {
	if err := ctx.Err(); err != nil {
		return err //nolint:wrapcheck // the caller's own
	}
	j, _ := joiners.Get().(*joiner)
	defer joiners.Put(j)
	b.encoder.blocks = m.blocks
	return format.GuardFiles(m.files, func() error {
		for i := range b.keys {
			if err := m.gather(j, b.refsOf(i)); err != nil {
				return err
			}
			b.joined = append(b.joined, m.encode(j, b))
		}
		return nil
	})
}

// gather collects the postings of one term that stay.
func (m *merger) gather(j *joiner, refs []listRef) error {
	j.keys = j.keys[:0]
	words := m.writer.tags.words()
	for i := range refs {
		s := &m.sources[refs[i].source]
		if err := j.it.list.open(s.index, s.table, refs[i].at); err != nil {
			return err
		}
		j.it.rewind()
		for superblocks, counts := j.it.Block(); len(superblocks) > 0; superblocks, counts = j.it.Block() {
			masks, err := j.it.Masks()
			if err != nil {
				return err
			}
			for i, superblock := range superblocks {
				place := s.places[superblock]
				if place == Gone {
					continue
				}
				key := uint64(place)<<keySuperblockShift | uint64(masks[i])<<keyMaskShift
				if words {
					if key |= uint64(counts[i]); j.it.DefinedAt(i) {
						key |= keyDefined
					}
				}
				j.keys = append(j.keys, key)
			}
		}
		if j.it.Err() != nil {
			return j.it.Err()
		}
	}
	return nil
}

// encode appends the list of the gathered postings.
func (m *merger) encode(j *joiner, b *batch) joined {
	keys := j.keys
	if len(keys) == 0 {
		return joined{}
	}
	slices.Sort(keys) // a shorter way for those of each source, which mostly ascend, takes as long
	r := &j.run
	r.superblocks, r.masks, r.counts, r.defined = r.superblocks[:0], r.masks[:0], r.counts[:0], r.defined[:0]
	for _, key := range keys {
		r.superblocks = append(r.superblocks, uint32(key>>keySuperblockShift))
		r.masks = append(r.masks, uint8(key>>keyMaskShift))
	}
	if m.writer.tags.words() {
		for _, key := range keys {
			r.counts = append(r.counts, uint16(key)&^keyDefined)
			r.defined = append(r.defined, key&keyDefined != 0)
		}
	}
	return joined{b.encoder.append(r), len(keys)}
}
