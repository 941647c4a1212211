package words

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/inorder"
	"github.com/trawl-search/trawl/index/postings"
)

// Source is an index of words to merge, and where its text went.
type Source struct {
	Index *Index
	// Places has, for each superblock of the index, its number in the new one, or postings.Gone. No
	// two superblocks of all sources may have the same place.
	Places []uint32
}

// Blob is where a blob of the new text comes from.
type Blob struct {
	// Source is the index of the source; negative for an empty blob that no source has.
	Source int32
	// Number of the blob in the source.
	Number uint32
}

// Merge writes the index of words of a text of that many superblocks, whose parts are in the
// sources. It writes what a Builder would write. It reads each source once, from front to back. It
// merges the lexicons word by word and, concurrently, batches of the words' lists. It keeps the
// lists, encoded, until the lexicon is written, in memory as far as opts.Spill allows. ngrams lends
// its memory and must be empty. The errors are those of w, Pace, the context and temporary files,
// and *format.CorruptError of a source.
func Merge(ctx context.Context, w *format.Writer, superblocks uint32, sources []Source, blobs []Blob, ngrams *postings.Builder, opts postings.MergeOptions) (err error) {
	m := &merging{sources: sources, opts: opts}
	lists := make([]postings.WordSource, len(sources))
	for i, s := range sources {
		lists[i] = postings.WordSource{Index: s.Index.lists, Places: s.Places}
	}
	if m.lists, err = postings.NewWordMerger(superblocks, lists, opts.Spill); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.lists.Close()) }()
	// Small parts are read first, to find damage there before the work is done.
	starts, words, err := m.starts(blobs)
	if err != nil {
		return err
	}
	opaque, err := m.opaque()
	if err != nil {
		return err
	}
	m.lexicon = NewLexiconWriter(w, ngrams)
	if err := m.mergeWords(ctx); err != nil {
		return err
	}
	if err := m.lexicon.Close(); err != nil {
		return err
	}
	if err := m.lists.Write(w); err != nil {
		return err
	}
	return writeInfo(w, m.lists.Words(), superblocks, words, starts, opaque)
}

// merging is one call of Merge.
type merging struct {
	sources []Source
	opts    postings.MergeOptions
	lists   *postings.WordMerger
	lexicon *LexiconWriter
}

// starts returns the number of words before each blob of the new text, and in all of it.
func (m *merging) starts(blobs []Blob) (starts []uint64, words uint64, err error) {
	starts = make([]uint64, len(blobs))
	for i, blob := range blobs {
		starts[i] = words
		if blob.Source < 0 {
			continue
		}
		n, err := m.sources[blob.Source].Index.wordsOf(blob.Number)
		if err != nil {
			return nil, 0, err
		}
		words += uint64(n)
	}
	return starts, words, nil
}

// wordsOf returns the number of words of a blob.
func (x *Index) wordsOf(blob uint32) (uint32, error) {
	from, err := x.WordsBefore(blob)
	if err != nil {
		return 0, err
	}
	to, err := x.WordsBefore(blob + 1)
	if err != nil {
		return 0, err
	}
	if blob >= x.info.blobs || to < from || to-from > math.MaxUint32 {
		return 0, x.starts.Corruptf("blob %d of %d has the words from %d to %d", blob, x.info.blobs, from, to)
	}
	return uint32(to - from), nil
}

// opaque returns the opaque superblocks of the new text, ascending.
func (m *merging) opaque() (all []uint64, err error) {
	for _, s := range m.sources {
		list, err := s.Index.Opaque()
		if err != nil {
			return nil, err
		}
		last := int64(-1)
		for it, i := list.From(0), 0; i < list.Len(); i++ {
			superblock, ok := it.Next()
			if !ok || int64(superblock) <= last || superblock >= uint64(len(s.Places)) {
				return nil, s.Index.opaque.Corruptf("opaque superblock %d of %d follows %d", superblock, len(s.Places), last)
			}
			last = int64(superblock)
			if place := s.Places[superblock]; place != postings.Gone {
				all = append(all, uint64(place))
			}
		}
	}
	slices.Sort(all)
	return all, nil
}

// Bounds on a batch of words, whose lists are joined together.
const (
	batchWords = 4096
	batchLists = 16384
	batchBytes = 1 << 20 // of lists
)

// batch has successive words of the new lexicon, those that have postings left, and their lists in
// the sources. Its memory is reused.
type batch struct {
	text     []byte
	ends     []uint32 // of each word in text
	refs     []postings.WordRef
	refEnds  []uint32 // of the lists of each word in refs
	refBytes int64

	joined *postings.JoinedWords
	err    error
}

var batches = sync.Pool{New: func() any { return new(batch) }}

func takeBatch() *batch {
	b, _ := batches.Get().(*batch)
	*b = batch{text: b.text[:0], ends: b.ends[:0], refs: b.refs[:0], refEnds: b.refEnds[:0]}
	return b
}

func (b *batch) full() bool {
	return len(b.ends) >= batchWords || len(b.refs) >= batchLists || b.refBytes >= batchBytes
}

// mergeWords writes the lexicon and collects the lists.
func (m *merging) mergeWords(ctx context.Context) error {
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
			b.joined, b.err = m.lists.Join(ctx, b.refs, b.refEnds)
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

// take writes the next batch.
func (m *merging) take(queue *inorder.Queue[*batch]) error {
	b, _ := queue.Next()
	if b.err != nil {
		return b.err
	}
	start := uint32(0)
	for i, end := range b.ends {
		if !b.joined.Gone(i) {
			if err := m.lexicon.Add(b.text[start:end]); err != nil {
				return err
			}
		}
		start = end
	}
	err := m.lists.Append(b.joined)
	batches.Put(b)
	return err
}
