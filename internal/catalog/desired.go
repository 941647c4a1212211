package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/wait"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// maxContention bounds the pause before a lost compare-and-swap is tried again.
const maxContention = 50 * time.Millisecond

// PutDesired makes a repo desired, or asks for it to be indexed anew. The stored
// record is d with the next epoch of the repo: every successful call has its own,
// and epochs go on counting when a deleted repo is put again. A repo of a source
// stays one when d names none. It returns that epoch and the revision of the
// change. d itself is not changed.
func (s *Store) PutDesired(ctx context.Context, d *catalogv1.Desired) (epoch uint64, revision int64, err error) {
	return s.PutDesiredIf(ctx, d, "", func(*catalogv1.Desired) error { return nil })
}

// PutDesiredIf is PutDesired on a condition. If the repo was not desired, it counts among those of the
// caller by, unless by is empty; see Puts. The condition gets the record that d
// replaces, nil if there is none. It is called again if another caller was faster, so
// it holds for the record that is replaced, and it may change d to keep a part of that record. Its error ends the
// call and is returned as it is.
func (s *Store) PutDesiredIf(ctx context.Context, d *catalogv1.Desired, by string, condition func(old *catalogv1.Desired) error) (epoch uint64, revision int64, err error) {
	if err := checkName(d.GetName()); err != nil {
		return 0, 0, fmt.Errorf("put desired: %w", err)
	}
	err = contend(ctx, "put desired of", d.Name, func() error {
		epoch, revision, err = s.tryPutDesired(ctx, d, by, condition)
		return err
	})
	return epoch, revision, err
}

func (s *Store) tryPutDesired(ctx context.Context, d *catalogv1.Desired, by string, condition func(old *catalogv1.Desired) error) (uint64, int64, error) {
	old, err := s.readRepo(ctx, d.Name)
	if err != nil {
		return 0, 0, fmt.Errorf("put desired: %w", err)
	}
	if err := condition(old.desired.Record); err != nil {
		return 0, 0, err
	}
	// What the catalog adds later, such as times of requests, must not make a record too large.
	if size := proto.Size(d); size > MaxDesiredBytes {
		return 0, 0, fmt.Errorf("put desired of %q: %w: name, URL, branches and facts take %d bytes, at most %d", d.Name, ErrTooLarge, size, MaxDesiredBytes)
	}
	next := proto.CloneOf(d)
	next.FullEpoch = old.desired.Record.GetFullEpoch()
	if was := old.desired.Record; next.Source == "" {
		next.Source, next.HostId, next.LeftAt = was.GetSource(), was.GetHostId(), was.GetLeftAt()
	}
	KeepID(next, old.desired.Record)
	if by == "" || old.desired.Record != nil {
		return s.request(ctx, old, next)
	}
	return s.request(ctx, old, next, clientv3.OpPut(s.key(putKind, d.Name), by))
}

// KeepID gives next the id of the record that the repo has, nil if it has none. An id in next stays: only a request
// without one says nothing about it.
func KeepID(next, have *catalogv1.Desired) {
	if id := have.GetFacts().GetId(); id != 0 && next.GetFacts().GetId() == 0 {
		next.Facts = cmp.Or(next.Facts, &ingestv1.RepoFacts{})
		next.Facts.Id = id
	}
}

// request stores next as the newest request of a repo, together with more, or returns ErrStale if the repo
// changed since it was read.
func (s *Store) request(ctx context.Context, old *repoState, next *catalogv1.Desired, more ...clientv3.Op) (epoch uint64, revision int64, err error) {
	next.Epoch = old.lastEpoch() + 1
	next.Pending = old.pendingWith(next.Epoch, next.GetRequestedAt())
	value, err := encode(next)
	if err != nil {
		return 0, 0, fmt.Errorf("put desired of %q: %w", next.Name, err)
	}
	resp, err := s.commit(ctx, ErrStale, []clientv3.Cmp{
		s.unchanged(desiredKind, next.Name, old.desired.Revision),
		s.unchanged(deletedKind, next.Name, old.deleted.Revision),
	}, append(more, clientv3.OpPut(s.key(desiredKind, next.Name), value), s.tick())...)
	if err != nil {
		return 0, 0, fmt.Errorf("put desired of %q: %w", next.Name, err)
	}
	return next.Epoch, resp.Header.Revision, nil
}

// DeleteRepo removes a repo in one transaction: what is desired, what is served, the
// status and the lease, so that a running job stops and cannot publish. A record of
// its last epoch and generation and of the time stays, in case it is put again; see
// DropMemories. It returns the revision of the change; ErrNotFound if the repo is not
// desired.
func (s *Store) DeleteRepo(ctx context.Context, name string) (revision int64, err error) {
	if err := checkName(name); err != nil {
		return 0, fmt.Errorf("delete repo: %w", err)
	}
	err = contend(ctx, "delete repo", name, func() error {
		revision, err = s.tryDelete(ctx, name)
		return err
	})
	return revision, err
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
	resp, err := s.commit(ctx, ErrStale, []clientv3.Cmp{
		s.unchanged(desiredKind, name, old.desired.Revision),
		s.unchanged(rootKind, name, old.root.Revision),
	},
		clientv3.OpDelete(s.key(desiredKind, name)),
		clientv3.OpDelete(s.key(rootKind, name)),
		clientv3.OpDelete(s.key(statusKind, name)),
		clientv3.OpDelete(s.key(leaseKind, name)),
		clientv3.OpDelete(s.key(seenKind, name)),
		clientv3.OpPut(s.key(deletedKind, name), memory),
		s.tick(),
	)
	if err != nil {
		return 0, fmt.Errorf("delete repo %q: %w", name, err)
	}
	return resp.Header.Revision, nil
}

// unchanged compares that a record is still the one that was read; revision 0
// means that there was none.
func (s *Store) unchanged(k kind, name string, revision int64) clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(s.key(k, name)), "=", revision)
}

// contend retries while another writer is faster, which ErrStale reports. One writer
// always makes progress, and random pauses keep the others from colliding again. If ctx
// ends, the error names what and name: the attempt and its repo.
func contend(ctx context.Context, what, name string, try func() error) error {
	for {
		if err := try(); !errors.Is(err, ErrStale) {
			return err
		}
		if !wait.Sleep(ctx, rand.N(maxContention)) {
			return fmt.Errorf("%s %q: %w", what, name, context.Cause(ctx))
		}
	}
}
