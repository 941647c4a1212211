package postings

import (
	"context"
	"slices"
	"sync"

	"github.com/trawl-search/trawl/index/ngram"
)

// mergedRange has the encoded postings of a range of n-grams, or the error.
type mergedRange struct {
	lists, masks []byte
	table        tableWriter
	postings     uint64
	err          error
}

// run has the postings of one list that stay.
type run struct {
	ngram      uint32 // minus the first of the range
	start, end uint32
	ascends    bool
}

// collector gathers and encodes the postings of a range. It reuses its memory.
type collector struct {
	runs        []run
	superblocks []uint32 // of all runs
	masks       []uint8
	sorted      []run
	starts      []uint32 // of the runs of each n-gram in sorted

	block  [blockSize]uint32
	reader maskReader

	joined joiner

	list  listEncoder
	mask  maskEncoder
	lists bitWriter
	coded bitWriter
}

var collectors = sync.Pool{New: func() any { return new(collector) }}

// mergeRange runs in its own goroutine.
func (m *merging) mergeRange(ctx context.Context, r ngramRange) *mergedRange {
	c, _ := collectors.Get().(*collector)
	defer collectors.Put(c)
	c.runs, c.superblocks, c.masks = c.runs[:0], c.superblocks[:0], c.masks[:0]
	for i := range m.sources {
		s := &m.sources[i]
		err := ctx.Err()
		if err == nil {
			err = s.ngrams.Guard(func() error { return c.collect(s, r) })
		}
		if err != nil {
			return &mergedRange{err: err}
		}
	}
	c.sort(r)
	out := &mergedRange{postings: uint64(len(c.superblocks))}
	c.encode(out, r, m.blocks)
	return out
}

// collect gathers the postings of the range from a source.
func (c *collector) collect(s *mergeSource, r ngramRange) error {
	t := s.table
	first := t.ids.Search(uint64(r.first()))
	ids, listEnds, maskEnds := t.ids.From(first), t.listEnds.From(first), t.maskEnds.From(first)
	at := span{}
	if first > 0 {
		at.to, at.maskTo = t.listEnds.At(first-1), t.maskEnds.At(first-1)
	}
	for {
		id, ok := ids.Next()
		if !ok || ngram.ID(id) >= r.end() {
			return nil
		}
		at.from, at.maskFrom = at.to, at.maskTo
		at.to, _ = listEnds.Next()
		at.maskTo, _ = maskEnds.Next()
		l, err := s.list(t, ngram.ID(id), at)
		if err != nil {
			return err
		}
		if err := c.add(&l, uint32(id)-uint32(r.first()), s.places); err != nil {
			return err
		}
	}
}

// add gathers the postings of a list.
func (c *collector) add(l *List, id uint32, places []uint32) error {
	next := run{ngram: id, start: uint32(len(c.superblocks)), ascends: true}
	c.reader.reset()
	last := int64(-1)
	for b := range l.raw.blocks() {
		block, err := l.raw.decode(b, &c.block)
		if err != nil {
			return l.corrupt(err)
		}
		if _, err := c.reader.at(l, b, len(block)-1, block); err != nil {
			return err
		}
		start := len(c.superblocks)
		c.keep(block, places)
		for _, place := range c.superblocks[start:] {
			next.ascends = next.ascends && int64(place) > last
			last = int64(place)
		}
	}
	if next.end = uint32(len(c.superblocks)); next.end > next.start {
		c.runs = append(c.runs, next)
	}
	return nil
}

// keep gathers the postings of a block that stay. It writes each posting, and n increases if it
// stays.
func (c *collector) keep(block, places []uint32) {
	start := len(c.superblocks)
	c.superblocks = slices.Grow(c.superblocks, len(block))[:start+len(block)]
	c.masks = slices.Grow(c.masks, len(block))[:start+len(block)]
	superblocks, masks, n := c.superblocks[start:], c.masks[start:], 0
	for i, superblock := range block {
		place := places[superblock]
		superblocks[n], masks[n] = place, c.reader.block.masks[i]
		if place != Gone {
			n++
		}
	}
	c.superblocks, c.masks = c.superblocks[:start+n], c.masks[:start+n]
}

// sort sorts the runs by n-gram. Runs of one n-gram keep their order.
func (c *collector) sort(r ngramRange) {
	size := int(r.end()-r.first()) + 1
	c.starts = slices.Grow(c.starts[:0], size)[:size]
	clear(c.starts)
	for i := range c.runs {
		c.starts[c.runs[i].ngram]++
	}
	sum := uint32(0)
	for i, n := range c.starts {
		c.starts[i] = sum
		sum += n
	}
	c.sorted = slices.Grow(c.sorted[:0], len(c.runs))[:len(c.runs)]
	for _, run := range c.runs {
		at := &c.starts[run.ngram]
		c.sorted[*at] = run
		*at++
	}
}

// encode encodes the lists and the masks of all n-grams.
func (c *collector) encode(out *mergedRange, r ngramRange, blocks []uint8) {
	c.lists.reset()
	c.coded.reset()
	width := superblockBits(uint32(len(blocks)))
	for start := 0; start < len(c.sorted); {
		id, end := c.sorted[start].ngram, start+1
		for end < len(c.sorted) && c.sorted[end].ngram == id {
			end++
		}
		superblocks, masks := c.join(c.sorted[start:end])
		c.list.append(&c.lists, superblocks, width)
		c.mask.append(&c.coded, blocks, superblocks, masks)
		out.table.add(uint64(r.first())+uint64(id), uint64(c.lists.len()), uint64(c.coded.len()))
		start = end
	}
	out.lists, out.masks = slices.Clone(c.lists.bytes()), slices.Clone(c.coded.bytes())
}

// join returns the postings of the runs of one n-gram, ascending.
func (c *collector) join(runs []run) ([]uint32, []uint8) {
	if len(runs) == 1 && runs[0].ascends {
		return c.superblocks[runs[0].start:runs[0].end], c.masks[runs[0].start:runs[0].end]
	}
	c.joined.reset()
	for _, r := range runs {
		c.joined.add(c.superblocks[r.start:r.end], c.masks[r.start:r.end])
	}
	return c.joined.sorted()
}
