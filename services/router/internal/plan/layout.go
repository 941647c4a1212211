// Package plan decides which shards a query must search: all of them that hold
// a published repo, less those in which it provably cannot match.
//
// A Layout is immutable and safe for concurrent use.
package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/internal/searchwire"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Layout is where the repos of one snapshot of the roots are.
type Layout struct {
	// Revision of the roots.
	Revision int64
	shards   []Shard
	roots    map[string]*catalogv1.Root
	byRepo   map[string][]int
}

// Shard is one shard object and who is in it.
type Shard struct {
	Digest searchwire.Digest
	Ref    *catalogv1.ShardRef
	// Roots of the repos in it, ascending by name.
	Roots []*catalogv1.Root
}

// NewLayout groups the shards of roots. A root that names a shard by something
// that is no digest is an error: it must not silently be left out.
func NewLayout(revision int64, roots []*catalogv1.Root) (*Layout, error) {
	l := &Layout{
		Revision: revision,
		roots:    make(map[string]*catalogv1.Root, len(roots)),
		byRepo:   make(map[string][]int, len(roots)),
	}
	places := make(map[searchwire.Digest]int)
	for _, root := range roots {
		l.roots[root.Repo] = root
		for _, ref := range root.Shards {
			if err := l.add(places, root, ref); err != nil {
				return nil, err
			}
		}
	}
	for i := range l.shards {
		slices.SortFunc(l.shards[i].Roots, func(a, b *catalogv1.Root) int { return strings.Compare(a.Repo, b.Repo) })
	}
	return l, nil
}

func (l *Layout) add(places map[searchwire.Digest]int, root *catalogv1.Root, ref *catalogv1.ShardRef) error {
	d, err := searchwire.ParseDigest(ref.Digest)
	if err != nil {
		return fmt.Errorf("root of %s: %w", root.Repo, err)
	}
	i, known := places[d]
	if !known {
		i = len(l.shards)
		places[d] = i
		l.shards = append(l.shards, Shard{Digest: d, Ref: ref})
	}
	if !slices.Contains(l.byRepo[root.Repo], i) {
		l.shards[i].Roots = append(l.shards[i].Roots, root)
		l.byRepo[root.Repo] = append(l.byRepo[root.Repo], i)
	}
	return nil
}

// Root is the root of a repo, if it is published.
func (l *Layout) Root(repo string) (*catalogv1.Root, bool) {
	root, ok := l.roots[repo]
	return root, ok
}

// ShardsOf are the shards that hold a repo, each with that repo alone.
func (l *Layout) ShardsOf(repo string) []searchwire.Shard {
	var shards []searchwire.Shard
	for _, i := range l.byRepo[repo] {
		shards = append(shards, searchwire.Shard{Digest: l.shards[i].Digest, Repos: []string{repo}})
	}
	return shards
}

// All are all shards with all their repos.
func (l *Layout) All() []searchwire.Shard {
	all := make([]searchwire.Shard, len(l.shards))
	for i := range l.shards {
		all[i] = l.shards[i].wire()
	}
	return all
}

func (s *Shard) wire() searchwire.Shard {
	names := make([]string, len(s.Roots))
	for i, root := range s.Roots {
		names[i] = root.Repo
	}
	return searchwire.Shard{Digest: s.Digest, Repos: names}
}

// IndexBytes are the bytes of the shards that hold a repo; of a shard that it
// shares, its share by number of repos, since roots do not tell their sizes in it.
func (l *Layout) IndexBytes(repo string) uint64 {
	var sum uint64
	for _, i := range l.byRepo[repo] {
		sum += l.shards[i].Ref.SizeBytes / uint64(len(l.shards[i].Roots))
	}
	return sum
}

// Only is the layout of the repos that keep holds for: nothing else is in its
// shards, and a shard that several repos share counts for those kept.
func (l *Layout) Only(keep func(repo string) bool) (*Layout, error) {
	var kept []*catalogv1.Root
	for _, name := range slices.Sorted(maps.Keys(l.roots)) {
		if keep(name) {
			kept = append(kept, l.roots[name])
		}
	}
	return NewLayout(l.Revision, kept)
}
