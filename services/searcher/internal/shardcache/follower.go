package shardcache

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/membership"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/wait"
)

// Mine are the shards of the roots that rendezvous hashing places on self, among the
// members and itself. Shards with an invalid digest are
// left out and reported in the error.
func Mine(roots []catalog.Root, members []membership.Member, self membership.Member, replication int) ([]Ref, error) {
	registered := func(m membership.Member) bool { return m.ID == self.ID }
	if !slices.ContainsFunc(members, registered) {
		members = append(slices.Clone(members), self)
	}
	var refs []Ref
	var bad error
	seen := make(map[searchapi.Digest]bool)
	for _, root := range roots {
		for _, ref := range root.Record.Shards {
			d, err := searchapi.ParseDigest(ref.Digest)
			if err != nil {
				bad = fmt.Errorf("root of %s: %w", root.Record.Repo, err)
				continue
			}
			if seen[d] {
				continue
			}
			seen[d] = true
			if slices.Contains(membership.Place(d, members, replication), self.ID) {
				refs = append(refs, Ref{Digest: d, Key: ref.Key, Size: int64(ref.SizeBytes)})
			}
		}
	}
	return refs, bad
}

// Follower works out which shards belong on this searcher and keeps the store's set
// of wanted shards current, whenever the roots or the searchers change. It is safe
// for concurrent use.
type Follower struct {
	view        *catalog.View
	members     *membership.Members
	store       *Store
	self        membership.Member
	replication int
	log         *slog.Logger

	mu sync.Mutex
	// applied is the revision of the roots that the store acts on, 0 before the first, and without are
	// the draining searchers that it takes no account of.
	applied int64
	without []membership.ID
	changed wait.Change
}

// NewFollower makes a follower of a view and members that the caller closes.
func NewFollower(view *catalog.View, members *membership.Members, s *Store, self membership.Member, replication int, log *slog.Logger) *Follower {
	return &Follower{
		view: view, members: members, store: s, self: self, replication: replication, log: log,
	}
}

// Run follows until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	if _, err := f.view.WaitFor(ctx, 0); err != nil {
		return
	}
	if _, err := f.members.WaitListed(ctx); err != nil {
		return
	}
	for {
		roots, members := f.view.Snapshot(), f.members.Snapshot()
		refs, err := Mine(roots.Roots(), members.Placeable(), f.self, f.replication)
		if err != nil {
			f.log.ErrorContext(ctx, "a shard cannot be placed", "error", err)
		}
		f.store.Want(roots.Revision, refs)
		f.setApplied(roots.Revision, members.Draining())
		select {
		case <-roots.Changed():
		case <-members.Changed():
		case <-ctx.Done():
			return
		}
	}
}

// Without returns the draining searchers that the store left out when it last worked out which
// shards it wants, in ascending order. The slice is shared: read only.
func (f *Follower) Without() []membership.ID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.without
}

func (f *Follower) setApplied(revision int64, without []membership.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.applied, f.without = revision, without
	f.changed.Notify()
}

// WaitApplied waits until the store acts on roots of the given revision or a newer one,
// at most until ctx ends.
func (f *Follower) WaitApplied(ctx context.Context, revision int64) error {
	for {
		f.mu.Lock()
		applied, changed := f.applied, f.changed.Next()
		f.mu.Unlock()
		if applied > 0 && applied >= revision {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for roots of revision %d, now %d: %w", revision, applied, ctx.Err())
		}
	}
}
