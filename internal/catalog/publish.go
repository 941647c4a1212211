package catalog

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Publish makes next the root of the lease's repo, in one transaction. It requires
// that the lease is held, that the root is still old (nil: none) and that the repo
// has been desired ever since the lease was taken. It returns the revision of the
// change.
//
// The stored root is next with the lease's fencing token. Its generation must be the
// lease's NextGeneration or later, or that of old with the same shards, when only the
// epoch advances. Its epoch must not be before that of old, or from before a
// deletion. Otherwise the error is ErrGeneration. Its objects must be made under the
// lease or be those of old. Otherwise the error is ErrForeignObject.
//
// ErrNotDesired, ErrLeaseLost and ErrStale say which condition failed, in this order
// when several did; nothing was changed then. After any other error it is unknown
// whether the change was made. Repeat the call with the same arguments to find out:
// it recognises its own root.
func (s *Store) Publish(ctx context.Context, lease *Lease, old *Root, next *catalogv1.Root) (revision int64, err error) {
	return s.publish(ctx, lease, nil, old, next)
}

// PublishPacked makes next the first root of the lease's repo. It is Publish for a root
// whose shard was made under a claim that it shares with other repos. The transaction
// requires that the claim is held too, so that the shard cannot have been collected as
// garbage; otherwise the error is ErrLeaseLost.
func (s *Store) PublishPacked(ctx context.Context, lease *Lease, pack *PackClaim, next *catalogv1.Root) (revision int64, err error) {
	return s.publish(ctx, lease, pack, nil, next)
}

func (s *Store) publish(ctx context.Context, lease *Lease, pack *PackClaim, old *Root, next *catalogv1.Root) (revision int64, err error) {
	holdings := []*holding{&lease.holding}
	if pack != nil {
		holdings = append(holdings, &pack.holding)
	}
	if err := checkNext(lease, holdings, old, next); err != nil {
		return 0, fmt.Errorf("publish %q: %w", lease.repo, err)
	}
	next = proto.CloneOf(next)
	next.Fence = lease.fence
	value, err := encode(next)
	if err != nil {
		return 0, fmt.Errorf("publish %q: %w", lease.repo, err)
	}
	reads := []clientv3.Op{clientv3.OpGet(s.key(desiredKind, lease.repo)), clientv3.OpGet(s.key(rootKind, lease.repo))}
	for _, h := range holdings {
		reads = append(reads, clientv3.OpGet(h.key))
	}
	resp, err := s.client.Txn(ctx).If(s.publishConditions(lease, holdings, old)...).Then(
		clientv3.OpPut(s.key(rootKind, lease.repo), value),
		clientv3.OpDelete(s.key(deletedKind, lease.repo)), // the root remembers from here on
		s.tick(),
	).Else(reads...).Commit()
	if err != nil {
		return 0, fmt.Errorf("publish %q: %w", lease.repo, err)
	}
	if resp.Succeeded {
		return resp.Header.Revision, nil
	}
	return refused(lease, holdings, next, resp.Responses)
}

// checkNext refuses what must never be stored, whatever etcd holds.
func checkNext(lease *Lease, holdings []*holding, old *Root, next *catalogv1.Root) error {
	if next.GetRepo() != lease.repo {
		return fmt.Errorf("root is of %q", next.GetRepo())
	}
	leastGeneration, leastEpoch := lease.NextGeneration(), lease.before.deleted.Record.GetEpoch()+1
	if old != nil {
		leastGeneration = max(leastGeneration, old.Record.Generation+1)
		leastEpoch = max(leastEpoch, old.Record.Epoch)
		if next.Generation == old.Record.Generation && slices.EqualFunc(next.Shards, old.Record.Shards, sameShard) {
			leastGeneration = old.Record.Generation
		}
	}
	if next.Generation < leastGeneration || next.Epoch < leastEpoch {
		return fmt.Errorf("%w: generation %d and epoch %d, at least %d and %d",
			ErrGeneration, next.Generation, next.Epoch, leastGeneration, leastEpoch)
	}
	fences := make([]int64, len(holdings))
	for i, h := range holdings {
		fences[i] = h.fence
	}
	return checkObjects(fences, old, next)
}

func sameShard(a, b *catalogv1.ShardRef) bool {
	return bytes.Equal(a.Digest, b.Digest) && bytes.Equal(a.Hidden, b.Hidden) && slices.Equal(a.Branches, b.Branches)
}

func (s *Store) publishConditions(lease *Lease, holdings []*holding, old *Root) []clientv3.Cmp {
	revision := int64(0)
	if old != nil {
		revision = old.Revision
	}
	conditions := []clientv3.Cmp{
		s.unchanged(rootKind, lease.repo, revision),
		clientv3.Compare(clientv3.CreateRevision(s.key(desiredKind, lease.repo)), "=", lease.Life()),
	}
	for _, h := range holdings {
		conditions = append(conditions, h.held())
	}
	return conditions
}

// refused returns why a publication failed, or its revision if it had succeeded
// before.
func refused(lease *Lease, holdings []*holding, next *catalogv1.Root, answers []*etcdserverpb.ResponseOp) (int64, error) {
	var root Root
	if err := decodeInto(&root, answers[1], rootKind, lease.repo); err != nil {
		return 0, fmt.Errorf("publish: %w", err)
	}
	// The token is this lease's alone, so an equal root is this job's own.
	if root.Record != nil && proto.Equal(root.Record, next) {
		return root.Revision, nil
	}
	cause := ErrStale
	if desired := answers[0].GetResponseRange().GetKvs(); len(desired) == 0 || desired[0].CreateRevision != lease.Life() {
		cause = ErrNotDesired
	} else {
		for i, h := range holdings {
			if !holds(answers[2+i], h) {
				cause = ErrLeaseLost
			}
		}
	}
	return 0, fmt.Errorf("publish %q: %w", lease.repo, cause)
}

// holds reports whether a key that was read is that of the holding.
func holds(answer *etcdserverpb.ResponseOp, h *holding) bool {
	kvs := answer.GetResponseRange().GetKvs()
	return len(kvs) == 1 && kvs[0].CreateRevision == h.fence
}
