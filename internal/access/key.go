package access

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trawl-search/trawl/internal/catalog/follow"
	"github.com/trawl-search/trawl/internal/wait"
)

// keyBytes is the size of the key that seals plans.
const keyBytes = 32

// Key follows the key of plans in etcd while it runs. It is safe for concurrent
// use.
type Key struct {
	store *Store
	log   *slog.Logger

	mu      sync.Mutex
	secret  []byte      // nil while there is none
	changed wait.Change // of secret
}

// NewKey makes a key without a secret until it runs.
func NewKey(store *Store, log *slog.Logger) *Key {
	return &Key{store: store, log: log}
}

// Run follows etcd until ctx ends. It makes the key if there is none.
func (k *Key) Run(ctx context.Context) {
	at := follow.Range{From: k.store.planKey(), To: k.store.planKey() + "\x00"}
	follow.Run(ctx, k.store.client, at, follow.ClockKey(k.store.prefix), k.log, func(u follow.Update) {
		if k.apply(u) {
			return
		}
		if err := k.store.makeKey(ctx); err != nil && ctx.Err() == nil {
			k.log.ErrorContext(ctx, "there is no key for plans: queries fail until one exists", "error", err)
		}
	})
}

// Wait waits until there is a key, or ctx ends.
func (k *Key) Wait(ctx context.Context) error {
	if err := k.changed.Until(ctx, &k.mu, func() bool { return k.secret != nil }); err != nil {
		return fmt.Errorf("wait for the key of plans: %w", err)
	}
	return nil
}

// Known reports whether there is a key.
func (k *Key) Known() bool { return k.get() != nil }

func (k *Key) get() []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.secret
}

// apply applies a change and reports whether there is a key.
func (k *Key) apply(u follow.Update) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if u.Reset || len(u.Deletes) > 0 {
		k.secret = nil
	}
	for _, kv := range u.Puts {
		k.secret = nil
		if len(kv.Value) >= keyBytes {
			k.secret = kv.Value
		}
	}
	k.changed.Notify()
	return k.secret != nil
}

// makeKey makes the key unless another process has made it.
func (s *Store) makeKey(ctx context.Context) error {
	secret := make([]byte, keyBytes)
	_, _ = rand.Read(secret) // it never fails, see mint
	_, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(s.planKey()), "=", 0)).
		Then(clientv3.OpPut(s.planKey(), string(secret))).Commit()
	if err != nil {
		return fmt.Errorf("make the key of plans: %w", err)
	}
	return nil
}
