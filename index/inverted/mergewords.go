package inverted

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/trawl-search/trawl/index/format"
)

// WordSource is an index of words to merge, and where its text went.
type WordSource struct {
	Words *Words
	// Places are as in Source.
	Places []uint32
}

// MergeWords writes the index of words of a text of that many superblocks, whose parts are in the
// sources. It is like Merge, and writes what a WordBuilder would write. ngrams lends its memory and
// must be empty.
func MergeWords(ctx context.Context, w *format.Writer, superblocks uint32, sources []WordSource, ngrams *NgramBuilder, opts MergeOptions) (err error) {
	m := newMerger(wordTags, superblocks, opts)
	defer func() { err = errors.Join(err, m.writer.close()) }()
	for _, s := range sources {
		if err := m.add(mergeSource{index: s.Words.lists, words: s.Words, places: s.Places}); err != nil {
			return err
		}
	}
	// The opaque superblocks are read first, to find damage there before the work is done.
	opaque, err := m.opaque()
	if err != nil {
		return err
	}
	m.dictionary = newDictionaryWriter(w, ngrams)
	if err := m.mergeTerms(ctx); err != nil {
		return err
	}
	if err := m.dictionary.close(); err != nil {
		return err
	}
	partLists, err := m.parts(ctx, w)
	if err != nil {
		return err
	}
	if err := m.writer.write(w); err != nil {
		return err
	}
	return writeInfo(w, superblocks, opaque, partLists)
}

// parts writes the parts of the words that stay, and their posting lists, from those of the sources.
func (m *merger) parts(ctx context.Context, w *format.Writer) (lists uint32, err error) {
	b, block, it := newPartBuilder(&m.components), new(Block), new(Iterator)
	ahead := 0 // bytes of lists that were read since the last Pace
	err = format.GuardFiles(m.files, func() error {
		for i, s := range m.sources {
			for number := range s.words.Blocks() {
				if err := cmp.Or(ctx.Err(), s.words.Block(number, block)); err != nil {
					return err
				}
				for j := range block.Len() {
					if word := block.First + uint32(j); s.stay[word] != 0 {
						b.add(uint32(i), word, block.Word(j), s.stay[word] == first)
					}
				}
			}
		}
		lists, err = b.write(w, m.writer, func(h partHolder, to *run) error {
			s := m.sources[h.source]
			list, err := s.words.List(h.word)
			if err != nil {
				return err
			}
			if ahead += int(list.bytes()); ahead >= batchBytes && m.opts.Pace != nil {
				if err := m.opts.Pace(ahead); err != nil {
					return err
				}
				ahead = 0
			}
			return cmp.Or(ctx.Err(), to.readFrom(it, list, func(superblock uint32) uint32 { return s.places[superblock] }))
		})
		return err
	})
	if e, ok := errors.AsType[errPartCount](err); ok {
		return 0, m.sources[e.source].index.lists.Corruptf(0, "%v", err)
	}
	return lists, err
}

// readFrom replaces the content of a run by the postings of a list that have a place, without masks.
func (r *run) readFrom(it *Iterator, list List, place func(superblock uint32) uint32) error {
	r.superblocks, r.counts, r.defined = r.superblocks[:0], r.counts[:0], r.defined[:0]
	it.Reset(list)
	for superblocks, counts := it.Block(); len(superblocks) > 0; superblocks, counts = it.Block() {
		for i, superblock := range superblocks {
			if to := place(superblock); to != Gone {
				r.superblocks, r.counts, r.defined = append(r.superblocks, to), append(r.counts, counts[i]), append(r.defined, it.DefinedAt(i))
			}
		}
	}
	return it.Err()
}

// opaque returns the opaque superblocks of the new text, ascending.
func (m *merger) opaque() (all []uint64, err error) {
	for _, s := range m.sources {
		list, err := s.words.Opaque()
		if err != nil {
			return nil, err
		}
		last := int64(-1)
		for it, i := list.From(0), 0; i < list.Len(); i++ {
			superblock, ok := it.Next()
			if !ok || int64(superblock) <= last || superblock >= uint64(len(s.places)) {
				return nil, s.words.opaque.Corruptf("opaque superblock %d of %d follows %d", superblock, len(s.places), last)
			}
			last = int64(superblock)
			if place := s.places[superblock]; place != Gone {
				all = append(all, uint64(place))
			}
		}
	}
	slices.Sort(all)
	return all, nil
}
