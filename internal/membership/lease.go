package membership

import (
	"context"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Folders of the records in etcd, after the prefix.
const (
	searcherKind = "searchers/"
	drainedKind  = "drained/"
	diskKind     = "disks/"
)

// revokeTimeout bounds giving a lease back when the context has ended.
const revokeTimeout = 2 * time.Second

// grant gets a lease of ttl, in whole seconds, at least 1.
func grant(ctx context.Context, client *clientv3.Client, ttl time.Duration) (clientv3.LeaseID, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	lease, err := client.Grant(ctx, max(int64(ttl/time.Second), 1))
	if err != nil {
		return 0, err
	}
	return lease.ID, nil
}

// await waits for what comes next; alive is false once the lease that beats is lost.
func await[T any](beats <-chan *clientv3.LeaseKeepAliveResponse, coming <-chan T) (next T, alive bool) {
	for {
		select {
		case _, alive := <-beats:
			if !alive {
				return next, false
			}
		case next := <-coming:
			return next, true
		}
	}
}

// revoke gives a lease back, even when the context is over.
func revoke(ctx context.Context, client *clientv3.Client, lease clientv3.LeaseID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeTimeout)
	defer cancel()
	_, err := client.Revoke(ctx, lease)
	return err
}
