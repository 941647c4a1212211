package catalog

import (
	"slices"
	"strings"
)

// mostInChunk is the most roots of a chunk. A change copies one chunk and the list of all chunks,
// which for a million roots take about as long.
const mostInChunk = 256

// Chunk is a part of the roots of a snapshot. It never changes. Snapshots share the chunks that do
// not differ, so that who has looked at one need not look at it again.
type Chunk struct {
	// Roots are in ascending order of repo; there is at least one.
	Roots []Root
}

func (c *Chunk) first() string { return c.Roots[0].Record.Repo }

// chunksOf divides sorted roots.
func chunksOf(roots []Root) (chunks []*Chunk) {
	for part := range slices.Chunk(roots, mostInChunk/2) {
		chunks = append(chunks, &Chunk{Roots: slices.Clone(part)})
	}
	return chunks
}

// chunkOf is the place of the chunk that has the repo, if any has.
func chunkOf(chunks []*Chunk, repo string) int {
	i, found := slices.BinarySearchFunc(chunks, repo, func(c *Chunk, repo string) int { return strings.Compare(c.first(), repo) })
	if !found {
		i--
	}
	return max(i, 0)
}

// put changes the list of chunks, but no chunk.
func put(chunks []*Chunk, root Root) []*Chunk {
	if len(chunks) == 0 {
		return []*Chunk{{Roots: []Root{root}}}
	}
	at := chunkOf(chunks, root.Record.Repo)
	roots := slices.Clone(chunks[at].Roots)
	i, found := slices.BinarySearchFunc(roots, root.Record.Repo, compareRepo)
	if found {
		roots[i] = root
	} else {
		roots = slices.Insert(roots, i, root)
	}
	if len(roots) <= mostInChunk {
		chunks[at] = &Chunk{Roots: roots}
		return chunks
	}
	half := len(roots) / 2
	chunks[at] = &Chunk{Roots: slices.Clone(roots[:half])}
	return slices.Insert(chunks, at+1, &Chunk{Roots: slices.Clone(roots[half:])})
}

// remove changes the list of chunks, but no chunk. It joins what becomes small with what follows.
func remove(chunks []*Chunk, repo string) []*Chunk {
	if len(chunks) == 0 {
		return chunks
	}
	at := chunkOf(chunks, repo)
	i, found := slices.BinarySearchFunc(chunks[at].Roots, repo, compareRepo)
	if !found {
		return chunks
	}
	roots := slices.Delete(slices.Clone(chunks[at].Roots), i, i+1)
	if at+1 < len(chunks) && len(roots)+len(chunks[at+1].Roots) <= mostInChunk/2 {
		roots = slices.Concat(roots, chunks[at+1].Roots)
		chunks = slices.Delete(chunks, at+1, at+2)
	}
	if len(roots) == 0 {
		return slices.Delete(chunks, at, at+1)
	}
	chunks[at] = &Chunk{Roots: roots}
	return chunks
}
