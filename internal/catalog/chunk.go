package catalog

import (
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"unique"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// A change makes one chunk anew and copies the list of all chunks, which for a million roots take about as long. A chunk has at most
// mostInChunk roots, and if it has several, about mostChunkBytes. At first it has about fullChunk bytes, which is a size that the
// allocator has, but for the last root.
const (
	mostInChunk    = 256
	mostChunkBytes = 64 << 10
	fullChunk      = 16<<10 - 100
)

// Chunk is a part of the roots of a snapshot, in ascending order of repo; there is at least one. It never changes. Snapshots share
// the chunks that do not differ, so that who has looked at one need not look at it again.
type Chunk struct {
	n int
	// names has the name of each repo and a line break. code has for each the length of the name, the length of the record, and the record.
	names string
	code  reader
	// every has the place of each placeEvery'th repo in both.
	every []place
	// words are branches, languages and parts of URLs.
	words  []unique.Handle[string]
	shards []unique.Handle[Shard]
	// most is the largest number of a repo in a shard.
	most uint32
	// summary is nil as long as nobody has asked for it.
	summary atomic.Pointer[Summary]
}

// place is where a repo is in a chunk.
type place struct{ name, code uint32 }

// placeEvery is the number of repos for one place.
const placeEvery = 16

// Len is the number of roots.
func (c *Chunk) Len() int { return c.n }

// Names are the names of all repos, with a line break after each.
func (c *Chunk) Names() string { return c.names }

// First is the name of the first repo.
func (c *Chunk) First() string {
	code := c.code
	return c.names[:code.number()]
}

// Last is the name of the last repo.
func (c *Chunk) Last() string {
	names := c.names[:len(c.names)-1]
	return names[strings.LastIndexByte(names, '\n')+1:]
}

// Shards are the shards of all roots, each once unless the roots disagree about it. The slice is shared: read only.
func (c *Chunk) Shards() []unique.Handle[Shard] { return c.shards }

// LargestNumber is the largest number that a repo has in one of its shards.
func (c *Chunk) LargestNumber() uint32 { return c.most }

// All are the roots by their places.
func (c *Chunk) All() iter.Seq2[int, Record] {
	return func(yield func(int, Record) bool) {
		at := c.Cursor()
		for i := range c.n {
			if r, _ := at.Next(); !yield(i, r) {
				return
			}
		}
	}
}

// Cursor reads the roots of a chunk in order. It is for one goroutine.
type Cursor struct {
	chunk *Chunk
	code  reader
	name  int
}

// Cursor is before the first root.
func (c *Chunk) Cursor() Cursor { return Cursor{chunk: c, code: c.code} }

// near is before the root at a place that is remembered.
func (c *Chunk) near(i int) Cursor {
	return Cursor{chunk: c, code: c.code[c.every[i].code:], name: int(c.every[i].name)}
}

// Next is the next root, if there is one.
func (c *Cursor) Next() (r Record, ok bool) {
	if len(c.code) == 0 {
		return Record{}, false
	}
	end := c.name + int(c.code.number())
	r = Record{Repo: c.chunk.names[c.name:end], chunk: c.chunk, code: c.code.bytes(c.code.number())}
	c.name = end + 1
	return r, true
}

// Find is the root of a repo and its place, if the chunk has it.
func (c *Chunk) Find(repo string) (i int, r Record, found bool) {
	after, _ := slices.BinarySearchFunc(c.every, repo, func(p place, repo string) int {
		code := c.code[p.code:]
		if c.names[p.name:p.name+uint32(code.number())] <= repo {
			return -1
		}
		return 1
	})
	if after == 0 {
		return 0, Record{}, false
	}
	at := c.near(after - 1)
	for i := (after - 1) * placeEvery; ; i++ {
		if r, ok := at.Next(); !ok || r.Repo >= repo {
			return i, r, r.Repo == repo
		}
	}
}

// ChunksOf divides roots, which must be in ascending order of repo and are only read.
func ChunksOf(roots iter.Seq[*catalogv1.Root]) []*Chunk {
	var b chunkBuilder
	for root := range roots {
		b.fill(root)
	}
	return b.finish()
}

// change is the new root of a repo, nil if there is none any more.
type change struct {
	repo string
	root *catalogv1.Root
}

// changed are the chunks after changes, in ascending order of repo. It does not change the list.
func changed(chunks []*Chunk, changes []change) []*Chunk {
	next := make([]*Chunk, 0, len(chunks)+1)
	for len(changes) > 0 {
		at := ChunkOf(chunks, changes[0].repo)
		next, chunks = append(next, chunks[:at]...), chunks[at:]
		n := min(1, len(chunks)) // chunks to make anew
		if len(chunks) > 1 && chunks[0].n+chunks[1].n <= mostInChunk/2 {
			n = 2
		}
		here := len(changes)
		if n < len(chunks) {
			here, _ = slices.BinarySearchFunc(changes, chunks[n].First(), func(c change, first string) int { return strings.Compare(c.repo, first) })
		}
		next = rebuilt(next, chunks[:n], changes[:here])
		chunks, changes = chunks[n:], changes[here:]
	}
	return append(next, chunks...)
}

// ChunkOf is the place of the chunk that has the repo, if any has. The chunks ascend by their first repos.
func ChunkOf[C interface{ First() string }](chunks []C, repo string) int {
	i, found := slices.BinarySearchFunc(chunks, repo, func(c C, repo string) int { return strings.Compare(c.First(), repo) })
	if !found {
		i--
	}
	return max(i, 0)
}

// rebuilt appends chunks with changes.
func rebuilt(to, chunks []*Chunk, changes []change) []*Chunk {
	n, bytes := len(changes), 0
	for _, c := range chunks {
		n, bytes = n+c.n, bytes+max(len(c.names), len(c.code))
	}
	most := mostInChunk
	if n > mostInChunk {
		parts := (n + mostInChunk/2 - 1) / (mostInChunk / 2)
		most = (n + parts - 1) / parts
	}
	bytes += bytes / 16
	b := chunkBuilder{names: make([]byte, 0, bytes), code: make([]byte, 0, bytes)}
	end := func() {
		if b.n >= most || len(b.names)+len(b.code) >= mostChunkBytes {
			to = append(to, b.chunk())
		}
	}
	put := func(c change) {
		if c.root != nil {
			b.put(c.root)
			end()
		}
	}
	for _, c := range chunks {
		for _, r := range c.All() {
			for len(changes) > 0 && changes[0].repo < r.Repo {
				put(changes[0])
				changes = changes[1:]
			}
			if len(changes) > 0 && changes[0].repo == r.Repo {
				continue
			}
			b.copy(r)
			end()
		}
	}
	for _, c := range changes {
		put(c)
	}
	if b.n > 0 {
		to = append(to, b.chunk())
	}
	return to
}
