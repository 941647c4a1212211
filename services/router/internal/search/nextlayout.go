package search

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// Next is the layout of the next snapshot of the same roots. Its time depends on how many chunks are not
// those of the snapshot before. Only the newest layout may have a next one, one call at a time.
func (l *Layout) Next(revision int64, chunks []*catalog.Chunk) (*Layout, error) {
	return next(l, revision, chunks, func(c *catalog.Chunk) *catalog.Chunk { return c }, l.numbers.chunkOf)
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
	only, _ := next(l, whole.Revision, whole.chunks, func(c *chunk) *catalog.Chunk { return c.roots }, func(c *chunk) (*chunk, error) {
		return c.only(keep), nil // it cannot fail
	})
	return only
}

// next updates a layout. Sources are what its chunks are made from, each from one of the roots.
func next[S any](old *Layout, revision int64, sources []S, rootsOf func(S) *catalog.Chunk, chunkOf func(S) (*chunk, error)) (*Layout, error) {
	same := func(c *chunk, s S) bool { return c.roots == rootsOf(s) }
	head, tail := 0, 0
	for head < min(len(old.chunks), len(sources)) && same(old.chunks[head], sources[head]) {
		head++
	}
	for tail < min(len(old.chunks), len(sources))-head && same(old.chunks[len(old.chunks)-1-tail], sources[len(sources)-1-tail]) {
		tail++
	}
	gone := map[*catalog.Chunk]*chunk{}
	for _, c := range old.chunks[head : len(old.chunks)-tail] {
		gone[c.roots] = c
	}
	l := &Layout{Revision: revision, restricted: old.restricted, numbers: old.numbers, choices: old.choices, repos: old.repos, shards: old.shards, partial: old.partial}
	l.chunks = append(slices.Grow(l.chunks, len(sources)), old.chunks[:head]...)
	var come []*chunk
	for _, s := range sources[head : len(sources)-tail] {
		c, known := gone[rootsOf(s)]
		if delete(gone, rootsOf(s)); !known {
			var err error
			if c, err = chunkOf(s); err != nil {
				return nil, err
			}
			come = append(come, c)
		}
		l.chunks = append(l.chunks, c)
	}
	l.chunks = append(l.chunks, old.chunks[len(old.chunks)-tail:]...)
	l.edit(old, slices.Collect(maps.Values(gone)), come)
	l.makeLazily()
	return l, nil
}

// change is what becomes of a shard.
type change struct {
	shard catalog.Shard
	// gone and come are numbers of repos. Most are in both.
	gone, come []uint32
	// names is how much longer their names take in a message.
	names    int
	overlays []searchapi.Overlay // of come
}

// edit changes the table of shards as far as chunks differ.
func (l *Layout) edit(old *Layout, gone, come []*chunk) {
	changes := map[uint32]*change{}
	each := func(c *chunk, do func(to *change, r catalog.Record, place int, h catalog.Held)) {
		of := make([]*change, len(c.shards))
		for i, n := range c.shards {
			if changes[n] == nil {
				changes[n] = &change{}
			}
			of[i] = changes[n]
		}
		var shards []catalog.Held
		for r := range c.all() {
			shards = r.Shards(shards[:0])
			for i, h := range shards {
				do(of[h.Shard], r, i, h)
			}
		}
	}
	for _, c := range gone {
		l.repos -= c.n
		each(c, func(to *change, r catalog.Record, _ int, h catalog.Held) {
			to.gone, to.names = append(to.gone, h.Number), to.names-searchapi.NameSize(r.Repo)
		})
	}
	for _, c := range come {
		l.repos += c.n
		each(c, func(to *change, r catalog.Record, place int, h catalog.Held) {
			to.shard = c.roots.Shards()[h.Shard].Value()
			to.come, to.names = append(to.come, h.Number), to.names+searchapi.NameSize(r.Repo)
			if h.Overlaid {
				root := r.Root()
				if overlay, some := searchapi.OverlayOf(root, root.Shards[place]); some {
					to.overlays = append(to.overlays, overlay)
				}
			}
		})
	}
	l.table = old.table.clone()
	for n, c := range changes {
		l.replace(n, c)
	}
}

// replace makes the shard anew, unless it stays the same.
func (l *Layout) replace(n uint32, c *change) {
	was := l.table.at(n)
	if was == nil {
		was = &layoutShard{}
	}
	s := &layoutShard{Shard: was.Shard, n: was.n - len(c.gone) + len(c.come)}
	if s.n == 0 {
		if was.n > 0 {
			l.count(was, -1)
			l.table.set(n, nil)
		}
		if was.n > 0 && l.numbers != nil {
			l.numbers.free(n, was.Digest)
		}
		return
	}
	if len(c.come) > 0 {
		s.Shard = c.shard // the number may be that of a shard that is gone
	}
	s.live = was.live.Edit(c.gone, c.come)
	s.partial = s.n != int(s.Repos)
	s.all = searchapi.Shard{Digest: searchapi.Digest([]byte(s.Digest)), Place: n, Repos: searchapi.AllRepos(), Names: was.all.Names + c.names}
	if s.partial {
		s.all.Repos = s.live
	}
	left := was.live.Edit(c.gone, nil)
	for _, o := range was.all.Overlays {
		if left.Has(int(o.Repo)) {
			s.all.Overlays = append(s.all.Overlays, o)
		}
	}
	s.all.Overlays = append(s.all.Overlays, c.overlays...)
	slices.SortFunc(s.all.Overlays, func(a, b searchapi.Overlay) int { return cmp.Compare(a.Repo, b.Repo) })
	if s.same(was) {
		return
	}
	if was.n > 0 {
		l.count(was, -1)
	}
	s.all.Prepare()
	l.count(s, 1)
	l.table.set(n, s)
}

// same reports whether two versions of a shard are the same.
func (s *layoutShard) same(as *layoutShard) bool {
	return s.Shard == as.Shard && s.n == as.n && s.all.Names == as.all.Names && s.live.Equal(as.live) &&
		slices.EqualFunc(s.all.Overlays, as.all.Overlays, func(a, b searchapi.Overlay) bool { return reflect.DeepEqual(a, b) })
}

func (l *Layout) count(s *layoutShard, n int) {
	l.shards += n
	if s.partial {
		l.partial += n
	}
}

// only is the part of a chunk for which keep holds.
func (c *chunk) only(keep func(repo string) bool) *chunk {
	part := &chunk{roots: c.roots, shards: c.shards, grams: c.grams, seen: make([]uint64, (c.roots.Len()+63)/64)}
	for i, r := range c.roots.All() {
		if c.n > 0 && c.has(i) && keep(r.Repo) {
			part.seen[i/64] |= 1 << (i % 64)
			part.n++
		}
	}
	if part.n == c.roots.Len() {
		part.seen = nil
	}
	return part
}

// shardNumbers gives shards small numbers, and numbers of shards that are gone to others.
type shardNumbers struct {
	// of has the numbers by digests.
	of     map[string]uint32
	unused []uint32
	next   uint32
}

// chunkOf makes a chunk and numbers its shards.
func (n *shardNumbers) chunkOf(roots *catalog.Chunk) (*chunk, error) {
	var shards []catalog.Held
	for _, r := range roots.All() { // no shard gets a number if one is wrong
		shards = r.Shards(shards[:0])
		for _, h := range shards {
			if _, err := searchapi.ParseDigest([]byte(roots.Shards()[h.Shard].Value().Digest)); err != nil {
				return nil, fmt.Errorf("root of %s: %w", r.Repo, err)
			}
			if h.Number >= searchapi.MaxRepoNumber {
				return nil, fmt.Errorf("root of %s: it is number %d in its shard, at most %d", r.Repo, h.Number, searchapi.MaxRepoNumber-1)
			}
		}
	}
	c := &chunk{roots: roots, n: roots.Len(), grams: gramsOf(roots.Names())}
	for _, shard := range roots.Shards() {
		c.shards = append(c.shards, n.number(shard.Value().Digest))
	}
	return c, nil
}

func (n *shardNumbers) number(d string) uint32 {
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

func (n *shardNumbers) free(number uint32, d string) {
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
