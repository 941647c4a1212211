package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// revokeTimeout bounds giving back an etcd lease that nobody waits for.
const revokeTimeout = 2 * time.Second

// Lease is the right of one job to publish one repo. It is kept alive in the
// background until Release, or until the context that acquired it ends. It is
// safe for concurrent use.
type Lease struct {
	store  *Store
	repo   string
	id     clientv3.LeaseID
	fence  int64
	life   int64 // create revision of the desired record: another one after delete and put
	before *repoState

	cancel   context.CancelFunc
	lost     chan struct{}
	ended    sync.WaitGroup
	released atomic.Bool
}

// AcquireLease takes the repo's lease for as long as it is kept alive; ttl is how
// long it outlives a holder that died, in whole seconds, at least 1 (etcd may
// grant more). ErrLeased when another job has it, ErrNotDesired when the repo is
// not desired. The caller must call Release.
func (s *Store) AcquireLease(ctx context.Context, repo string, ttl time.Duration) (*Lease, error) {
	if err := checkName(repo); err != nil {
		return nil, fmt.Errorf("acquire lease: %w", err)
	}
	grant, err := s.client.Grant(ctx, max(int64(ttl/time.Second), 1))
	if err != nil {
		return nil, fmt.Errorf("acquire lease of %q: %w", repo, err)
	}
	l := &Lease{store: s, repo: repo, id: grant.ID, lost: make(chan struct{})}
	if err := l.take(ctx); err != nil {
		// Unless it is given back here, it holds the repo until its ttl has passed.
		return nil, errors.Join(fmt.Errorf("acquire lease of %q: %w", repo, err), l.revoke(ctx))
	}
	if err := l.keep(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("keep lease of %q: %w", repo, err), l.revoke(ctx))
	}
	return l, nil
}

// take writes the lease key if nobody has it, and reads the repo in the same transaction.
func (l *Lease) take(ctx context.Context) error {
	key := l.store.key(leaseKind, l.repo)
	reads := l.store.repoReads(l.repo)
	resp, err := l.store.client.Txn(ctx).If(
		clientv3.Compare(clientv3.CreateRevision(key), "=", 0),
		clientv3.Compare(clientv3.CreateRevision(l.store.key(desiredKind, l.repo)), ">", 0),
	).Then(append(reads, clientv3.OpPut(key, "", clientv3.WithLease(l.id)))...).Else(reads...).Commit()
	if err != nil {
		return err
	}
	if l.before, err = decodeRepo(l.repo, resp.Responses); err != nil {
		return err
	}
	if !resp.Succeeded {
		if l.before.desired.Record == nil {
			return ErrNotDesired
		}
		return ErrLeased
	}
	l.fence = resp.Header.Revision
	l.life = desiredLife(resp.Responses)
	return nil
}

func desiredLife(answers []*etcdserverpb.ResponseOp) int64 {
	return answers[0].GetResponseRange().GetKvs()[0].CreateRevision
}

// keep starts what keeps the lease alive and notices its loss.
func (l *Lease) keep(ctx context.Context) error {
	ctx, l.cancel = context.WithCancel(ctx)
	beats, err := l.store.client.KeepAlive(ctx, l.id)
	if err != nil {
		l.cancel()
		return err
	}
	// A deleted repo takes the key away while the etcd lease lives on.
	gone := l.store.client.Watch(ctx, l.store.key(leaseKind, l.repo),
		clientv3.WithRev(l.fence+1), clientv3.WithFilterPut())
	l.ended.Go(func() {
		defer close(l.lost)
		defer l.cancel()
		waitLoss(beats, gone)
	})
	return nil
}

// waitLoss returns when the lease is no longer kept alive, or its key is gone.
func waitLoss(beats <-chan *clientv3.LeaseKeepAliveResponse, gone clientv3.WatchChan) {
	for {
		select {
		case _, alive := <-beats:
			if !alive {
				return
			}
		case resp, open := <-gone:
			if open && len(resp.Events) > 0 {
				return
			}
			if !open || resp.Err() != nil {
				// The watch says nothing more. Publish still compares the key, so
				// only the notice of a deletion comes later.
				gone = nil
			}
		}
	}
}

// Desired is the record that was desired when the lease was taken: the one that
// the holder must build. It is the caller's to keep, not to change.
func (l *Lease) Desired() *catalogv1.Desired { return l.before.desired.Record }

// Root is the root that was served when the lease was taken, nil if there was
// none. Nobody else can have changed it as long as the lease is held.
func (l *Lease) Root() *Root {
	if l.before.root.Record == nil {
		return nil
	}
	root := l.before.root
	return &root
}

// NextGeneration is the generation that follows the newest that the repo ever
// had, before a deletion included.
func (l *Lease) NextGeneration() uint64 { return l.before.lastGeneration() + 1 }

// Fence is the fencing token: it grows from each lease of a repo to the next.
func (l *Lease) Fence() int64 { return l.fence }

// Lost is closed when the lease is no longer kept alive: it expired, the repo was
// deleted, the acquiring context ended, or it was released. The holder must stop;
// what it publishes nevertheless is refused.
func (l *Lease) Lost() <-chan struct{} { return l.lost }

// Release gives the lease back, so that another job need not wait for the ttl.
// After an error it may be called again; else the lease ends with its ttl.
func (l *Lease) Release(ctx context.Context) error {
	l.cancel()
	l.ended.Wait()
	if l.released.Load() {
		return nil
	}
	if _, err := l.store.client.Revoke(ctx, l.id); err != nil && !isLeaseGone(err) {
		return fmt.Errorf("release lease of %q: %w", l.repo, err)
	}
	l.released.Store(true)
	return nil
}

// revoke gives back what a failed acquisition holds, even when its context is over.
func (l *Lease) revoke(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeTimeout)
	defer cancel()
	if _, err := l.store.client.Revoke(ctx, l.id); err != nil && !isLeaseGone(err) {
		return fmt.Errorf("give lease back: %w", err)
	}
	return nil
}

// Leased says whether some job holds the repo's lease now.
func (s *Store) Leased(ctx context.Context, repo string) (bool, error) {
	resp, err := s.client.Get(ctx, s.key(leaseKind, repo), clientv3.WithCountOnly())
	if err != nil {
		return false, fmt.Errorf("look for lease of %q: %w", repo, err)
	}
	return resp.Count > 0, nil
}
