package catalog

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/wait"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// PutStatus stores how far a repo is. With a lease it requires that the lease is
// held, else ErrLeaseLost. A status of an older epoch than the stored one is
// ErrStale; one of a repo that is not desired is ErrNotDesired. PutStatus itself
// counts the failures of the epoch, this one included, and ignores the count in
// status, which it does not change.
func (s *Store) PutStatus(ctx context.Context, name string, status *catalogv1.Status, lease *Lease) error {
	if err := checkName(name); err != nil {
		return fmt.Errorf("put status: %w", err)
	}
	for {
		done, err := s.tryPutStatus(ctx, name, status, lease)
		if done || err != nil {
			return err
		}
		if !wait.Sleep(ctx, rand.N(maxContention)) {
			return fmt.Errorf("put status of %q: %w", name, context.Cause(ctx))
		}
	}
}

func (s *Store) tryPutStatus(ctx context.Context, name string, status *catalogv1.Status, lease *Lease) (done bool, err error) {
	stored, err := s.GetStatus(ctx, name)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return false, fmt.Errorf("put status: %w", err)
	}
	if stored.Record.GetEpoch() > status.GetEpoch() {
		return false, fmt.Errorf("put status of %q: %w: epoch %d after %d", name, ErrStale, status.GetEpoch(), stored.Record.Epoch)
	}
	value, err := encode(counted(status, stored.Record))
	if err != nil {
		return false, fmt.Errorf("put status of %q: %w", name, err)
	}
	conditions := []clientv3.Cmp{
		s.unchanged(statusKind, name, stored.Revision),
		clientv3.Compare(clientv3.CreateRevision(s.key(desiredKind, name)), ">", 0),
	}
	if lease != nil {
		conditions = append(conditions, lease.held())
	}
	resp, err := s.client.Txn(ctx).If(conditions...).
		Then(clientv3.OpPut(s.key(statusKind, name), value)).
		Else(clientv3.OpGet(s.key(desiredKind, name)), clientv3.OpGet(s.key(leaseKind, name))).Commit()
	switch {
	case err != nil:
		return false, fmt.Errorf("put status of %q: %w", name, err)
	case resp.Succeeded:
		return true, nil
	case len(resp.Responses[0].GetResponseRange().GetKvs()) == 0:
		return false, fmt.Errorf("put status of %q: %w", name, ErrNotDesired)
	case lease != nil && !holds(resp.Responses[1], &lease.holding):
		return false, fmt.Errorf("put status of %q: %w", name, ErrLeaseLost)
	}
	return false, nil // somebody else wrote: check again that ours is newer
}

// counted is the status with the failures of its epoch.
func counted(status, stored *catalogv1.Status) *catalogv1.Status {
	status = proto.CloneOf(status)
	status.Failures = 0
	if stored.GetEpoch() == status.GetEpoch() {
		status.Failures = stored.GetFailures()
	}
	if status.GetState() == ingestv1.State_STATE_FAILED {
		status.Failures++
	}
	return status
}
