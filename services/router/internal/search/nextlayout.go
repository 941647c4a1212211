package search

import (
	"cmp"
	"fmt"
	"iter"
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
	return (&Layout{restricted: true}).nextOf(l, named(keep))
}

// named is a condition on the name of a repo.
func named(keep func(repo string) bool) func(catalog.Record) bool {
	return func(r catalog.Record) bool { return keep(r.Repo) }
}

// nextOf is what Only would return for the same repos of a later layout.
func (l *Layout) nextOf(whole *Layout, keep func(catalog.Record) bool) *Layout {
	only, _ := next(l, whole.Revision, whole.chunks, func(c *chunk) *catalog.Chunk { return c.roots }, func(c, _ *chunk) (*chunk, error) {
		return c.only(keep), nil // it cannot fail
	})
	return only
}

// next updates a layout. Sources are what its chunks are made from, each from one of the roots, and from the chunk before that
// begins with the same repo, if there is one.
func next[S any](old *Layout, revision int64, sources []S, rootsOf func(S) *catalog.Chunk, chunkOf func(s S, before *chunk) (*chunk, error)) (*Layout, error) {
	same := func(c *chunk, s S) bool { return c.roots == rootsOf(s) }
	head, tail := 0, 0
	for head < min(len(old.chunks), len(sources)) && same(old.chunks[head], sources[head]) {
		head++
	}
	for tail < min(len(old.chunks), len(sources))-head && same(old.chunks[len(old.chunks)-1-tail], sources[len(sources)-1-tail]) {
		tail++
	}
	l := &Layout{Revision: revision, restricted: old.restricted, numbers: old.numbers, repos: old.repos, shards: old.shards, partial: old.partial}
	l.chunks = append(slices.Grow(l.chunks, len(sources)), old.chunks[:head]...)
	var gone, come []*chunk
	olds := old.chunks[head : len(old.chunks)-tail]
	for _, s := range sources[head : len(sources)-tail] {
		first := rootsOf(s).First()
		for len(olds) > 0 && olds[0].First() < first {
			gone, olds = append(gone, olds[0]), olds[1:]
		}
		var before *chunk
		if len(olds) > 0 && olds[0].First() == first {
			before, olds = olds[0], olds[1:]
		}
		if before != nil && same(before, s) {
			l.chunks = append(l.chunks, before)
			continue
		}
		c, err := chunkOf(s, before)
		if err != nil {
			return nil, err
		}
		l.chunks, come = append(l.chunks, c), append(come, c)
		if before != nil {
			gone = append(gone, before)
		}
	}
	l.chunks = append(l.chunks, old.chunks[len(old.chunks)-tail:]...)
	l.edit(old, append(gone, olds...), come)
	l.makeLazily()
	return l, nil
}

// change is what becomes of a shard.
type change struct {
	shard catalog.Shard
	// gone and come are numbers of repos, some of which are in both.
	gone, come []uint32
	// names is how much longer their names take in a message.
	names    int
	overlays []searchapi.Overlay // of come
}

// changes are the shards that change, by their numbers.
type changes map[uint32]*change

func (c changes) of(n uint32) *change {
	if c[n] == nil {
		c[n] = &change{}
	}
	return c[n]
}

func (c changes) remove(from *chunk, r catalog.Record) {
	for _, h := range r.Shards(nil) {
		of := c.of(from.shards[h.Shard])
		of.gone, of.names = append(of.gone, h.Number), of.names-searchapi.NameSize(r.Repo)
	}
}

func (c changes) add(to *chunk, r catalog.Record) {
	for place, h := range r.Shards(nil) {
		of := c.of(to.shards[h.Shard])
		of.shard = to.roots.Shards()[h.Shard].Value()
		of.come, of.names = append(of.come, h.Number), of.names+searchapi.NameSize(r.Repo)
		if h.Overlaid {
			root := r.Root()
			if overlay, some := searchapi.OverlayOf(root, root.Shards[place]); some {
				of.overlays = append(of.overlays, overlay)
			}
		}
	}
}

// edit changes the table of shards as far as the roots of chunks differ. Both lists are in the order of the roots.
func (l *Layout) edit(old *Layout, gone, come []*chunk) {
	for _, c := range gone {
		l.repos -= c.n
	}
	for _, c := range come {
		l.repos += c.n
	}
	differ := make(changes)
	from, to := members{chunks: gone}, members{chunks: come}
	from.next()
	to.next()
	for from.ok || to.ok {
		switch {
		case !to.ok || from.ok && from.Repo < to.Repo:
			differ.remove(from.chunk, from.Record)
			from.next()
		case !from.ok || to.Repo < from.Repo:
			differ.add(to.chunk, to.Record)
			to.next()
		default:
			if !from.SameShards(to.Record) {
				differ.remove(from.chunk, from.Record)
				differ.add(to.chunk, to.Record)
			}
			from.next()
			to.next()
		}
	}
	l.table = shardTable{pages: slices.Clone(old.table.pages), own: map[int]bool{}}
	for n, c := range differ {
		l.replace(n, c)
	}
}

// members are the roots that a layout has of some chunks, one after the other.
type members struct {
	chunks []*chunk // that follow
	at     catalog.Cursor
	place  int // of the next root

	chunk *chunk
	catalog.Record
	ok bool
}

// next goes on to the next root; ok is false if there is none.
func (m *members) next() {
	for {
		if m.chunk != nil {
			for m.Record, m.ok = m.at.Next(); m.ok; m.Record, m.ok = m.at.Next() {
				if m.place++; m.chunk.has(m.place - 1) {
					return
				}
			}
		}
		for len(m.chunks) > 0 && m.chunks[0].n == 0 {
			m.chunks = m.chunks[1:]
		}
		if len(m.chunks) == 0 {
			return
		}
		m.chunk, m.chunks, m.place = m.chunks[0], m.chunks[1:], 0
		m.at = m.chunk.roots.Cursor()
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
func (c *chunk) only(keep func(catalog.Record) bool) *chunk {
	part := &chunk{roots: c.roots, shards: c.shards, grams: c.grams, seen: make([]uint64, (c.roots.Len()+63)/64)}
	for i, r := range c.roots.All() {
		if c.n > 0 && c.has(i) && keep(r) {
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

// chunkOf makes a chunk and numbers its shards. The names are often those of the chunk before.
func (n *shardNumbers) chunkOf(roots *catalog.Chunk, before *chunk) (*chunk, error) {
	if err := checkShards(roots); err != nil { // no shard gets a number if one is wrong
		return nil, err
	}
	c := &chunk{roots: roots, n: roots.Len(), shards: make([]uint32, len(roots.Shards()))}
	if before != nil && before.roots.Names() == roots.Names() {
		c.grams = before.grams
	} else {
		c.grams = gramsOf(roots.Names())
	}
	for i, shard := range roots.Shards() {
		c.shards[i] = n.number(shard.Value().Digest)
	}
	return c, nil
}

// checkShards returns an error for digests that are none, and for numbers of repos that plans cannot have.
func checkShards(roots *catalog.Chunk) error {
	for i, shard := range roots.Shards() {
		if _, err := searchapi.ParseDigest([]byte(shard.Value().Digest)); err != nil {
			return fmt.Errorf("root of %s: %w", rootWith(roots, func(h catalog.Held) bool { return h.Shard == i }), err)
		}
	}
	if most := roots.LargestNumber(); most >= searchapi.MaxRepoNumber {
		return fmt.Errorf("root of %s: it is number %d in its shard, at most %d",
			rootWith(roots, func(h catalog.Held) bool { return h.Number == most }), most, searchapi.MaxRepoNumber-1)
	}
	return nil
}

// rootWith is the first repo with a shard for which is holds.
func rootWith(roots *catalog.Chunk, is func(catalog.Held) bool) string {
	for _, r := range roots.All() {
		if slices.ContainsFunc(r.Shards(nil), is) {
			return r.Repo
		}
	}
	return ""
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
	// own are the pages that only this table has, until the next one is made of it.
	own map[int]bool
}

const pageShards = 256

type shardPage [pageShards]*layoutShard

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
