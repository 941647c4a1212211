package shardcache

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/membership"
	"github.com/trawl-search/trawl/internal/wait"
)

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
	own := NewOwn(f.self, f.replication)
	for {
		roots, members := f.view.Snapshot(), f.members.Snapshot()
		if err := own.Follow(roots.Chunks(), members.Placeable()); err != nil {
			f.log.ErrorContext(ctx, "a shard cannot be placed", "error", err)
		}
		f.store.Want(roots.Revision, own.Refs())
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
	if err := f.changed.Until(ctx, &f.mu, func() bool { return f.applied >= max(revision, 1) }); err != nil {
		return fmt.Errorf("wait for roots of revision %d: %w", revision, err)
	}
	return nil
}
