package catalog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// maxContention bounds the wait before a lost compare-and-swap is tried again.
const maxContention = 50 * time.Millisecond

// PutDesired makes a repo desired, or asks for it to be indexed anew. The stored
// record is d with the next epoch of the repo: every successful call has its own,
// and epochs go on counting when a deleted repo is put again. A repo of a source
// stays one when d names none. It returns that epoch and the revision of the
// change. d itself is not changed.
func (s *Store) PutDesired(ctx context.Context, d *catalogv1.Desired) (epoch uint64, revision int64, err error) {
	return s.PutDesiredIf(ctx, d, func(*catalogv1.Desired) error { return nil })
}

// PutDesiredIf is PutDesired on a condition. The condition sees the record that d
// replaces, nil if there is none, and holds for that record: it is asked again when
// another caller was faster. Its error ends the call and is returned as it is.
func (s *Store) PutDesiredIf(ctx context.Context, d *catalogv1.Desired, condition func(old *catalogv1.Desired) error) (epoch uint64, revision int64, err error) {
	if err := checkName(d.GetName()); err != nil {
		return 0, 0, fmt.Errorf("put desired: %w", err)
	}
	for {
		epoch, revision, err = s.tryPutDesired(ctx, d, condition)
		if err == nil || !errors.Is(err, ErrStale) {
			return epoch, revision, err
		}
		// Whoever was faster made progress; coming back at the same moment as the
		// other losers would only cost another round.
		if err := pause(ctx, rand.N(maxContention)); err != nil {
			return 0, 0, fmt.Errorf("put desired of %q: %w", d.Name, err)
		}
	}
}

func (s *Store) tryPutDesired(ctx context.Context, d *catalogv1.Desired, condition func(old *catalogv1.Desired) error) (uint64, int64, error) {
	old, err := s.readRepo(ctx, d.Name)
	if err != nil {
		return 0, 0, fmt.Errorf("put desired: %w", err)
	}
	if err := condition(old.desired.Record); err != nil {
		return 0, 0, err
	}
	next := proto.CloneOf(d)
	next.FullEpoch = old.desired.Record.GetFullEpoch()
	if was := old.desired.Record; next.Source == "" {
		next.Source, next.HostId, next.LeftAt = was.GetSource(), was.GetHostId(), was.GetLeftAt()
	}
	return s.request(ctx, old, next)
}

// request stores next as the newest request of a repo, unless the repo is not as it was
// read any more: ErrStale then.
func (s *Store) request(ctx context.Context, old *repoState, next *catalogv1.Desired) (epoch uint64, revision int64, err error) {
	next.Epoch = old.lastEpoch() + 1
	next.Pending = old.pendingWith(next.Epoch, requestedAt(next))
	value, err := encode(next)
	if err != nil {
		return 0, 0, fmt.Errorf("put desired of %q: %w", next.Name, err)
	}
	resp, err := s.client.Txn(ctx).If(
		s.unchanged(desiredKind, next.Name, old.desired.Revision),
		s.unchanged(deletedKind, next.Name, old.deleted.Revision),
	).Then(clientv3.OpPut(s.key(desiredKind, next.Name), value), s.tick()).Commit()
	if err != nil {
		return 0, 0, fmt.Errorf("put desired of %q: %w", next.Name, err)
	}
	if !resp.Succeeded {
		return 0, 0, fmt.Errorf("put desired of %q: %w", next.Name, ErrStale)
	}
	return next.Epoch, resp.Header.Revision, nil
}

// DeleteRepo removes a repo in one transaction: what is desired, what is served,
// the status and the lease, so that a running job stops and cannot publish. What
// stays is a record of its last epoch and generation and the time, for the day
// it comes back; see DropMemories.
// It returns the revision of the change; ErrNotFound if the repo is not desired.
func (s *Store) DeleteRepo(ctx context.Context, name string) (revision int64, err error) {
	if err := checkName(name); err != nil {
		return 0, fmt.Errorf("delete repo: %w", err)
	}
	for {
		revision, err = s.tryDelete(ctx, name)
		if err == nil || !errors.Is(err, ErrStale) {
			return revision, err
		}
		if err := pause(ctx, rand.N(maxContention)); err != nil {
			return 0, fmt.Errorf("delete repo %q: %w", name, err)
		}
	}
}

func (s *Store) tryDelete(ctx context.Context, name string) (int64, error) {
	old, err := s.readRepo(ctx, name)
	if err != nil {
		return 0, fmt.Errorf("delete repo: %w", err)
	}
	if old.desired.Record == nil {
		return 0, fmt.Errorf("delete repo %q: %w", name, ErrNotFound)
	}
	memory, err := encode(&catalogv1.Root{Repo: name, Epoch: old.lastEpoch(), Generation: old.lastGeneration(), PublishedAt: timestamppb.Now()})
	if err != nil {
		return 0, fmt.Errorf("delete repo %q: %w", name, err)
	}
	resp, err := s.client.Txn(ctx).If(
		s.unchanged(desiredKind, name, old.desired.Revision),
		s.unchanged(rootKind, name, old.root.Revision),
	).Then(
		clientv3.OpDelete(s.key(desiredKind, name)),
		clientv3.OpDelete(s.key(rootKind, name)),
		clientv3.OpDelete(s.key(statusKind, name)),
		clientv3.OpDelete(s.key(leaseKind, name)),
		clientv3.OpDelete(s.key(seenKind, name)),
		clientv3.OpPut(s.key(deletedKind, name), memory),
		s.tick(),
	).Commit()
	if err != nil {
		return 0, fmt.Errorf("delete repo %q: %w", name, err)
	}
	if !resp.Succeeded {
		return 0, fmt.Errorf("delete repo %q: %w", name, ErrStale)
	}
	return resp.Header.Revision, nil
}

// unchanged compares that a record is still the one that was read; revision 0
// means that there was none.
func (s *Store) unchanged(k kind, name string, revision int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(s.key(k, name)), "=", revision)
}

// pause waits for d, or until the context ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
