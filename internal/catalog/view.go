package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"github.com/trawl-search/trawl/internal/catalog/follow"
)

// View keeps the roots in memory, following etcd until it is closed. While etcd
// is away it keeps what it has and catches up afterwards. It is safe for
// concurrent use.
type View struct {
	store    *Store
	follower *follow.Follower
	// clock reads the revision of the newest change, waiting out an etcd that went back.
	clock  clock
	logger *slog.Logger
	cancel context.CancelFunc
	// bare says that of roots only the names and shards are kept.
	bare bool
	// listed are the roots of a listing so far. Only the following goroutine has them.
	listed chunkBuilder
	ended  sync.WaitGroup

	mu       sync.Mutex
	snapshot *Snapshot
	// losses counts how often etcd went back. The snapshot counts for nothing while lost.
	losses uint64
	lost   bool
	// currentAt is the newest moment at which the snapshot is known to have been
	// current.
	currentAt time.Time
}

// NewView starts following. It does not wait for etcd: see WaitFor. The view ends
// with Close, or with the context.
func NewView(ctx context.Context, store *Store, logger *slog.Logger) *View {
	return newView(ctx, store, logger, false)
}

// NewShardView is NewView for those who only place shards: its records have nothing but their names and shards, without overlays. A root takes
// 11 bytes beside its name then, in place of 43.
func NewShardView(ctx context.Context, store *Store, logger *slog.Logger) *View {
	return newView(ctx, store, logger, true)
}

func newView(ctx context.Context, store *Store, logger *slog.Logger, bare bool) *View {
	ctx, cancel := context.WithCancel(ctx)
	v := &View{store: store, logger: logger, cancel: cancel, bare: bare, snapshot: newSnapshot(0, nil)}
	v.follower = &follow.Follower{
		Client: store.client, Keys: store.rootRange(), Clock: store.clockKey(), Log: logger, Page: v.page, Apply: v.apply, Lost: v.lose,
	}
	v.clock.read = store.contact.guard(v.follower.Now)
	v.ended.Go(func() { v.follower.Run(ctx) })
	return v
}

// Close ends the view and waits for its goroutine. Snapshots stay valid.
func (v *View) Close() {
	v.cancel()
	v.ended.Wait()
}

// Snapshot returns the newest snapshot; before the first listing an empty one
// with revision 0. It never blocks. After etcd went back it is what was known before, until
// the roots were listed anew.
func (v *View) Snapshot() *Snapshot {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.snapshot
}

// WaitFor returns a snapshot that holds every change up to revision, and at least the
// first listing. It waits until there is one, or until the context ends.
func (v *View) WaitFor(ctx context.Context, revision int64) (*Snapshot, error) {
	for {
		s, reached := v.reached(revision)
		if reached {
			return s, nil
		}
		select {
		case <-s.Changed():
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for revision %d, have %d: %w", revision, s.Revision, context.Cause(ctx))
		}
	}
}

// reached returns the newest snapshot, and whether it holds every change up to revision.
func (v *View) reached(revision int64) (*Snapshot, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	// Revision 0 is the empty snapshot before the first listing.
	return v.snapshot, !v.lost && v.snapshot.Revision >= max(revision, 1)
}

// Reach is WaitFor for a revision from outside, such as a caller's token: if etcd has
// not reached it, the error is ErrFuture, without waiting. It asks etcd only if the
// view is behind the revision.
func (v *View) Reach(ctx context.Context, revision int64) (*Snapshot, error) {
	if s, reached := v.reached(revision); reached {
		return s, nil
	}
	head, err := v.store.head.now(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the newest revision: %w", err)
	}
	if revision > head {
		return nil, fmt.Errorf("%w: it is at %d, not at %d", ErrFuture, head, revision)
	}
	return v.WaitFor(ctx, revision)
}

// Current returns a snapshot that holds every change acknowledged before the call
// began (linearizable).
func (v *View) Current(ctx context.Context) (*Snapshot, error) {
	began := time.Now()
	revision, err := v.clock.now(ctx)
	if err != nil {
		return nil, fmt.Errorf("read current revision: %w", err)
	}
	s, err := v.WaitFor(ctx, revision)
	if err != nil {
		return nil, err
	}
	v.prove(began)
	return s, nil
}

// prove notes that the snapshot was current at the moment at.
func (v *View) prove(at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if at.After(v.currentAt) && !v.lost {
		v.currentAt = at
	}
}

// Within returns a snapshot that was current at most age ago. It asks etcd, like
// Current, only if the present snapshot is not known to be that new. What was current in an
// etcd that went back since does not count.
func (v *View) Within(ctx context.Context, age time.Duration) (*Snapshot, error) {
	v.mu.Lock()
	s, fresh := v.snapshot, !v.currentAt.IsZero() && time.Since(v.currentAt) <= age
	v.mu.Unlock()
	if fresh {
		return s, nil
	}
	return v.Current(ctx)
}

// page takes in a page of a listing. Only the following goroutine calls it.
func (v *View) page(kvs []*mvccpb.KeyValue, first bool) {
	if first {
		v.listed = chunkBuilder{}
	}
	for root := range v.decode(kvs) {
		v.listed.fill(root)
	}
}

// apply makes the next snapshot. Only the following goroutine calls it.
func (v *View) apply(u follow.Update) {
	v.mu.Lock()
	old := v.snapshot
	v.mu.Unlock()
	next := newSnapshot(u.Revision, v.merge(old, u))
	v.mu.Lock()
	v.snapshot, v.lost = next, v.lost && !u.Reset
	v.mu.Unlock()
	close(old.changed)
}

// lose makes the snapshot count for nothing until the roots are listed anew. Only the
// following goroutine calls it.
func (v *View) lose() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.lost, v.currentAt = true, time.Time{}
	v.losses++
}

// Losses is how many times etcd was seen to have gone back. The roots were read anew after each,
// unless lost.
func (v *View) Losses() (n uint64, lost bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.losses, v.lost
}
