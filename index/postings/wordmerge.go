package postings

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/inorder"
)

// WordSource is an index of words whose posting lists are merged, and where its text went.
type WordSource struct {
	Index *WordIndex
	// Places are as in Source.
	Places []uint32
}

// WordMerger merges the posting lists of words, and writes what a WordWriter would write. Its
// caller knows which words of the sources are equal, and passes their lists in the order in which
// the words are written:
// which the words are written:
//
//	ref := m.Lists(source).Next()   // each source's own order, for all of its words
//	joined, err := m.Join(ctx, refs, ends)
//	m.Append(joined)
//	m.Write(w)
//
// It keeps encoded lists until Write, in memory as far as its inorder.BufferConfig allows. The
// caller must call Close. Apart from Join, it is not safe for concurrent use.
type WordMerger struct {
	sources      []wordMergeSource
	files        []*format.File
	blocks       []uint8 // of each superblock, up to the last one in which a word starts
	lists, tails *inorder.Buffer
	ends         wordEnds
}

// wordMergeSource is a source with its table.
type wordMergeSource struct {
	*WordIndex
	places []uint32
	table  *wordTable
}

// NewWordMerger starts to merge the lists of a text of that many superblocks. The error is a
// *format.CorruptError.
func NewWordMerger(superblocks uint32, sources []WordSource, hold inorder.BufferConfig) (*WordMerger, error) {
	m := &WordMerger{blocks: make([]uint8, superblocks), lists: inorder.NewBuffer(hold), tails: inorder.NewBuffer(hold)}
	for _, s := range sources {
		table, err := s.Index.openedTable()
		if err != nil {
			return nil, err
		}
		if uint64(len(s.Places)) != uint64(s.Index.superblocks) {
			return nil, s.Index.table.Corruptf(5, "words of %d superblocks of a text of %d", s.Index.superblocks, len(s.Places))
		}
		for superblock, place := range s.Places {
			if place != Gone {
				m.blocks[place] = table.blocks.at(uint32(superblock))
			}
		}
		m.sources = append(m.sources, wordMergeSource{s.Index, s.Places, table})
		m.files = append(m.files, s.Index.table.File())
	}
	return m, nil
}

// WordRef refers to the list of a word in a source.
type WordRef struct {
	source, word uint32
	at           span
}

// Bytes returns the size of the list and its tail. In a damaged source it is any number below
// 1<<32.
func (r *WordRef) Bytes() int64 {
	list, tail := max(r.at.to, r.at.from)-r.at.from, max(r.at.maskTo, r.at.maskFrom)-r.at.maskFrom
	return int64(min(list, math.MaxInt32) + min(tail, math.MaxInt32))
}

// WordLists walks the lists of one source in the order of its words. It is not safe for concurrent
// use.
type WordLists struct {
	next               WordRef
	listEnds, tailEnds eliasfano.Iterator
}

// Lists returns the lists of a source, given its index among the sources.
func (m *WordMerger) Lists(source int) *WordLists {
	t := m.sources[source].table
	return &WordLists{next: WordRef{source: uint32(source)}, listEnds: t.listEnds.From(0), tailEnds: t.tailEnds.From(0)}
}

// Next returns the list of the next word; there must be one.
func (l *WordLists) Next() WordRef {
	ref := l.next
	ref.at.to, _ = l.listEnds.Next()
	ref.at.maskTo, _ = l.tailEnds.Next()
	l.next.word++
	l.next.at.from, l.next.at.maskFrom = ref.at.to, ref.at.maskTo
	return ref
}

// JoinedWords has the encoded lists of some words.
type JoinedWords struct {
	lists, tails []byte
	words        []joinedWord
}

// joinedWord has the number of bytes of a word's list and tail, and of its postings.
type joinedWord struct{ list, tail, postings int }

// Gone reports whether nothing is left of word i.
func (j *JoinedWords) Gone(i int) bool { return j.words[i].postings == 0 }

// wordJoiner is memory for joining lists.
type wordJoiner struct {
	it           WordIterator
	stretches    stretches
	superblocks  []uint32
	masks        []uint8
	counts       []uint16
	defined      []bool
	list         listEncoder
	tail         tailEncoder
	lists, tails bitWriter
}

var wordJoiners = sync.Pool{New: func() any { return new(wordJoiner) }}

// A posting of a word as a number has, from the highest bits on, its superblock, the mask, whether
// the word is defined there, and the count.
const (
	wordDefined         = 1 << 15 // greater than any count
	wordMaskShift       = 16
	wordSuperblockShift = wordMaskShift + maskBlocks
)

// Join joins the lists of some words: refs[ends[i-1]:ends[i]] are those of word i. It keeps the
// postings of one word at a time. The errors are that of the context and *format.CorruptError. It
// is safe for concurrent use.
func (m *WordMerger) Join(ctx context.Context, refs []WordRef, ends []uint32) (*JoinedWords, error) {
	if err := ctx.Err(); err != nil {
		return nil, err //nolint:wrapcheck // the caller's own
	}
	j, _ := wordJoiners.Get().(*wordJoiner)
	defer wordJoiners.Put(j)
	out := &JoinedWords{words: make([]joinedWord, len(ends))}
	j.lists.reset()
	j.tails.reset()
	err := format.GuardFiles(m.files, func() error {
		start := uint32(0)
		for i, end := range ends {
			if err := m.gather(j, refs[start:end]); err != nil {
				return err
			}
			out.words[i] = m.encode(j)
			start = end
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out.lists = append(out.lists, j.lists.bytes()...)
	out.tails = append(out.tails, j.tails.bytes()...)
	return out, nil
}

// gather collects the postings of one word that stay.
func (m *WordMerger) gather(j *wordJoiner, refs []WordRef) error {
	j.stretches.reset()
	for i := range refs {
		ref := &refs[i]
		s := &m.sources[ref.source]
		l, err := s.list(s.table, ref.word, ref.at)
		if err != nil {
			return err
		}
		j.it.Reset(l)
		for superblocks, counts := j.it.Block(); len(superblocks) > 0; superblocks, counts = j.it.Block() {
			masks, err := j.it.Masks()
			if err != nil {
				return err
			}
			for i, superblock := range superblocks {
				if place := s.places[superblock]; place != Gone {
					key := uint64(place)<<wordSuperblockShift | uint64(masks[i])<<wordMaskShift | uint64(counts[i])
					if j.it.DefinedAt(i) {
						key |= wordDefined
					}
					j.stretches.add(key)
				}
			}
		}
		if j.it.Err() != nil {
			return j.it.Err()
		}
	}
	return nil
}

// encode appends the list of the gathered postings.
func (m *WordMerger) encode(j *wordJoiner) joinedWord {
	keys := j.stretches.sorted()
	if len(keys) == 0 {
		return joinedWord{}
	}
	j.superblocks, j.masks, j.counts, j.defined = j.superblocks[:0], j.masks[:0], j.counts[:0], j.defined[:0]
	for _, key := range keys {
		j.superblocks = append(j.superblocks, uint32(key>>wordSuperblockShift))
		j.masks = append(j.masks, uint8(key>>wordMaskShift))
		j.counts = append(j.counts, uint16(key)&^wordDefined)
		j.defined = append(j.defined, key&wordDefined != 0)
	}
	list, tail := j.lists.len(), j.tails.len()
	j.list.append(&j.lists, j.superblocks, superblockBits(uint32(len(m.blocks))))
	j.tail.append(&j.tails, m.blocks, j.superblocks, j.masks, j.counts, j.defined)
	return joinedWord{j.lists.len() - list, j.tails.len() - tail, len(keys)}
}

// Append appends the lists of the next words, without those that are gone.
func (m *WordMerger) Append(j *JoinedWords) error {
	for _, w := range j.words {
		if w.postings > 0 {
			m.ends.add(w.list, w.tail, w.postings)
		}
	}
	if _, err := m.lists.Write(j.lists); err != nil {
		return fmt.Errorf("hold posting lists of words: %w", err)
	}
	if _, err := m.tails.Write(j.tails); err != nil {
		return fmt.Errorf("hold counts of words: %w", err)
	}
	return nil
}

// Words returns the number of words appended.
func (m *WordMerger) Words() uint32 { return m.ends.words }

// Write writes everything that was appended.
func (m *WordMerger) Write(w *format.Writer) error {
	for _, section := range []struct {
		tag  format.Tag
		held *inorder.Buffer
	}{{format.TagWordPostings, m.lists}, {format.TagWordTails, m.tails}} {
		_ = w.Begin(section.tag, format.Required) // the writer's errors stay until End
		if _, err := section.held.WriteTo(w); err != nil {
			return fmt.Errorf("write section %s: %w", section.tag, err)
		}
		if err := w.End(); err != nil {
			return fmt.Errorf("write section %s: %w", section.tag, err)
		}
	}
	return m.ends.write(w, m.blocks)
}

// Close frees the memory and files. A second call does nothing.
func (m *WordMerger) Close() error { return errors.Join(m.lists.Close(), m.tails.Close()) }
