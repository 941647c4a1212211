package catalog

import (
	"cmp"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/trawl-search/trawl/internal/catalog/follow"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Snapshot is the roots as of one revision. It never changes; its records are
// shared and must only be read.
type Snapshot struct {
	// Revision up to which every change is in.
	Revision int64

	chunks  []*Chunk
	changed chan struct{}
}

func newSnapshot(revision int64, chunks []*Chunk) *Snapshot {
	return &Snapshot{Revision: revision, chunks: chunks, changed: make(chan struct{})}
}

// Chunks returns all roots in ascending order of repo. The slice is shared: read only.
func (s *Snapshot) Chunks() []*Chunk { return s.chunks }

// Roots returns a new slice of all roots in ascending order of repo.
func (s *Snapshot) Roots() []Root {
	var roots []Root
	for _, c := range s.chunks {
		roots = append(roots, c.Roots...)
	}
	return roots
}

// Root returns the root of a repo.
func (s *Snapshot) Root(repo string) (Root, bool) {
	if len(s.chunks) == 0 {
		return Root{}, false
	}
	roots := s.chunks[chunkOf(s.chunks, repo)].Roots
	i, ok := slices.BinarySearchFunc(roots, repo, compareRepo)
	if !ok {
		return Root{}, false
	}
	return roots[i], true
}

// Changed is closed when the view has a newer snapshot.
func (s *Snapshot) Changed() <-chan struct{} { return s.changed }

func compareRepo(root Root, repo string) int { return strings.Compare(root.Record.Repo, repo) }

func compareKeys(a []byte, b string) int { return cmp.Compare(string(a), b) }

// merge applies an update to the roots of a snapshot, which stays as it is: readers never wait and never
// see half a change.
func (v *View) merge(old *Snapshot, u follow.Update) []*Chunk {
	puts := v.decode(u.Puts)
	if u.Reset {
		return chunksOf(puts)
	}
	if len(puts) == 0 && len(u.Deletes) == 0 {
		return old.chunks
	}
	chunks := slices.Clone(old.chunks)
	for _, root := range puts {
		chunks = put(chunks, root)
	}
	for _, key := range u.Deletes {
		if name, ok := strings.CutPrefix(key, v.store.key(rootKind, "")); ok {
			chunks = remove(chunks, name)
		}
	}
	return chunks
}

// decode returns the roots among the keys; the range also holds the clock. It logs and
// skips a root that cannot be decoded.
func (v *View) decode(kvs []*mvccpb.KeyValue) []Root {
	roots := make([]Root, 0, len(kvs))
	for _, kv := range kvs {
		name, ok := strings.CutPrefix(string(kv.Key), v.store.key(rootKind, ""))
		if !ok {
			continue
		}
		var root Root
		err := decodeKV(&root, kv, rootKind, name, &catalogv1.Root{})
		if err != nil || root.Record.Repo != name {
			v.logger.Error("root left out", "repo", name, "holds", root.Record.GetRepo(), "error", err)
			continue
		}
		roots = append(roots, root)
	}
	return roots
}
