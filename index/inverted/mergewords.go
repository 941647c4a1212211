package inverted

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sort"

	"github.com/trawl-search/trawl/index/format"
)

// MergeWords writes the index of words of a text of that many superblocks, whose parts are in the
// sources. It is like Merge, and writes what a WordBuilder would write. ngrams lends its memory and
// must be empty.
func MergeWords(ctx context.Context, w *format.Writer, superblocks uint32, sources []Source, ngrams *NgramBuilder, opts MergeOptions) error {
	m := newMerger(wordTags, superblocks, opts)
	return m.run(sources, func() error {
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
	})
}

// parts writes the parts of the words that stay, and their posting lists, from those of the sources.
func (m *merger) parts(ctx context.Context, w *format.Writer) (lists uint32, err error) {
	b, block, it := newPartBuilder(&m.components), new(Block), new(Iterator)
	ahead := 0 // bytes of lists that were read since the last Pace
	pace := func(list List) (err error) {
		if ahead += int(list.bytes()); ahead >= batchBytes && m.opts.Pace != nil {
			err, ahead = m.opts.Pace(ahead), 0
		}
		return cmp.Or(ctx.Err(), err)
	}
	words := uint64(0)
	for i := range m.sources {
		s := &m.sources[i]
		s.first = words
		words += uint64(s.words.Len())
		for number := range s.words.Blocks() {
			if err := cmp.Or(ctx.Err(), s.words.Block(number, block)); err != nil {
				return 0, err
			}
			for j := range block.Len() {
				if word := block.First + uint32(j); s.stay[word] != 0 {
					b.add(s.first+uint64(word), block.Word(j), s.stay[word] == repeated)
				}
			}
		}
	}
	return b.write(w, m.writer, func(to *partSums, holders []uint64) error {
		for _, holder := range holders {
			if err := m.addHolder(to, it, holder, pace); err != nil {
				return err
			}
		}
		return nil
	})
}

// addHolder adds the postings of a word to the sums of a part that it holds.
func (m *merger) addHolder(to *partSums, it *Iterator, holder uint64, pace func(List) error) error {
	word, matches := holderOf(holder)
	s := &m.sources[sort.Search(len(m.sources), func(i int) bool { return m.sources[i].first > word })-1]
	list, err := s.words.List(uint32(word - s.first))
	if err != nil {
		return err
	}
	if err := pace(list); err != nil {
		return err
	}
	err = to.addList(it, list, matches, s.places)
	if errors.Is(err, errPartCount) {
		return s.index.lists.Corruptf(0, "%v", err)
	}
	return err
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
