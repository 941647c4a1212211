package catalog

import (
	"iter"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/proto"

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
	for root := range v.decode(u.Puts) {
		changes = append(changes, change{root.Repo, root})
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

// decode returns the roots among the keys; the range also holds the clock. It logs and
// skips a root that cannot be decoded.
func (v *View) decode(kvs []*mvccpb.KeyValue) iter.Seq[*catalogv1.Root] {
	return func(yield func(*catalogv1.Root) bool) {
		for _, kv := range kvs {
			name, ok := strings.CutPrefix(string(kv.Key), v.store.key(rootKind, ""))
			if !ok {
				continue
			}
			root := &catalogv1.Root{}
			err := proto.Unmarshal(kv.Value, root)
			if err != nil || root.Repo != name {
				v.logger.Error("root left out", "repo", name, "holds", root.Repo, "error", err)
				continue
			}
			if v.bare {
				root = bare(root)
			}
			if !yield(root) {
				return
			}
		}
	}
}

// bare returns a root with its name and shards alone.
func bare(root *catalogv1.Root) *catalogv1.Root {
	shards := make([]*catalogv1.ShardRef, len(root.Shards))
	for i, s := range root.Shards {
		shards[i] = &catalogv1.ShardRef{Digest: s.Digest, Key: s.Key, SizeBytes: s.SizeBytes, Repos: s.Repos}
	}
	return &catalogv1.Root{Repo: root.Repo, Shards: shards}
}
