package search

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Layout maps the repos of one snapshot of the roots to their shards. It is
// immutable and safe for concurrent use. Layouts of successive snapshots share what has not changed.
type Layout struct {
	// Revision of the roots.
	Revision int64
	// Partial is true if a shard also holds repos that this layout hides. The way of a search
	// through it depends on them. No figure that depends on the way may be shown.
	Partial bool
	// restricted layouts have the repos that a caller may see.
	restricted bool
	chunks     []*chunk
	table      shardTable
	// repos, shards and partial count the repos, the shards, and the shards with hidden repos.
	repos, shards, partial int
	// numbers and choices are those of all layouts since the first. Only the newest layout may use numbers.
	numbers *shardNumbers
	choices *choices
	// planned and names are made when they are first needed, and must not change.
	planned func() []searchapi.Shard
	names   func() []string
}

// chunk is a part of the roots of a layout. It never changes.
type chunk struct {
	// source is what it was made from: a *catalog.Chunk, or the *chunk of a layout with more repos.
	source any
	// roots are in ascending order of repo. They are of repos from first on, and before those of the next chunk.
	first string
	roots []*catalogv1.Root
	// text has the names of the repos, with a line break after each.
	text string
	// The shards of root i are holdings[begin[i]:begin[i+1]].
	holdings []holding
	begin    []uint32
	// chosen are the shards that the last filters chose.
	chosen atomic.Pointer[[]chosen]
}

// holding is a repo in a shard.
type holding struct {
	shard uint32 // its number in the table
	ref   *catalogv1.ShardRef
}

func (c *chunk) of(i int) []holding { return c.holdings[c.begin[i]:c.begin[i+1]] }

// layoutShard is one shard and the repos in it. It never changes.
type layoutShard struct {
	Digest searchapi.Digest
	number uint32
	// Ref is the reference of one of the roots: size and number of repos are the same in all.
	Ref *catalogv1.ShardRef
	// Roots of the repos in it, and their references to it, in the order of the shard.
	Roots []*catalogv1.Root
	refs  []*catalogv1.ShardRef
	// partial is true if it holds repos that a restricted layout hides, or that no root names. Its size and languages
	// would reveal those.
	partial bool
	all     searchapi.Shard
}

// NewLayout groups the shards of roots. It fails if a root names a shard by an invalid
// digest, since a shard must not be left out silently.
func NewLayout(revision int64, roots []*catalogv1.Root) (*Layout, error) {
	sorted := make([]catalog.Root, len(roots))
	for i, root := range roots {
		sorted[i].Record = root
	}
	slices.SortFunc(sorted, func(a, b catalog.Root) int { return strings.Compare(a.Record.Repo, b.Record.Repo) })
	var chunks []*catalog.Chunk
	for part := range slices.Chunk(sorted, 128) {
		chunks = append(chunks, &catalog.Chunk{Roots: part})
	}
	return newLayout().Next(revision, chunks)
}

// newLayout is a layout without repos.
func newLayout() *Layout {
	l := &Layout{numbers: &shardNumbers{of: make(map[searchapi.Digest]uint32)}, choices: newChoices()}
	l.makeLazily()
	return l
}

func (l *Layout) makeLazily() {
	l.Partial = l.restricted && l.partial > 0
	l.planned = sync.OnceValue(func() []searchapi.Shard {
		shards := make([]searchapi.Shard, 0, l.shards)
		for s := range l.table.all() {
			shards = append(shards, s.all)
		}
		return shards
	})
	l.names = sync.OnceValue(func() []string {
		names := make([]string, 0, l.repos)
		for _, c := range l.chunks {
			for _, root := range c.roots {
				names = append(names, root.Repo)
			}
		}
		return names
	})
}

// find is the place of a repo, if it is published.
func (l *Layout) find(repo string) (c *chunk, i int, found bool) {
	at, exact := slices.BinarySearchFunc(l.chunks, repo, func(c *chunk, repo string) int { return strings.Compare(c.first, repo) })
	if exact {
		at++
	}
	if at == 0 {
		return nil, 0, false
	}
	c = l.chunks[at-1]
	i, found = slices.BinarySearchFunc(c.roots, repo, func(root *catalogv1.Root, repo string) int { return strings.Compare(root.Repo, repo) })
	return c, i, found
}

// Root is the root of a repo, if it is published.
func (l *Layout) Root(repo string) (*catalogv1.Root, bool) {
	c, i, found := l.find(repo)
	if !found {
		return nil, false
	}
	return c.roots[i], true
}

// id is the number that the operator gave a repo; 0 if there is none.
func (l *Layout) id(repo string) uint32 {
	root, _ := l.Root(repo)
	return root.GetId()
}

// holdingsOf are the shards of a repo.
func (l *Layout) holdingsOf(repo string) []holding {
	c, i, found := l.find(repo)
	if !found {
		return nil
	}
	return c.of(i)
}

// ShardsOf are the shards that hold a repo, each with that repo alone.
func (l *Layout) ShardsOf(repo string) []searchapi.Shard { return l.shardsOfAll([]string{repo}) }

// shardsOfAll are the shards that hold any of the repos, each with those of the repos that it holds.
func (l *Layout) shardsOfAll(repos []string) (shards []searchapi.Shard) {
	var numbers []uint32
	wanted := make(map[string]bool, len(repos))
	for _, repo := range repos {
		wanted[repo] = true
		for _, s := range l.holdingsOf(repo) {
			numbers = append(numbers, s.shard)
		}
	}
	slices.Sort(numbers)
	for _, n := range slices.Compact(numbers) {
		shards = append(shards, l.table.at(n).plan(func(repo string) bool { return wanted[repo] }))
	}
	return shards
}

// plan is the shard with those of its repos for which keep holds, which is nil for all.
func (s *layoutShard) plan(keep func(repo string) bool) searchapi.Shard {
	p := searchapi.Shard{Digest: s.Digest, Place: s.number, Repos: searchapi.AllRepos()}
	whole := keep == nil && !s.partial
	var numbers []uint32
	for i, root := range s.Roots {
		if keep != nil && !keep(root.Repo) {
			continue
		}
		if !whole {
			numbers = append(numbers, s.refs[i].RepoNumber)
		}
		p.Names += searchapi.NameSize(root.Repo)
		if overlay, some := searchapi.OverlayOf(root, s.refs[i]); some {
			p.Overlays = append(p.Overlays, overlay)
		}
	}
	if s.partial || !whole && len(numbers) < len(s.Roots) {
		p.Repos = searchapi.SomeRepos(numbers...)
	}
	return p
}

// namesIn are the names of the repos that are planned in the shards.
func (l *Layout) namesIn(shards []searchapi.Shard) map[string]bool {
	names := make(map[string]bool)
	for i := range shards {
		s := l.table.at(shards[i].Place)
		for j, root := range s.Roots {
			names[root.Repo] = names[root.Repo] || shards[i].Repos.Has(int(s.refs[j].RepoNumber))
		}
	}
	return names
}

// nameUncovered adds to the uncovered shards of an account the names of their repos.
func (l *Layout) nameUncovered(c *searchv1.Coverage) {
	if len(c.Uncovered) == 0 {
		return
	}
	of := make(map[searchapi.Digest]*searchv1.UncoveredShard, len(c.Uncovered))
	for _, u := range c.Uncovered {
		of[searchapi.Digest(u.Digest)] = u
	}
	for s := range l.table.all() {
		if u := of[s.Digest]; u != nil {
			for _, root := range s.Roots {
				u.Repos = append(u.Repos, root.Repo)
			}
		}
	}
}

// after are the planned shards with their repos after a name; done are those that have none.
func (l *Layout) after(name string, planned []searchapi.Shard) (shards []searchapi.Shard, done []searchapi.Digest) {
	for i := range planned {
		s := l.table.at(planned[i].Place)
		if last := s.Roots[len(s.Roots)-1]; last.Repo <= name {
			done = append(done, s.Digest)
			continue
		}
		shards = append(shards, s.plan(func(repo string) bool { return repo > name }))
	}
	return shards, done
}

// Commit is the commit at which the repo's branch is served, or fallback if its root
// does not name the branch. The commit in a shard may be older: a root can move on
// without a new shard.
func (l *Layout) Commit(repo, branch, fallback string) string {
	root, _ := l.Root(repo)
	for _, b := range root.GetBranches() {
		if b.Name == branch {
			return b.Commit
		}
	}
	return fallback
}

// All are all shards with all their repos. The caller must not change them.
func (l *Layout) All() []searchapi.Shard { return slices.Clip(l.planned()) }

// IndexBytes are the bytes of the shards that hold a repo. A shared shard counts in
// proportion to its number of repos, since roots do not record the size of each.
func (l *Layout) IndexBytes(repo string) uint64 {
	var sum uint64
	for _, holding := range l.holdingsOf(repo) {
		if s := l.table.at(holding.shard); !l.hides(s) {
			sum += s.Ref.SizeBytes / uint64(len(s.Roots))
		}
	}
	return sum
}

// hides reports whether a shard holds repos that this layout hides. Its size and its languages would reveal those. A repo
// that is deleted, or served from another shard since, counts as hidden: nobody knows
// anymore who may see what the shard has of it.
func (l *Layout) hides(s *layoutShard) bool { return l.restricted && s.partial }

// languages are those of the shards, with the number of repos in shards that have each. Unknown is set if a shard does not name its
// languages: it also holds hidden repos, or is older.
func (l *Layout) languages() (repos map[string]int, unknown bool) {
	repos = make(map[string]int)
	for s := range l.table.all() {
		if l.hides(s) {
			unknown = true
			continue
		}
		for _, ref := range s.refs {
			unknown = unknown || len(ref.Languages) == 0
			for _, name := range ref.Languages {
				repos[name]++
			}
		}
	}
	delete(repos, "")
	return repos, unknown
}
