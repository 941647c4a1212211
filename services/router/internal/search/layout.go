package search

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

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
	// numbers are those of all layouts since the first. Only the newest layout may use them.
	numbers *shardNumbers
	// planned are made when they are first needed, and must not change.
	planned func() []searchapi.Shard
}

// chunk is a part of the roots of a layout. It never changes.
type chunk struct {
	roots *catalog.Chunk
	// shards are the numbers in the table of the shards of roots.
	shards []uint32
	grams  *grams
	// seen has the places of the roots that the layout has, nil for all of them; n is their number.
	seen []uint64
	n    int
}

// First is the first repo of the roots, whether or not the layout has it.
func (c *chunk) First() string { return c.roots.First() }

// all are the roots that the layout has.
func (c *chunk) all() iter.Seq[catalog.Record] {
	return func(yield func(catalog.Record) bool) {
		if c.n == 0 {
			return
		}
		for i, r := range c.roots.All() {
			if c.has(i) && !yield(r) {
				return
			}
		}
	}
}

// mayMeet reports whether a name of the chunk may meet a need.
func (c *chunk) mayMeet(n *need) bool { return n.metIn(c.grams) && n.metBy(c.roots.Names()) }

func (c *chunk) has(i int) bool { return c.seen == nil || c.seen[i/64]>>(i%64)&1 != 0 }

// layoutShard is one shard and the repos in it. It never changes.
type layoutShard struct {
	catalog.Shard
	// n is the number of repos, and live has their numbers.
	n    int
	live searchapi.ShardRepos
	// partial is true if it holds repos that a restricted layout hides, or that no root names. Its size and languages
	// would reveal those.
	partial bool
	// all is the shard with all its repos in a plan.
	all searchapi.Shard
}

// NewLayout groups the shards of roots. It fails if a root names a shard by an invalid
// digest, since a shard must not be left out silently.
func NewLayout(revision int64, roots []*catalogv1.Root) (*Layout, error) {
	sorted := slices.SortedFunc(slices.Values(roots), func(a, b *catalogv1.Root) int { return strings.Compare(a.Repo, b.Repo) })
	return newLayout().Next(revision, catalog.ChunksOf(slices.Values(sorted)))
}

// newLayout is a layout without repos.
func newLayout() *Layout {
	l := &Layout{numbers: &shardNumbers{of: make(map[string]uint32)}}
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
}

// token is the revision token of an answer; empty if the layout is outdated.
func (l *Layout) token() []byte {
	if l.Revision == 0 {
		return nil
	}
	return catalog.EncodeToken(l.Revision)
}

// outdated is the layout for a query that may not be answered from it. It has no revision, so that no caller
// takes what it names for what was seen. It is nil without shards, for which an answer could not be incomplete.
func (l *Layout) outdated() *Layout {
	if l.shards == 0 {
		return nil
	}
	o := *l
	o.Revision = 0
	return &o
}

// names are the names of the repos, ascending.
func (l *Layout) names() iter.Seq[string] { return l.namesAfter("") }

// namesAfter are the names after one, ascending.
func (l *Layout) namesAfter(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, c := range l.chunksAfter(name) {
			for r := range c.all() {
				if r.Repo > name && !yield(r.Repo) {
					return
				}
			}
		}
	}
}

// chunksAfter are the chunks that may have repos after one.
func (l *Layout) chunksAfter(repo string) []*chunk {
	chunks := l.chunks[catalog.ChunkOf(l.chunks, repo):]
	if len(chunks) > 0 && chunks[0].roots.Last() <= repo {
		chunks = chunks[1:]
	}
	return chunks
}

// namesWith are the names that contain a text, ascending. If it is in lower case, it may count in any case.
func (l *Layout) namesWith(text string, folds bool) iter.Seq[string] {
	need := literalNeed(text, folds)
	return func(yield func(string) bool) {
		for _, c := range l.chunks {
			if !c.mayMeet(&need) {
				continue
			}
			for r := range c.all() {
				has := strings.Contains(r.Repo, text) || folds && strings.Contains(strings.ToLower(r.Repo), text)
				if has && !yield(r.Repo) {
					return
				}
			}
		}
	}
}

// find is a repo and its chunk, if it is published.
func (l *Layout) find(repo string) (c *chunk, r catalog.Record, found bool) {
	if len(l.chunks) == 0 {
		return nil, r, false
	}
	c = l.chunks[catalog.ChunkOf(l.chunks, repo)]
	i, r, found := c.roots.Find(repo)
	return c, r, found && c.n > 0 && c.has(i)
}

// Root is the root of a repo, as catalog.Record has it, if it is published.
func (l *Layout) Root(repo string) (*catalogv1.Root, bool) {
	_, r, found := l.find(repo)
	if !found {
		return nil, false
	}
	return r.Root(), true
}

// id is the number that the operator gave a repo; 0 if there is none.
func (l *Layout) id(repo string) uint32 {
	_, r, found := l.find(repo)
	if !found {
		return 0
	}
	return r.ID()
}

// holding is a repo in a shard.
type holding struct {
	repo string
	// number is that of the repo in the shard.
	number uint32
}

// holdingsOf are the shards of the repos, by their numbers in the table.
func (l *Layout) holdingsOf(repos ...string) map[uint32][]holding {
	in := make(map[uint32][]holding)
	for _, repo := range repos {
		if c, r, found := l.find(repo); found {
			for _, h := range r.Shards(nil) {
				in[c.shards[h.Shard]] = append(in[c.shards[h.Shard]], holding{repo, h.Number})
			}
		}
	}
	return in
}

// ShardsOf are the shards that hold any of the repos, each with those of the repos that it holds.
func (l *Layout) ShardsOf(repos ...string) []searchapi.Shard {
	in := l.holdingsOf(repos...)
	shards := make([]searchapi.Shard, 0, len(in))
	for _, n := range slices.Sorted(maps.Keys(in)) {
		shards = append(shards, l.table.at(n).plan(in[n]))
	}
	return shards
}

// plan is the shard with some of its repos.
func (s *layoutShard) plan(repos []holding) searchapi.Shard {
	p := searchapi.Shard{Digest: s.all.Digest, Place: s.all.Place, Repos: searchapi.AllRepos()}
	numbers := make([]uint32, len(repos))
	for i, h := range repos {
		numbers[i] = h.number
		p.Names += searchapi.NameSize(h.repo)
	}
	some := searchapi.SomeRepos(numbers...)
	if s.partial || len(repos) < s.n {
		p.Repos = some
	}
	for _, o := range s.all.Overlays {
		if some.Has(int(o.Repo)) {
			p.Overlays = append(p.Overlays, o)
		}
	}
	return p
}

// holdings are the repos with their shards among wanted, by the numbers of these in the table.
func (l *Layout) holdings(wanted func(shard uint32) bool) iter.Seq2[uint32, holding] {
	return func(yield func(uint32, holding) bool) {
		var shards []catalog.Held
		for _, c := range l.chunks {
			if !slices.ContainsFunc(c.shards, wanted) {
				continue
			}
			for r := range c.all() {
				shards = r.Shards(shards[:0])
				for _, h := range shards {
					if n := c.shards[h.Shard]; wanted(n) && !yield(n, holding{r.Repo, h.Number}) {
						return
					}
				}
			}
		}
	}
}

// plannedIn returns a function that reports whether a repo is planned in one of the shards.
func (l *Layout) plannedIn(shards []searchapi.Shard) func(repo string) bool {
	planned := make(map[uint32]*searchapi.Shard, len(shards))
	for i := range shards {
		planned[shards[i].Place] = &shards[i]
	}
	return func(repo string) bool {
		c, r, found := l.find(repo)
		return found && slices.ContainsFunc(r.Shards(nil), func(h catalog.Held) bool {
			s := planned[c.shards[h.Shard]]
			return s != nil && s.Repos.Has(int(h.Number))
		})
	}
}

// namedRepos bounds the repos that an account names, unless a single shard has more.
const namedRepos = 50_000

// nameUncovered adds to the uncovered shards of an account the names of their repos. It leaves out the last shards if the names
// are too many, and counts them.
func (l *Layout) nameUncovered(c *searchv1.Coverage) {
	if len(c.Uncovered) == 0 {
		return
	}
	of := make(map[searchapi.Digest]*layoutShard, len(c.Uncovered))
	for _, u := range c.Uncovered {
		of[searchapi.Digest(u.Digest)] = nil
	}
	for s := range l.table.all() {
		if _, is := of[s.all.Digest]; is {
			of[s.all.Digest] = s
		}
	}
	uncovered := make([]*searchv1.UncoveredShard, pageShards*len(l.table.pages))
	left := namedRepos
	for i, u := range c.Uncovered {
		s := of[searchapi.Digest(u.Digest)]
		if s == nil {
			continue
		}
		if left -= s.n; left < 0 && i > 0 {
			c.UncoveredLeftOut += uint64(len(c.Uncovered) - i)
			c.Uncovered = c.Uncovered[:i]
			break
		}
		uncovered[s.all.Place] = u
	}
	for n, h := range l.holdings(func(n uint32) bool { return uncovered[n] != nil }) {
		uncovered[n].Repos = append(uncovered[n].Repos, h.repo)
	}
}

// Commit is the commit at which the repo's branch is served, or fallback if its root
// does not name the branch. The commit in a shard may be older: a root can move on
// without a new shard.
func (l *Layout) Commit(repo, branch, fallback string) string {
	if _, r, found := l.find(repo); found {
		if commit, named := r.Commit(branch); named {
			return commit
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
	for n := range l.holdingsOf(repo) {
		if s := l.table.at(n); !l.hides(s) {
			sum += s.SizeBytes / uint64(s.n)
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
	for _, c := range l.chunks {
		spoken := c.roots.Summary().Shards
		for i, n := range c.shards {
			switch s := l.table.at(n); {
			case s == nil: // the layout has none of its repos
			case l.hides(s):
				unknown = true
			default:
				for name, n := range spoken[i].Languages() {
					repos[name] += n
				}
				unknown = unknown || !spoken[i].Known()
			}
		}
	}
	delete(repos, "")
	return repos, unknown
}
