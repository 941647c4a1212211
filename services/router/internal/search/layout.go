package search

import (
	"fmt"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Layout maps the repos of one snapshot of the roots to their shards. It is
// immutable and safe for concurrent use.
type Layout struct {
	// Revision of the roots.
	Revision int64
	// Partial is true if a shard also holds repos that this layout hides. The way of a search
	// through it depends on them. No figure that depends on the way may be shown.
	Partial bool
	shards  []layoutShard
	// all are the shards as queries plan them, in the same order. They are made once for
	// all queries, and must not change.
	all    []searchapi.Shard
	roots  map[string]*catalogv1.Root
	byRepo map[string][]int
	// names of the repos, ascending.
	names []string
}

// layoutShard is one shard and the repos in it.
type layoutShard struct {
	Digest searchapi.Digest
	// Ref is the reference of one of the roots: size and languages are the same in all.
	Ref *catalogv1.ShardRef
	// Roots of the repos in it, ascending by name.
	Roots []*catalogv1.Root
	// refs are the references of the roots, in the order of Roots.
	refs []*catalogv1.ShardRef
	// overlays are the changes of repos since the shard was built, by name.
	overlays map[string]searchapi.Overlay
}

// NewLayout groups the shards of roots. It fails if a root names a shard by an invalid
// digest, since a shard must not be left out silently.
func NewLayout(revision int64, roots []*catalogv1.Root) (*Layout, error) {
	l := &Layout{
		Revision: revision,
		roots:    make(map[string]*catalogv1.Root, len(roots)),
		byRepo:   make(map[string][]int, len(roots)),
		names:    make([]string, 0, len(roots)),
	}
	places := make(map[searchapi.Digest]int)
	byName := func(a, b *catalogv1.Root) int { return strings.Compare(a.Repo, b.Repo) }
	for _, root := range slices.SortedFunc(slices.Values(roots), byName) {
		l.roots[root.Repo] = root
		l.names = append(l.names, root.Repo)
		for _, ref := range root.Shards {
			if err := l.add(places, root, ref); err != nil {
				return nil, err
			}
		}
	}
	l.planShards()
	return l, nil
}

// planShards makes the planned shards, once for all queries.
func (l *Layout) planShards() {
	l.all = make([]searchapi.Shard, len(l.shards))
	for i := range l.shards {
		s := &l.shards[i]
		names := make([]string, len(s.Roots))
		for j, root := range s.Roots {
			names[j] = root.Repo
		}
		l.all[i] = searchapi.Shard{Digest: s.Digest, Repos: names, Overlays: s.overlays}
		l.all[i].Prepare()
	}
}

func (l *Layout) add(places map[searchapi.Digest]int, root *catalogv1.Root, ref *catalogv1.ShardRef) error {
	d, err := searchapi.ParseDigest(ref.Digest)
	if err != nil {
		return fmt.Errorf("root of %s: %w", root.Repo, err)
	}
	i, known := places[d]
	if !known {
		i = len(l.shards)
		places[d] = i
		l.shards = append(l.shards, layoutShard{Digest: d, Ref: ref})
	}
	if !slices.Contains(l.byRepo[root.Repo], i) {
		l.shards[i].Roots = append(l.shards[i].Roots, root)
		l.shards[i].refs = append(l.shards[i].refs, ref)
		l.shards[i].addOverlay(root, ref)
		l.byRepo[root.Repo] = append(l.byRepo[root.Repo], i)
	}
	return nil
}

// addOverlay adds the changes of a repo since the shard was built, if there are any.
func (s *layoutShard) addOverlay(root *catalogv1.Root, ref *catalogv1.ShardRef) {
	overlay, some := searchapi.OverlayOf(root, ref)
	if !some {
		return
	}
	if s.overlays == nil {
		s.overlays = make(map[string]searchapi.Overlay)
	}
	s.overlays[root.Repo] = overlay
}

// Root is the root of a repo, if it is published.
func (l *Layout) Root(repo string) (*catalogv1.Root, bool) {
	root, ok := l.roots[repo]
	return root, ok
}

// ShardsOf are the shards that hold a repo, each with that repo alone.
func (l *Layout) ShardsOf(repo string) []searchapi.Shard {
	var shards []searchapi.Shard
	for _, i := range l.byRepo[repo] {
		s := searchapi.Shard{Digest: l.shards[i].Digest, Repos: []string{repo}}
		if overlay, some := l.shards[i].overlays[repo]; some {
			s.Overlays = map[string]searchapi.Overlay{repo: overlay}
		}
		shards = append(shards, s)
	}
	return shards
}

// Commit is the commit at which the repo's branch is served, or fallback if its root
// does not name the branch. The commit in a shard may be older: a root can move on
// without a new shard.
func (l *Layout) Commit(repo, branch, fallback string) string {
	for _, b := range l.roots[repo].GetBranches() {
		if b.Name == branch {
			return b.Commit
		}
	}
	return fallback
}

// All are all shards with all their repos. The caller must not change them.
func (l *Layout) All() []searchapi.Shard { return slices.Clip(l.all) }

// IndexBytes are the bytes of the shards that hold a repo. A shared shard counts in
// proportion to its number of repos, since roots do not record the size of each.
func (l *Layout) IndexBytes(repo string) uint64 {
	var sum uint64
	for _, i := range l.byRepo[repo] {
		sum += l.shards[i].Ref.SizeBytes / uint64(len(l.shards[i].Roots))
	}
	return sum
}

// Only is the layout of the repos for which keep holds. It drops the size and the
// languages of a shard that also holds other repos, since they would reveal those. A repo
// that is deleted, or served from another shard since, counts as another: nobody knows
// anymore who may see what the shard has of it.
func (l *Layout) Only(keep func(repo string) bool) (*Layout, error) {
	var kept []*catalogv1.Root
	for _, name := range l.names {
		if keep(name) {
			kept = append(kept, l.roots[name])
		}
	}
	only, err := NewLayout(l.Revision, kept)
	if err != nil {
		return nil, err
	}
	for i := range only.shards {
		s := &only.shards[i]
		if len(s.Roots) != int(s.Ref.Repos) {
			s.Ref = &catalogv1.ShardRef{Digest: s.Ref.Digest}
			for j := range s.refs {
				s.refs[j] = s.Ref
			}
			only.Partial = true
		}
	}
	return only, nil
}

// languages are those of the shards, with the number of repos in shards that have each. Unknown is set if a shard does not name its
// languages: it also holds hidden repos, or is older.
func (l *Layout) languages() (repos map[string]int, unknown bool) {
	repos = make(map[string]int)
	for i := range l.shards {
		for _, ref := range l.shards[i].refs {
			unknown = unknown || len(ref.Languages) == 0
			for _, name := range ref.Languages {
				repos[name]++
			}
		}
	}
	delete(repos, "")
	return repos, unknown
}
