package catalog

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// condemnedBatch is how many objects one record has. Keys are below 200 bytes, so a
// record stays far below MaxRecordBytes.
const condemnedBatch = 1000

// Condemned is a batch of garbage that waits for its deletion.
type Condemned struct {
	Entry[*catalogv1.Condemned]
	// Held says that it must go on waiting.
	Held bool
}

// Condemn notes garbage that reach has found, to be deleted when hold has passed.
// etcd alone measures that time, and extends it when its leader changes. Each call is
// for another Reach, or has other objects. Objects that were garbage as of the
// revision after are in earlier batches.
func (s *Store) Condemn(ctx context.Context, reach *Reach, after int64, garbage []*catalogv1.CondemnedObject, hold time.Duration) error {
	if len(garbage) == 0 {
		return nil
	}
	lease, err := s.client.Grant(ctx, max(int64((hold+time.Second-1)/time.Second), 1))
	if err != nil {
		return fmt.Errorf("hold condemned objects: %w", err)
	}
	// The lease is part of the name: two processes may have the same revision.
	for batch := range slices.Chunk(garbage, condemnedBatch) {
		value, err := encode(&catalogv1.Condemned{Objects: batch, After: after})
		if err != nil {
			return fmt.Errorf("condemn objects: %w", err)
		}
		id := fmt.Sprintf("%020d-%016x-%s", reach.Revision, uint64(lease.ID), shortName(batch[0].GetKey()))
		_, err = s.client.Txn(ctx).Then(
			clientv3.OpPut(s.key(condemnedKind, id), value),
			clientv3.OpPut(s.key(holdKind, id), "", clientv3.WithLease(lease.ID)),
		).Commit()
		if err != nil {
			return fmt.Errorf("condemn objects: %w", err)
		}
	}
	return nil
}

func shortName(key string) string {
	hash := shortHash(key)
	return fmt.Sprintf("%x", hash[:4])
}

// ListCondemned yields the batches, the oldest first, all as of one revision. It
// ends after the first error.
func (s *Store) ListCondemned(ctx context.Context) iter.Seq2[Condemned, error] {
	return func(yield func(Condemned, error) bool) {
		held, revision, err := s.names(ctx, holdKind)
		if err != nil {
			yield(Condemned{}, err)
			return
		}
		for entry, err := range list[*catalogv1.Condemned](ctx, s, condemnedKind, revision) {
			if !yield(Condemned{Entry: entry, Held: held[entry.Name]}, err) {
				return
			}
		}
	}
}

// Settle notes that only the rest of a batch is still to be deleted. If another
// process was faster, its note stays.
func (s *Store) Settle(ctx context.Context, batch Condemned, rest []*catalogv1.CondemnedObject) error {
	op := clientv3.OpDelete(s.key(condemnedKind, batch.Name))
	if len(rest) > 0 {
		value, err := encode(&catalogv1.Condemned{Objects: rest, After: batch.Record.GetAfter()})
		if err != nil {
			return fmt.Errorf("settle condemned objects: %w", err)
		}
		op = clientv3.OpPut(s.key(condemnedKind, batch.Name), value)
	}
	if _, err := s.client.Txn(ctx).If(s.unchanged(condemnedKind, batch.Name, batch.Revision)).Then(op).Commit(); err != nil {
		return fmt.Errorf("settle condemned objects: %w", err)
	}
	return nil
}

// DropMemories removes the records of repos that were deleted before a time and are not
// desired again, and returns their number. A repo that is put afterwards begins with epoch
// and generation 1. Clocks may differ: jobs of the repo's earlier life are fenced by
// revisions, not by time.
func (s *Store) DropMemories(ctx context.Context, before time.Time) (dropped int, err error) {
	for entry, err := range list[*catalogv1.Root](ctx, s, deletedKind, 0) {
		if err != nil {
			return dropped, err
		}
		if !entry.Record.GetPublishedAt().AsTime().Before(before) {
			continue
		}
		resp, err := s.client.Txn(ctx).If(
			s.unchanged(deletedKind, entry.Name, entry.Revision),
			s.unchanged(desiredKind, entry.Name, 0),
		).Then(clientv3.OpDelete(s.key(deletedKind, entry.Name)), clientv3.OpDelete(s.key(putKind, entry.Name))).Commit()
		if err != nil {
			return dropped, fmt.Errorf("drop memory of %q: %w", entry.Name, err)
		}
		if resp.Succeeded {
			dropped++
		}
	}
	return dropped, nil
}
