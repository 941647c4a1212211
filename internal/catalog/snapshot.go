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

	roots   []Root
	changed chan struct{}
}

func newSnapshot(revision int64, roots []Root) *Snapshot {
	return &Snapshot{Revision: revision, roots: roots, changed: make(chan struct{})}
}

// Roots returns all roots in ascending order of repo. The slice is shared: read only.
func (s *Snapshot) Roots() []Root { return s.roots }

// Root returns the root of a repo.
func (s *Snapshot) Root(repo string) (Root, bool) {
	i, ok := slices.BinarySearchFunc(s.roots, repo, compareRepo)
	if !ok {
		return Root{}, false
	}
	return s.roots[i], true
}

// Changed is closed when the view has a newer snapshot.
func (s *Snapshot) Changed() <-chan struct{} { return s.changed }

func compareRepo(root Root, repo string) int { return strings.Compare(root.Record.Repo, repo) }

func compareKeys(a []byte, b string) int { return cmp.Compare(string(a), b) }

// merge applies an update to the roots of a snapshot. Copying the slice costs a
// few bytes per repo, so that readers never wait and never see half a change.
func (v *View) merge(old *Snapshot, u follow.Update) []Root {
	puts := v.decode(u.Puts)
	if u.Reset {
		return puts
	}
	if len(puts) == 0 && len(u.Deletes) == 0 {
		return old.roots
	}
	roots := slices.Clone(old.roots)
	for _, root := range puts {
		roots = put(roots, root)
	}
	for _, key := range u.Deletes {
		if name, ok := strings.CutPrefix(key, v.store.key(rootKind, "")); ok {
			if i, found := slices.BinarySearchFunc(roots, name, compareRepo); found {
				roots = slices.Delete(roots, i, i+1)
			}
		}
	}
	return roots
}

func put(roots []Root, root Root) []Root {
	i, found := slices.BinarySearchFunc(roots, root.Record.Repo, compareRepo)
	if found {
		roots[i] = root
		return roots
	}
	return slices.Insert(roots, i, root)
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
