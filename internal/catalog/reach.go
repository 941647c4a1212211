package catalog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trawl-search/trawl/internal/catalog/follow"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Reach knows which objects of the bucket may be needed, as of one revision. It takes
// about 40 bytes of memory for each object that a root names. It is read-only and
// safe for concurrent use.
type Reach struct {
	// Revision is the newest revision that it reflects.
	Revision int64
	// Changed is the revision of the newest change of what is desired or served.
	Changed int64
	// Settled is the newest revision such that no compaction under way can publish
	// anything that was deleted before it.
	Settled int64
	// New says that nothing was ever asked for, published or deleted here.
	New bool
	// clock is the version of the clock key then.
	clock follow.Point
	// named has the truncated SHA-256 of every key that a root names: a
	// collision would keep garbage, never lose an object.
	named map[[16]byte]struct{}
	// running has the fencing tokens of the leases and claims that are held.
	running map[int64]struct{}
}

// Reach reads the roots, the leases and the claims, as of one revision that is not older
// than the call (linearizable).
func (s *Store) Reach(ctx context.Context) (*Reach, error) {
	// The clock's key need not exist: what counts is the answer's revision.
	now, err := s.client.Get(ctx, s.clockKey())
	if err != nil {
		return nil, fmt.Errorf("read revision: %w", err)
	}
	r := &Reach{Revision: now.Header.Revision, New: len(now.Kvs) == 0, named: map[[16]byte]struct{}{}, running: map[int64]struct{}{}}
	r.Settled = r.Revision
	r.clock = follow.PointOf(now.Kvs)
	r.Changed = r.clock.Revision
	for root, err := range list[*catalogv1.Root](ctx, s, rootKind, r.Revision) {
		if err != nil {
			return nil, err
		}
		for _, key := range objects(root.Record) {
			r.named[shortHash(key)] = struct{}{}
		}
	}
	for _, k := range []kind{leaseKind, claimKind} {
		leases, err := s.client.Get(ctx, s.key(k, ""), clientv3.WithRange(s.end(k)),
			clientv3.WithRev(r.Revision), clientv3.WithKeysOnly())
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", k, err)
		}
		for _, kv := range leases.Kvs {
			r.running[kv.CreateRevision] = struct{}{}
			if k == claimKind { // it reads roots and leases after it was claimed
				r.Settled = min(r.Settled, kv.CreateRevision)
			}
		}
	}
	return r, nil
}

// Continue returns r if etcd still has the state that it was read from, and ErrWentBack if it has another in its place. Once
// that state was compacted nobody can tell, as after a restore that marks all as compacted: then it reads anew.
func (s *Store) Continue(ctx context.Context, r *Reach) (*Reach, error) {
	then, err := s.client.Get(ctx, s.clockKey(), clientv3.WithRev(r.Revision))
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return s.Reach(ctx)
	case errors.Is(err, rpctypes.ErrFutureRev), err == nil && follow.PointOf(then.Kvs) != r.clock:
		return nil, ErrWentBack
	case err != nil:
		return nil, fmt.Errorf("read revision %d again: %w", r.Revision, err)
	}
	return r, nil
}

func shortHash(key string) [16]byte {
	sum := sha256.Sum256([]byte(key))
	return [16]byte(sum[:16])
}

// Named reports whether a root names the object.
func (r *Reach) Named(key string) bool {
	_, ok := r.named[shortHash(key)]
	return ok
}

// Pending reports whether the object was made under a lease that is held: a root may
// name it soon.
func (r *Reach) Pending(key string) bool {
	fence, ok := KeyFence(key)
	_, running := r.running[fence]
	return ok && running
}

// Garbage reports whether no root names the object, nor ever will again: a publication
// requires the lease or claim of every object that the root before did not name, and
// that of this object has ended. An object whose key has no fencing token is no
// garbage. Nor is one with a fencing token of the future: its lease is younger than
// r, or etcd was set up anew for a bucket that was in use.
func (r *Reach) Garbage(key string) bool {
	fence, ok := KeyFence(key)
	return ok && fence <= r.Revision && !r.Pending(key) && !r.Named(key)
}
