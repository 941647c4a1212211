package catalog

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// repoState is all records of one repo as of one revision. A missing record is nil
// with revision 0.
type repoState struct {
	desired  Desired
	root     Root
	status   Status
	deleted  Root
	seen     Entry[*catalogv1.Seen]
	revision int64 // of the reading, not of a record
}

// lastEpoch is the newest epoch that the repo ever had.
func (r *repoState) lastEpoch() uint64 {
	return max(r.desired.Record.GetEpoch(), r.root.Record.GetEpoch(), r.deleted.Record.GetEpoch())
}

// lastGeneration is the newest generation that the repo ever had.
func (r *repoState) lastGeneration() uint64 {
	return max(r.root.Record.GetGeneration(), r.deleted.Record.GetGeneration())
}

// repoReads are the reads of a repo's records; decodeRepo decodes their answers.
func (s *Store) repoReads(name string) []clientv3.Op {
	return []clientv3.Op{
		clientv3.OpGet(s.key(desiredKind, name)),
		clientv3.OpGet(s.key(rootKind, name)),
		clientv3.OpGet(s.key(statusKind, name)),
		clientv3.OpGet(s.key(deletedKind, name)),
		clientv3.OpGet(s.key(seenKind, name)),
	}
}

// readRepo reads all records of a repo in one transaction.
func (s *Store) readRepo(ctx context.Context, name string) (*repoState, error) {
	resp, err := s.client.Txn(ctx).Then(s.repoReads(name)...).Commit()
	if err != nil {
		return nil, fmt.Errorf("read repo %q: %w", name, err)
	}
	state, err := decodeRepo(name, resp.Responses)
	if err != nil {
		return nil, err
	}
	state.revision = resp.Header.Revision
	return state, nil
}

// decodeRepo decodes the answers to repoReads.
func decodeRepo(name string, answers []*etcdserverpb.ResponseOp) (*repoState, error) {
	r := &repoState{}
	err := errors.Join(
		decodeInto(&r.desired, answers[0], desiredKind, name),
		decodeInto(&r.root, answers[1], rootKind, name),
		decodeInto(&r.status, answers[2], statusKind, name),
		decodeInto(&r.deleted, answers[3], deletedKind, name),
		decodeInto(&r.seen, answers[4], seenKind, name),
	)
	return r, err
}

func decodeInto[T proto.Message](to *Entry[T], answer *etcdserverpb.ResponseOp, k kind, name string) error {
	return decodeFirst(to, answer.GetResponseRange().GetKvs(), k, name)
}

// decodeFirst leaves the entry as it is if there is no record.
func decodeFirst[T proto.Message](to *Entry[T], kvs []*mvccpb.KeyValue, k kind, name string) error {
	entry, err := first[T](kvs, k, name)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	*to = entry
	return err
}
