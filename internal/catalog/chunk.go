package catalog

import (
	"iter"
	"slices"
	"strings"
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

// Shards are the shards of all roots, each once unless the roots disagree about it. The slice is shared: read only.
func (c *Chunk) Shards() []unique.Handle[Shard] { return c.shards }

// All are the roots by their places.
func (c *Chunk) All() iter.Seq2[int, Record] { return c.from(0) }

// from are the roots from a place on, which placeEvery divides.
func (c *Chunk) from(i int) iter.Seq2[int, Record] {
	return func(yield func(int, Record) bool) {
		p := c.every[i/placeEvery]
		code, name := c.code[p.code:], int(p.name)
		for ; i < c.n; i++ {
			end := name + int(code.number())
			r := Record{Repo: c.names[name:end], chunk: c, code: code.bytes(code.number())}
			if name = end + 1; !yield(i, r) {
				return
			}
		}
	}
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
	for i, r := range c.from((after - 1) * placeEvery) {
		if r.Repo >= repo {
			return i, r, r.Repo == repo
		}
	}
	return 0, Record{}, false
}

// ChunksOf divides roots, which must be in ascending order of repo and are only read.
func ChunksOf(roots iter.Seq[*catalogv1.Root]) (chunks []*Chunk) {
	var b chunkBuilder
	for root := range roots {
		if b.put(root); b.n == mostInChunk || len(b.names)+len(b.code) >= fullChunk {
			chunks = append(chunks, b.chunk())
		}
	}
	if b.n > 0 {
		chunks = append(chunks, b.chunk())
	}
	return chunks
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

// ChunkOf is the place of the chunk that has the repo, if any has.
func ChunkOf(chunks []*Chunk, repo string) int {
	i, found := slices.BinarySearchFunc(chunks, repo, func(c *Chunk, repo string) int { return strings.Compare(c.First(), repo) })
	if !found {
		i--
	}
	return max(i, 0)
}

// rebuilt appends chunks with changes.
func rebuilt(to, chunks []*Chunk, changes []change) []*Chunk {
	n := len(changes)
	for _, c := range chunks {
		n += c.n
	}
	most := mostInChunk
	if n > mostInChunk {
		parts := (n + mostInChunk/2 - 1) / (mostInChunk / 2)
		most = (n + parts - 1) / parts
	}
	var b chunkBuilder
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
