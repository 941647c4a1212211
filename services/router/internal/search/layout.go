package search

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
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
	// byDigest has the places of shards.
	byDigest map[searchapi.Digest]int
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
}

// NewLayout groups the shards of roots. It fails if a root names a shard by an invalid
// digest, since a shard must not be left out silently.
func NewLayout(revision int64, roots []*catalogv1.Root) (*Layout, error) {
	l := &Layout{
		Revision: revision,
		roots:    make(map[string]*catalogv1.Root, len(roots)),
		byRepo:   make(map[string][]int, len(roots)),
		names:    make([]string, 0, len(roots)),
		byDigest: make(map[searchapi.Digest]int),
	}
	byName := func(a, b *catalogv1.Root) int { return strings.Compare(a.Repo, b.Repo) }
	for _, root := range slices.SortedFunc(slices.Values(roots), byName) {
		l.roots[root.Repo] = root
		l.names = append(l.names, root.Repo)
		for _, ref := range root.Shards {
			if err := l.add(root, ref); err != nil {
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
		l.all[i] = s.planned(nil)
		l.all[i].Prepare()
	}
}

func (l *Layout) add(root *catalogv1.Root, ref *catalogv1.ShardRef) error {
	d, err := searchapi.ParseDigest(ref.Digest)
	if err != nil {
		return fmt.Errorf("root of %s: %w", root.Repo, err)
	}
	i, known := l.byDigest[d]
	if !known {
		i = len(l.shards)
		l.byDigest[d] = i
		l.shards = append(l.shards, layoutShard{Digest: d, Ref: ref})
	}
	if !slices.Contains(l.byRepo[root.Repo], i) {
		l.shards[i].Roots = append(l.shards[i].Roots, root)
		l.shards[i].refs = append(l.shards[i].refs, ref)
		l.byRepo[root.Repo] = append(l.byRepo[root.Repo], i)
	}
	return nil
}

// planned is the shard with those of its repos for which keep holds, which is nil for all.
func (s *layoutShard) planned(keep func(repo string) bool) searchapi.Shard {
	p := searchapi.Shard{Digest: s.Digest}
	var numbers []uint32
	for i, root := range s.Roots {
		if keep != nil && !keep(root.Repo) {
			continue
		}
		numbers = append(numbers, s.refs[i].RepoNumber)
		p.Names += searchapi.NameSize(root.Repo)
		if overlay, some := searchapi.OverlayOf(root, s.refs[i]); some {
			p.Overlays = append(p.Overlays, overlay)
		}
	}
	slices.SortFunc(p.Overlays, func(a, b searchapi.Overlay) int { return cmp.Compare(a.Repo, b.Repo) })
	if p.Repos = searchapi.SomeRepos(numbers...); len(numbers) > 0 && len(numbers) == int(s.Ref.Repos) {
		p.Repos = searchapi.AllRepos()
	}
	return p
}

// namesIn are the names of the repos that are planned in the shards.
func (l *Layout) namesIn(shards []searchapi.Shard) map[string]bool {
	names := make(map[string]bool)
	for i := range shards {
		if at, known := l.byDigest[shards[i].Digest]; known {
			s := &l.shards[at]
			for j, root := range s.Roots {
				names[root.Repo] = names[root.Repo] || shards[i].Repos.Has(int(s.refs[j].RepoNumber))
			}
		}
	}
	return names
}

// nameUncovered adds to the uncovered shards of an account the names of their repos.
func (l *Layout) nameUncovered(c *searchv1.Coverage) {
	for _, u := range c.Uncovered {
		if i, known := l.byDigest[searchapi.Digest(u.Digest)]; known {
			u.Repos = make([]string, len(l.shards[i].Roots))
			for j, root := range l.shards[i].Roots {
				u.Repos[j] = root.Repo
			}
		}
	}
}

// after are the planned shards with their repos after a name; done are those that have none.
func (l *Layout) after(name string, planned []searchapi.Shard) (shards []searchapi.Shard, done []searchapi.Digest) {
	for i := range planned {
		s := &l.shards[l.byDigest[planned[i].Digest]]
		if last := s.Roots[len(s.Roots)-1]; last.Repo <= name {
			done = append(done, s.Digest)
			continue
		}
		shards = append(shards, s.planned(func(repo string) bool { return repo > name }))
	}
	return shards, done
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
		shards = append(shards, l.shards[i].planned(func(other string) bool { return other == repo }))
	}
	return shards
}

// shardCount is the number of shards that hold a repo.
func (l *Layout) shardCount(repo string) int { return len(l.byRepo[repo]) }

// shardsOfAll are the shards that hold any of the repos, each with those of the repos that it holds.
func (l *Layout) shardsOfAll(repos []string) (shards []searchapi.Shard) {
	wanted := make(map[string]bool, len(repos))
	holding := make(map[int]bool)
	for _, repo := range repos {
		wanted[repo] = true
		for _, i := range l.byRepo[repo] {
			holding[i] = true
		}
	}
	for _, i := range slices.Sorted(maps.Keys(holding)) {
		shards = append(shards, l.shards[i].planned(func(repo string) bool { return wanted[repo] }))
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
			for j, ref := range s.refs {
				s.refs[j] = &catalogv1.ShardRef{Digest: ref.Digest, RepoNumber: ref.RepoNumber, Hidden: ref.Hidden, Branches: ref.Branches}
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
