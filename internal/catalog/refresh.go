package catalog

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// Refresh requests an index of the newest commits of a desired repo, after a push. If a
// request already waits and no job has begun it, Refresh makes none and returns epoch 0:
// the job will see every push that preceded this call. Jobs of two requests begin at
// least apart from each other: a request waits until its NotBefore. Every push is
// therefore indexed, and a burst of pushes makes few requests. Seen is recorded in any
// case; it may be nil. The error is ErrNotFound if the repo is not desired.
func (s *Store) Refresh(ctx context.Context, name string, seen *catalogv1.Seen, now time.Time, apart time.Duration) (epoch uint64, notBefore time.Time, err error) {
	err = contend(ctx, "refresh", name, func() error {
		epoch, notBefore, err = s.tryRefresh(ctx, name, seen, now, apart)
		return err
	})
	return epoch, notBefore, err
}

func (s *Store) tryRefresh(ctx context.Context, name string, seen *catalogv1.Seen, now time.Time, apart time.Duration) (uint64, time.Time, error) {
	resp, err := s.client.Txn(ctx).Then(append(s.repoReads(name), clientv3.OpGet(s.key(leaseKind, name)))...).Commit()
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("refresh %q: %w", name, err)
	}
	old, err := decodeRepo(name, resp.Responses)
	if err != nil {
		return 0, time.Time{}, err
	}
	if old.desired.Record == nil {
		return 0, time.Time{}, fmt.Errorf("refresh %q: %w", name, ErrNotFound)
	}
	begun := int64(0)
	if lease := resp.Responses[len(resp.Responses)-1].GetResponseRange().GetKvs(); len(lease) > 0 {
		begun = lease[0].ModRevision
	}
	if old.waiting(begun) {
		return 0, time.Time{}, s.PutSeen(ctx, name, seen)
	}
	next := proto.CloneOf(old.desired.Record)
	next.RequestedAt, next.NotBefore = timestamppb.New(now), nil
	start := earliest(old.desired.Record, now, apart)
	if start.After(now) {
		next.NotBefore = timestamppb.New(start)
	}
	var more []clientv3.Op
	if seen != nil {
		sight, err := encode(seen)
		if err != nil {
			return 0, time.Time{}, fmt.Errorf("put seen of %q: %w", name, err)
		}
		more = append(more, clientv3.OpPut(s.key(seenKind, name), sight))
	}
	epoch, _, err := s.request(ctx, old, next, more...)
	return epoch, start, err
}

// waiting reports whether the newest request will be worked on and no job has begun it.
// Begun is the revision at which the current lease was taken, 0 without a lease: a lease
// that is older than the request belongs to an earlier one.
func (r *repoState) waiting(begun int64) bool {
	d, status := r.desired.Record, r.status.Record
	failed := status.GetState() == ingestv1.State_STATE_FAILED && status.GetEpoch() == d.GetEpoch()
	return d.GetEpoch() > r.root.Record.GetEpoch() && !failed && r.desired.Revision > begun
}

// earliest is when a job may begin the request after d. It is at most apart from now,
// even if d comes from a machine whose clock is ahead. If d still waits, the new
// request takes its turn.
func earliest(d *catalogv1.Desired, now time.Time, apart time.Duration) time.Time {
	start := d.GetRequestedAt().AsTime().Add(apart)
	if turn := d.GetNotBefore(); turn != nil {
		if start = turn.AsTime(); !start.After(now) {
			start = start.Add(apart)
		}
	}
	switch latest := now.Add(apart); {
	case start.Before(now):
		return now
	case start.After(latest):
		return latest
	}
	return start
}

// MarkLeft notes when a repo was seen to have left its source; zero: it is there. It requests no index.
// The error is ErrStale if the record is no longer the one given.
func (s *Store) MarkLeft(ctx context.Context, d Desired, at time.Time) error {
	next := proto.CloneOf(d.Record)
	next.LeftAt = nil
	if !at.IsZero() {
		next.LeftAt = timestamppb.New(at)
	}
	value, err := encode(next)
	if err == nil {
		_, err = s.commit(ctx, ErrStale, []clientv3.Cmp{s.unchanged(desiredKind, next.Name, d.Revision)}, clientv3.OpPut(s.key(desiredKind, next.Name), value), s.tick())
	}
	if err != nil {
		return fmt.Errorf("mark when %q left its source: %w", next.Name, err)
	}
	return nil
}
