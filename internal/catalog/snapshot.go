package catalog

import (
	"bytes"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/trawl-search/trawl/internal/catalog/follow"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Snapshot is the roots as of one revision, with what searches need of them. It never changes.
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

// Root returns the root of a repo, as Record.Root does.
func (s *Snapshot) Root(repo string) (*catalogv1.Root, bool) {
	if len(s.chunks) == 0 {
		return nil, false
	}
	_, r, found := s.chunks[ChunkOf(s.chunks, repo)].Find(repo)
	if !found {
		return nil, false
	}
	return r.Root(), true
}

// Changed is closed when the view has a newer snapshot.
func (s *Snapshot) Changed() <-chan struct{} { return s.changed }

// merge applies an update to the roots of a snapshot, which stays as it is: readers never wait and never
// see half a change.
func (v *View) merge(old *Snapshot, u follow.Update) []*Chunk {
	if u.Reset {
		return v.listed.finish()
	}
	var changes []change
	for _, kv := range u.Puts {
		root := &rootFields{}
		if v.decode(kv, root) {
			changes = append(changes, change{string(root.repo), root})
		}
	}
	for _, key := range u.Deletes {
		if name, ok := strings.CutPrefix(key, v.store.key(rootKind, "")); ok {
			changes = append(changes, change{repo: name})
		}
	}
	if len(changes) == 0 {
		return old.chunks
	}
	slices.SortFunc(changes, func(a, b change) int { return strings.Compare(a.repo, b.repo) })
	return changed(old.chunks, changes)
}

// decode reads the root of a key into f, if it is one; the range also holds the clock. It logs a root that cannot be decoded.
func (v *View) decode(kv *mvccpb.KeyValue, f *rootFields) bool {
	name, ok := bytes.CutPrefix(kv.Key, v.prefix)
	if !ok {
		return false
	}
	if err := f.read(kv.Value); err != nil || !bytes.Equal(f.repo, name) {
		v.logger.Error("root left out", "repo", string(name), "holds", string(f.repo), "error", err)
		return false
	}
	if v.bare {
		f.bare()
	}
	return true
}
