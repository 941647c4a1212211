package catalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// maxCompactionError bounds the stored reason of a failure, in bytes.
const maxCompactionError = 500

// Compaction is a planned compaction as it was read.
type Compaction struct {
	Entry[*catalogv1.Compaction] // its name follows from its inputs
	// Claimed says that an indexer works on it.
	Claimed bool
}

func compactionID(c *catalogv1.Compaction) (string, error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(&catalogv1.Compaction{Inputs: c.GetInputs()})
	if err != nil {
		return "", fmt.Errorf("encode compaction: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:16]), nil
}

// PlanCompaction adds a compaction for any indexer to claim. A planned one with the
// same inputs stays as it is.
func (s *Store) PlanCompaction(ctx context.Context, c *catalogv1.Compaction) error {
	op, err := s.putCompaction(c)
	if err != nil {
		return fmt.Errorf("plan compaction: %w", err)
	}
	key := string(op.KeyBytes())
	_, err = s.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).Then(op).Commit()
	if err != nil {
		return fmt.Errorf("plan compaction: %w", err)
	}
	return nil
}

func (s *Store) putCompaction(c *catalogv1.Compaction) (clientv3.Op, error) {
	id, err := compactionID(c)
	if err != nil {
		return clientv3.Op{}, err
	}
	value, err := encode(c)
	return clientv3.OpPut(s.key(compactionKind, id), value), err
}

// ListCompactions reads the planned compactions, in no particular order, as of one
// revision that is not older than the call.
func (s *Store) ListCompactions(ctx context.Context) ([]Compaction, error) {
	claimed, revision, err := s.names(ctx, claimKind)
	if err != nil {
		return nil, err
	}
	var all []Compaction
	for entry, err := range list[*catalogv1.Compaction](ctx, s, compactionKind, revision) {
		if err != nil {
			return nil, err
		}
		all = append(all, Compaction{Entry: entry, Claimed: claimed[entry.Name]})
	}
	return all, nil
}

// ReplaceCompaction removes a compaction and plans the parts in its place, unless it
// was claimed or changed since it was read.
func (s *Store) ReplaceCompaction(ctx context.Context, c Compaction, parts ...*catalogv1.Compaction) error {
	ops := []clientv3.Op{clientv3.OpDelete(s.key(compactionKind, c.Name))}
	for _, part := range parts {
		op, err := s.putCompaction(part)
		if err != nil {
			return fmt.Errorf("replace compaction: %w", err)
		}
		ops = append(ops, op)
	}
	_, err := s.client.Txn(ctx).If(
		s.unchanged(compactionKind, c.Name, c.Revision),
		clientv3.Compare(clientv3.CreateRevision(s.key(claimKind, c.Name)), "=", 0),
	).Then(ops...).Commit()
	if err != nil {
		return fmt.Errorf("replace compaction: %w", err)
	}
	return nil
}

// Claim is the right to do one compaction: to make its shard, and to replace the roots
// of the shards that were merged. It is safe for concurrent use.
type Claim struct {
	PackClaim

	work Compaction
}

// Claim takes a compaction for as long as the claim is kept alive; ttl is as in
// AcquireLease. It counts the attempt; if that fails, the next one may not begin
// before again. The error is ErrLeased if another process holds the claim, ErrStale
// if the compaction is done or changed since it was read. The caller must call
// Release.
func (s *Store) Claim(ctx context.Context, c Compaction, ttl time.Duration, again time.Time) (*Claim, error) {
	l := &Claim{PackClaim: PackClaim{holding{store: s, what: "claim of a compaction", key: s.key(claimKind, c.Name)}}, work: c}
	l.work.Record = proto.CloneOf(c.Record)
	l.work.Record.Attempts++
	l.work.Record.NotBefore = timestamppb.New(again)
	if err := l.acquire(ctx, ttl, l.take); err != nil {
		return nil, fmt.Errorf("claim compaction: %w", err)
	}
	return l, nil
}

func (c *Claim) take(ctx context.Context) error {
	value, err := encode(c.work.Record)
	if err != nil {
		return err
	}
	record := c.store.key(compactionKind, c.work.Name)
	resp, err := c.store.client.Txn(ctx).If(
		c.free(), c.store.unchanged(compactionKind, c.work.Name, c.work.Revision),
	).Then(c.holding.take(), clientv3.OpPut(record, value)).Else(clientv3.OpGet(c.key, clientv3.WithCountOnly())).Commit()
	switch {
	case err != nil:
		return err
	case resp.Succeeded:
		c.fence, c.work.Revision = resp.Header.Revision, resp.Header.Revision
		return nil
	case resp.Responses[0].GetResponseRange().GetCount() > 0:
		return ErrLeased
	}
	return ErrStale
}

// Work is the compaction to do, with this attempt counted. It is read-only.
func (c *Claim) Work() *catalogv1.Compaction { return c.work.Record }

// Done removes the compaction: nothing is left to do.
func (c *Claim) Done(ctx context.Context) error {
	return c.settle(ctx, clientv3.OpDelete(c.store.key(compactionKind, c.work.Name)))
}

// Failed records why the attempt failed, for operators.
func (c *Claim) Failed(ctx context.Context, cause error) error {
	record := proto.CloneOf(c.work.Record)
	record.Error = clipText(cause.Error(), maxCompactionError)
	value, err := encode(record)
	if err != nil {
		return fmt.Errorf("settle compaction: %w", err)
	}
	return c.settle(ctx, clientv3.OpPut(c.store.key(compactionKind, c.work.Name), value))
}

func (c *Claim) settle(ctx context.Context, op clientv3.Op) error {
	if _, err := c.store.commit(ctx, ErrLeaseLost, []clientv3.Cmp{c.held()}, op); err != nil {
		return fmt.Errorf("settle compaction: %w", err)
	}
	return nil
}
