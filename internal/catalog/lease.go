package catalog

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// revokeTimeout bounds the revocation of an etcd lease when no caller waits for it.
const revokeTimeout = 2 * time.Second

// Lease is one job's right to publish one repo. It is kept alive in the background
// until Release, or until the context that acquired it ends. It is safe for
// concurrent use.
type Lease struct {
	holding

	repo   string
	before *repoState
}

// AcquireLease takes the repo's lease for as long as it is kept alive; ttl is how
// long it outlives a holder that died, in whole seconds, at least 1 (etcd may grant
// more). The error is ErrLeased if another job has it, ErrNotDesired if the repo is
// not desired. The caller must call Release.
func (s *Store) AcquireLease(ctx context.Context, repo string, ttl time.Duration) (*Lease, error) {
	if err := checkName(repo); err != nil {
		return nil, fmt.Errorf("acquire lease: %w", err)
	}
	l := &Lease{holding: holding{store: s, what: fmt.Sprintf("lease of %q", repo), key: s.key(leaseKind, repo)}, repo: repo}
	if err := l.acquire(ctx, ttl, l.take); err != nil {
		return nil, fmt.Errorf("acquire lease of %q: %w", repo, err)
	}
	return l, nil
}

// take writes the lease key if it is free, and reads the repo in the same transaction.
func (l *Lease) take(ctx context.Context) error {
	reads := l.store.repoReads(l.repo)
	resp, err := l.store.client.Txn(ctx).If(
		l.free(),
		clientv3.Compare(clientv3.CreateRevision(l.store.key(desiredKind, l.repo)), ">", 0),
	).Then(append(reads, l.holding.take())...).Else(reads...).Commit()
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
	return nil
}

// Desired is the record that was desired when the lease was taken, which the holder
// must build. The caller may keep it, and must not change it.
func (l *Lease) Desired() *catalogv1.Desired { return l.before.desired.Record }

// Life is the revision that made the repo desired. It changes if the repo is deleted
// and put again.
func (l *Lease) Life() int64 { return l.before.desired.Life }

// Seen is the newest commit that had been reported when the lease was taken, nil if
// there was none. The caller may keep it, and must not change it.
func (l *Lease) Seen() *catalogv1.Seen { return l.before.seen.Record }

// Root is the root that was served when the lease was taken, nil if there was none.
// Nobody else can change it while the lease is held.
func (l *Lease) Root() *Root {
	if l.before.root.Record == nil {
		return nil
	}
	root := l.before.root
	return &root
}

// NextGeneration is the generation after the newest that the repo ever had, also
// before a deletion.
func (l *Lease) NextGeneration() uint64 { return l.before.lastGeneration() + 1 }

// Leased reports whether some job holds the repo's lease now.
func (s *Store) Leased(ctx context.Context, repo string) (bool, error) {
	resp, err := s.client.Get(ctx, s.key(leaseKind, repo), clientv3.WithCountOnly())
	if err != nil {
		return false, fmt.Errorf("look for lease of %q: %w", repo, err)
	}
	return resp.Count > 0, nil
}
