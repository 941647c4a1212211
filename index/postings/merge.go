package postings

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/inorder"
	"github.com/trawl-search/trawl/index/ngram"
)

// Gone is the place of an omitted superblock.
const Gone = math.MaxUint32

// Source is an index to merge, and where its text went.
type Source struct {
	Index *Index
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

// Merge writes the index of a text of that many superblocks, whose parts are in the sources. It
// writes what a Builder would write. It processes one range of n-grams at a time, in all sources,
// and keeps their postings, five bytes for each, on every processor. A range takes about rangeBytes
// in the sources, encoded, or is a single group. The masks are kept, encoded, until all lists are
// written, in memory as far as opts.Spill allows. The errors are those of w, Pace, the context and
// temporary files, and *format.CorruptError of a source.
func Merge(ctx context.Context, w *format.Writer, tags Tags, superblocks uint32, sources []Source, opts MergeOptions) (err error) {
	m := &merging{superblocks: superblocks, sources: make([]mergeSource, len(sources)), opts: opts, masks: inorder.NewBuffer(opts.Spill)}
	defer func() { err = errors.Join(err, m.masks.Close()) }()
	for i := range sources {
		if err := m.open(&m.sources[i], &sources[i]); err != nil {
			return err
		}
	}
	if err := m.writeLists(ctx, w, tags.Postings); err != nil {
		return fmt.Errorf("merge posting lists: %w", err)
	}
	_ = w.Begin(tags.Masks, format.Required) // the writer's errors stay until End
	if _, err := m.masks.WriteTo(w); err != nil {
		return fmt.Errorf("merge masks of postings: %w", err)
	}
	if err := w.End(); err != nil {
		return fmt.Errorf("merge masks of postings: %w", err)
	}
	return m.table.write(w, tags.Ngrams, m.blocks, m.postings)
}

// rangeBytes is the intended size of a range's postings in the sources.
const rangeBytes = 4 << 20

// merging is one call of Merge.
type merging struct {
	superblocks uint32
	sources     []mergeSource
	opts        MergeOptions

	blocks   []uint8            // of each superblock in which windows start
	weights  [groupCount]uint64 // bytes of the groups in the sources
	postings uint64
	listsEnd uint64
	masks    *inorder.Buffer
	table    tableWriter
}

// mergeSource is a source with its table.
type mergeSource struct {
	*Index
	places []uint32
	table  *table
}

// open opens a source, takes over the counts of its superblocks, and weighs its groups.
func (m *merging) open(to *mergeSource, s *Source) (err error) {
	*to = mergeSource{Index: s.Index, places: s.Places}
	if to.table, err = s.Index.openedTable(); err != nil {
		return err
	}
	if uint64(len(s.Places)) != uint64(to.superblocks) {
		return to.ngrams.Corruptf(1, "an index of %d superblocks of a text of %d", to.superblocks, len(s.Places))
	}
	if m.blocks == nil {
		m.blocks = make([]uint8, m.superblocks)
	}
	for superblock, place := range s.Places {
		if place != Gone {
			m.blocks[place] = to.table.blocks.at(uint32(superblock))
		}
	}
	return m.weigh(to)
}

// weigh checks the n-grams of a source, and adds the sizes of its groups.
func (m *merging) weigh(s *mergeSource) error {
	t, last, before := s.table, int64(-1), uint64(0)
	ids := t.ids.From(0)
	for i := range t.ids.Len() {
		next, ok := ids.Next()
		id := int64(next)
		if !ok || id <= last || id >= ngram.Space {
			return s.ngrams.Corruptf(headSize, "n-gram %d follows %d", id, last)
		}
		if last >= 0 && id/groupSize != last/groupSize {
			before = m.weighGroup(s, int(last/groupSize), i, before)
		}
		last = id
	}
	if last >= 0 {
		m.weighGroup(s, int(last/groupSize), t.ids.Len(), before)
	}
	return nil
}

// weighGroup adds the size of a group that ends before n-gram i of the table. The groups before it
// take before bytes. It returns the sum of both, which is never more than the sections have,
// whatever the table says.
func (m *merging) weighGroup(s *mergeSource, group, i int, before uint64) uint64 {
	at := min(s.table.listEnds.At(i-1), uint64(s.lists.Len())) + min(s.table.maskEnds.At(i-1), uint64(s.masks.Len()))
	at = max(at, before)
	m.weights[group] += at - before
	return at
}

// ngramRange is some groups of n-grams.
type ngramRange struct {
	from, to int // groups
	weight   uint64
}

// ranges divides the n-grams into ranges.
func (m *merging) ranges() (ranges []ngramRange) {
	next := ngramRange{}
	for group, weight := range &m.weights {
		if next.weight > 0 && next.weight+weight > rangeBytes {
			ranges = append(ranges, next)
			next = ngramRange{from: group}
		}
		next.to, next.weight = group+1, next.weight+weight
	}
	return append(ranges, next)
}

// writeLists writes the posting lists, and keeps the masks.
func (m *merging) writeLists(ctx context.Context, w *format.Writer, tag format.Tag) error {
	_ = w.Begin(tag, format.Required) // the writer's errors stay until End
	queue := inorder.New[*mergedRange](m.opts.Processors - 1)
	defer func() {
		for !queue.Empty() {
			_, _ = queue.Next()
		}
	}()
	for _, r := range m.ranges() {
		if m.opts.Pace != nil {
			if err := m.opts.Pace(int(r.weight)); err != nil {
				return err
			}
		}
		queue.Start(func() *mergedRange { return m.mergeRange(ctx, r) })
		for queue.Full() {
			if err := m.take(w, queue); err != nil {
				return err
			}
		}
	}
	for !queue.Empty() {
		if err := m.take(w, queue); err != nil {
			return err
		}
	}
	return w.End()
}

// take writes the lists of the next range.
func (m *merging) take(w *format.Writer, queue *inorder.Queue[*mergedRange]) error {
	r, _ := queue.Next()
	if r.err != nil {
		return r.err
	}
	for i, id := range r.table.ids {
		m.table.add(id, m.listsEnd+r.table.listEnds[i], uint64(m.masks.Len())+r.table.maskEnds[i])
	}
	m.listsEnd += uint64(len(r.lists))
	m.postings += r.postings
	if _, err := m.masks.Write(r.masks); err != nil {
		return err
	}
	_, err := w.Write(r.lists)
	return err
}

// first returns the first n-gram of a range, end the first one after it.
func (r ngramRange) first() ngram.ID { return ngram.ID(r.from * groupSize) }
func (r ngramRange) end() ngram.ID   { return ngram.ID(r.to * groupSize) }
