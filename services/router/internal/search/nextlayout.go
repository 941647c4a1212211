package search

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Next is the layout of the next snapshot of the same roots. Its time depends on how many chunks are not
// those of the snapshot before. Only the newest layout may have a next one, one call at a time.
func (l *Layout) Next(revision int64, chunks []*catalog.Chunk) (*Layout, error) {
	return next(l, revision, chunks, func(c *catalog.Chunk) (*chunk, error) {
		roots := make([]*catalogv1.Root, len(c.Roots))
		for i := range c.Roots {
			roots[i] = c.Roots[i].Record
		}
		return l.numbers.chunkOf(c, roots)
	})
}

// Only is the layout of the repos for which keep holds. It drops the size and the
// languages of a shard that also holds other repos, since they would reveal those. A repo
// that is deleted, or served from another shard since, counts as another: nobody knows
// anymore who may see what the shard has of it.
func (l *Layout) Only(keep func(repo string) bool) *Layout {
	none := &Layout{restricted: true, choices: l.choices}
	return none.nextOf(l, keep)
}

// nextOf is what Only would return for the same repos of a later layout.
func (l *Layout) nextOf(whole *Layout, keep func(repo string) bool) *Layout {
	only, _ := next(l, whole.Revision, whole.chunks, func(c *chunk) (*chunk, error) { return c.only(keep), nil }) // its chunks cannot fail
	return only
}

// next updates a layout. Sources are what its chunks are made from.
func next[S comparable](old *Layout, revision int64, sources []S, chunkOf func(S) (*chunk, error)) (*Layout, error) {
	same := func(c *chunk, s S) bool { return c.source == any(s) }
	head, tail := 0, 0
	for head < min(len(old.chunks), len(sources)) && same(old.chunks[head], sources[head]) {
		head++
	}
	for tail < min(len(old.chunks), len(sources))-head && same(old.chunks[len(old.chunks)-1-tail], sources[len(sources)-1-tail]) {
		tail++
	}
	gone := map[any]*chunk{}
	for _, c := range old.chunks[head : len(old.chunks)-tail] {
		gone[c.source] = c
	}
	l := &Layout{Revision: revision, restricted: old.restricted, numbers: old.numbers, choices: old.choices, repos: old.repos, shards: old.shards, partial: old.partial}
	l.chunks = append(slices.Grow(l.chunks, len(sources)), old.chunks[:head]...)
	var come []*chunk
	for _, s := range sources[head : len(sources)-tail] {
		c, known := gone[s]
		if delete(gone, s); !known {
			var err error
			if c, err = chunkOf(s); err != nil {
				return nil, err
			}
			come = append(come, c)
		}
		l.chunks = append(l.chunks, c)
	}
	l.chunks = append(l.chunks, old.chunks[len(old.chunks)-tail:]...)
	l.edit(old, gone, come)
	l.makeLazily()
	return l, nil
}

// change is what becomes of a shard.
type change struct {
	digest searchapi.Digest
	gone   map[*catalogv1.Root]bool
	come   []*catalogv1.Root
	refs   []*catalogv1.ShardRef // of come
}

// edit changes the table of shards as far as the roots of chunks differ.
func (l *Layout) edit(old *Layout, gone map[any]*chunk, come []*chunk) {
	stays := map[*catalogv1.Root]bool{} // true once it is seen again
	for _, c := range gone {
		for _, root := range c.roots {
			stays[root] = false
		}
	}
	changes := map[uint32]*change{}
	of := func(n uint32) *change {
		if changes[n] == nil {
			changes[n] = &change{gone: map[*catalogv1.Root]bool{}}
		}
		return changes[n]
	}
	for _, c := range come {
		for i, root := range c.roots {
			if _, was := stays[root]; was {
				stays[root] = true
				continue
			}
			l.repos++
			for _, s := range c.of(i) {
				to := of(s.shard)
				to.digest, to.come, to.refs = searchapi.Digest(s.ref.Digest), append(to.come, root), append(to.refs, s.ref)
			}
		}
	}
	for _, c := range gone {
		for i, root := range c.roots {
			if stays[root] {
				continue
			}
			l.repos--
			for _, s := range c.of(i) {
				of(s.shard).gone[root] = true
			}
		}
	}
	l.table = old.table.clone()
	for n, c := range changes {
		l.replace(n, c)
	}
}

// replace makes the shard anew.
func (l *Layout) replace(n uint32, c *change) {
	s := &layoutShard{number: n}
	if was := l.table.at(n); was != nil {
		s.Digest, s.Roots, s.refs = was.Digest, make([]*catalogv1.Root, 0, len(was.Roots)+len(c.come)), make([]*catalogv1.ShardRef, 0, len(was.Roots)+len(c.come))
		for i, root := range was.Roots {
			if !c.gone[root] {
				s.Roots, s.refs = append(s.Roots, root), append(s.refs, was.refs[i])
			}
		}
		l.count(was, -1)
	}
	if len(c.come) > 0 {
		s.Digest = c.digest // the number may be that of a shard that is gone
	}
	for i, root := range c.come {
		at, _ := slices.BinarySearchFunc(s.refs, c.refs[i].RepoNumber, func(ref *catalogv1.ShardRef, number uint32) int { return cmp.Compare(ref.RepoNumber, number) })
		s.Roots, s.refs = slices.Insert(s.Roots, at, root), slices.Insert(s.refs, at, c.refs[i])
	}
	if len(s.Roots) == 0 {
		l.table.set(n, nil)
		if l.numbers != nil {
			l.numbers.free(n, s.Digest)
		}
		return
	}
	s.Ref = s.refs[0]
	s.partial = len(s.Roots) != int(s.Ref.Repos)
	s.all = s.plan(nil)
	s.all.Prepare()
	l.count(s, 1)
	l.table.set(n, s)
}

func (l *Layout) count(s *layoutShard, n int) {
	l.shards += n
	if s.partial {
		l.partial += n
	}
}

// only is the part of a chunk for which keep holds.
func (c *chunk) only(keep func(repo string) bool) *chunk {
	part := &chunk{source: c, first: c.first, begin: make([]uint32, 1, len(c.begin))}
	for i, root := range c.roots {
		if keep(root.Repo) {
			part.add(root, c.of(i))
		}
	}
	part.name()
	return part
}

func (c *chunk) add(root *catalogv1.Root, holdings []holding) {
	c.roots, c.holdings = append(c.roots, root), append(c.holdings, holdings...)
	c.begin = append(c.begin, uint32(len(c.holdings)))
}

// name notes the names, when all roots are there.
func (c *chunk) name() {
	var text strings.Builder
	for _, root := range c.roots {
		text.WriteString(root.Repo)
		text.WriteByte('\n')
	}
	c.text = text.String()
}

// shardNumbers gives shards small numbers, and numbers of shards that are gone to others.
type shardNumbers struct {
	of     map[searchapi.Digest]uint32
	unused []uint32
	next   uint32
}

// chunkOf makes a chunk and numbers its shards.
func (n *shardNumbers) chunkOf(source any, roots []*catalogv1.Root) (*chunk, error) {
	c := &chunk{source: source, first: roots[0].Repo, begin: make([]uint32, 1, len(roots)+1)}
	for _, root := range roots { // no shard gets a number if one is wrong
		for _, ref := range root.Shards {
			if _, err := searchapi.ParseDigest(ref.Digest); err != nil {
				return nil, fmt.Errorf("root of %s: %w", root.Repo, err)
			}
		}
	}
	for _, root := range roots {
		var holdings []holding
		for _, ref := range root.Shards {
			shard := n.number(searchapi.Digest(ref.Digest))
			if !slices.ContainsFunc(holdings, func(s holding) bool { return s.shard == shard }) {
				holdings = append(holdings, holding{shard, ref})
			}
		}
		c.add(root, holdings)
	}
	c.name()
	return c, nil
}

func (n *shardNumbers) number(d searchapi.Digest) uint32 {
	number, known := n.of[d]
	if known {
		return number
	}
	if last := len(n.unused) - 1; last >= 0 {
		number, n.unused = n.unused[last], n.unused[:last]
	} else {
		number = n.next
		n.next++
	}
	n.of[d] = number
	return number
}

func (n *shardNumbers) free(number uint32, d searchapi.Digest) {
	delete(n.of, d)
	n.unused = append(n.unused, number)
}

// shardTable has the shards of a layout by their numbers. Layouts share its pages.
type shardTable struct {
	pages []*shardPage
	// own are the pages that only this table has, until it is cloned.
	own map[int]bool
}

const pageShards = 256

type shardPage [pageShards]*layoutShard

func (t *shardTable) clone() shardTable {
	return shardTable{pages: slices.Clone(t.pages), own: map[int]bool{}}
}

func (t *shardTable) at(n uint32) *layoutShard {
	if page := int(n / pageShards); page < len(t.pages) && t.pages[page] != nil {
		return t.pages[page][n%pageShards]
	}
	return nil
}

func (t *shardTable) set(n uint32, s *layoutShard) {
	page := int(n / pageShards)
	for page >= len(t.pages) {
		t.pages = append(t.pages, nil)
	}
	if !t.own[page] {
		own := new(shardPage)
		if t.pages[page] != nil {
			*own = *t.pages[page]
		}
		t.pages[page], t.own[page] = own, true
	}
	t.pages[page][n%pageShards] = s
}

// all are the shards in the order of their numbers.
func (t *shardTable) all() iter.Seq[*layoutShard] {
	return func(yield func(*layoutShard) bool) {
		for _, page := range t.pages {
			if page == nil {
				continue
			}
			for _, s := range page {
				if s != nil && !yield(s) {
					return
				}
			}
		}
	}
}
