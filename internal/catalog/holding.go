package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// holding is a key that exists as long as its holder keeps it alive. The revision
// that made the key is the fencing token for everything done under it.
type holding struct {
	store *Store
	what  string // for errors
	key   string
	id    clientv3.LeaseID
	fence int64

	cancel   context.CancelFunc
	lost     chan struct{}
	ended    sync.WaitGroup
	released atomic.Bool
}

// acquire gets an etcd lease, takes the key and keeps both alive. A key that was taken in vain would stay until the ttl has
// passed, so it is given back.
func (h *holding) acquire(ctx context.Context, ttl time.Duration, take func(context.Context) error) error {
	grant, err := h.store.client.Grant(ctx, max(int64(ttl/time.Second), 1))
	if err != nil {
		return err
	}
	h.id, h.lost = grant.ID, make(chan struct{})
	if err = take(ctx); err == nil {
		err = h.keep(ctx)
	}
	if err != nil {
		return errors.Join(err, h.revoke(ctx))
	}
	return nil
}

// free requires that the key does not exist; take creates it.
func (h *holding) free() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(h.key), "=", 0)
}

func (h *holding) take() clientv3.Op { return clientv3.OpPut(h.key, "", clientv3.WithLease(h.id)) }

// held compares that the key is the one that was taken.
func (h *holding) held() clientv3.Cmp {
	return clientv3.Compare(clientv3.CreateRevision(h.key), "=", h.fence)
}

// keep starts what keeps the key alive and notices its loss.
func (h *holding) keep(ctx context.Context) error {
	ctx, h.cancel = context.WithCancel(ctx)
	beats, err := h.store.client.KeepAlive(ctx, h.id)
	if err != nil {
		h.cancel()
		return err
	}
	// A deleted repo takes the key away while the etcd lease lives on.
	gone := h.store.client.Watch(ctx, h.key, clientv3.WithRev(h.fence+1), clientv3.WithFilterPut())
	h.ended.Go(func() {
		defer close(h.lost)
		defer h.cancel()
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
				// The watch has ended. Publish still compares the key, so a deletion is only noticed
				// later.
				gone = nil
			}
		}
	}
}

// Fence is the fencing token: it grows from each holder to the next.
func (h *holding) Fence() int64 { return h.fence }

// Lost is closed when the lease is no longer kept alive: it expired, the repo was
// deleted, the acquiring context ended, or it was released. The holder must stop:
// from now on Publish refuses it.
func (h *holding) Lost() <-chan struct{} { return h.lost }

// Release gives the lease back, so that the next holder need not wait for the ttl.
// After an error it may be called again; otherwise the lease ends with its ttl.
func (h *holding) Release(ctx context.Context) error {
	h.cancel()
	h.ended.Wait()
	if h.released.Load() {
		return nil
	}
	if _, err := h.store.client.Revoke(ctx, h.id); err != nil && !isLeaseGone(err) {
		return fmt.Errorf("release %s: %w", h.what, err)
	}
	h.released.Store(true)
	return nil
}

// revoke gives back what a failed acquisition holds, even when its context is over.
func (h *holding) revoke(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeTimeout)
	defer cancel()
	if _, err := h.store.client.Revoke(ctx, h.id); err != nil && !isLeaseGone(err) {
		return fmt.Errorf("give lease back: %w", err)
	}
	return nil
}
