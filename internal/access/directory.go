package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/catalog/follow"
	"github.com/trawl-search/trawl/internal/wait"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// ErrStale means that the known tokens may have been revoked since.
var ErrStale = errors.New("tokens cannot be checked: etcd does not answer")

// proofs is how many times within the staleness a Directory proves that it missed
// nothing, so that one lost answer does no harm.
const proofs = 4

// Directory holds all tokens in memory, following etcd while it runs. It is safe
// for concurrent use.
type Directory struct {
	store     *Store
	follower  *follow.Follower
	staleness time.Duration
	grace     time.Duration
	log       *slog.Logger

	mu       sync.Mutex
	tokens   map[string]*token // replaced, never changed
	revision int64             // the tokens are current up to it; 0 before the first listing, and once etcd went back
	newest   int64             // revision of the newest change that etcd named
	changed  wait.Change       // of revision
	// currentAt is the last time at which the known tokens were current; zero once etcd went back.
	currentAt time.Time
}

// NewDirectory makes a directory that is empty until it runs. A lookup fails unless the
// tokens were current at most staleness ago: that bounds how long a revoked token works,
// whatever happens to the watch, and whether or not etcd went back. While etcd does not answer, lookups return a Dated for as
// long as grace beyond that, unless etcd has announced a change that the watch has not
// delivered.
func NewDirectory(store *Store, staleness, grace time.Duration, log *slog.Logger) *Directory {
	d := &Directory{store: store, staleness: staleness, grace: grace, log: log}
	d.follower = &follow.Follower{
		Client: store.client, Keys: store.tokenRange(), Clock: store.clockKey(), Log: log, Apply: d.apply, Lost: d.lose,
	}
	return d
}

// Run follows etcd until ctx ends.
func (d *Directory) Run(ctx context.Context) {
	var running sync.WaitGroup
	running.Go(func() { d.follower.Run(ctx) })
	d.prove(ctx)
	running.Wait()
}

// Authenticate implements Authenticator. Its errors are ErrMalformed, ErrUnknown,
// ErrExpired and ErrStale.
func (d *Directory) Authenticate(_ context.Context, text Text) (Principal, error) {
	id, digest, err := text.split()
	if err != nil {
		return nil, err
	}
	now := time.Now()
	d.mu.Lock()
	t, asOf, err := d.tokens[id], d.currentAt, d.fresh(now)
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if t == nil {
		return nil, ErrUnknown
	}
	if err := t.prove(digest, now); err != nil {
		return nil, err
	}
	if now.Sub(asOf) > d.staleness {
		return Dated{Principal: t, AsOf: asOf}, nil
	}
	return t, nil
}

// fresh returns ErrStale if the tokens are too old to answer from. The caller holds mu.
func (d *Directory) fresh(now time.Time) error {
	bound := d.staleness
	if d.revision >= d.newest {
		bound += d.grace
	}
	if now.Sub(d.currentAt) > bound {
		return ErrStale
	}
	return nil
}

// Check returns ErrStale while lookups are refused.
func (d *Directory) Check() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.fresh(time.Now())
}

// WaitCurrent waits until lookups are answered, or ctx ends.
func (d *Directory) WaitCurrent(ctx context.Context) error {
	if err := d.changed.Until(ctx, &d.mu, func() bool { return time.Since(d.currentAt) <= d.staleness }); err != nil {
		return fmt.Errorf("wait for tokens: %w", err)
	}
	return nil
}

// prove confirms periodically that the known tokens are current: it makes a linearizable
// read and waits until the watch has delivered that revision.
func (d *Directory) prove(ctx context.Context) {
	pause := time.NewTicker(d.staleness / proofs)
	defer pause.Stop()
	for ctx.Err() == nil {
		if err := d.proveOnce(ctx); err != nil && ctx.Err() == nil {
			d.log.WarnContext(ctx, "tokens are not known to be current", "error", err)
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
}

func (d *Directory) proveOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, d.staleness)
	defer cancel()
	began := time.Now()
	revision, err := d.follower.Now(ctx)
	if err != nil {
		return fmt.Errorf("read when tokens changed: %w", err)
	}
	err = d.changed.Until(ctx, &d.mu, func() bool {
		d.newest = revision
		if d.revision < max(revision, 1) {
			return false
		}
		d.currentAt = began
		d.changed.Notify()
		return true
	})
	if err != nil {
		return fmt.Errorf("wait for revision %d: %w", revision, err)
	}
	return nil
}

// apply applies a change. Only the following goroutine calls it.
func (d *Directory) apply(u follow.Update) {
	d.mu.Lock()
	next := maps.Clone(d.tokens)
	if u.Reset || next == nil {
		next = make(map[string]*token)
	}
	d.mu.Unlock()
	for _, key := range u.Deletes {
		delete(next, strings.TrimPrefix(key, d.store.tokenKey("")))
	}
	for _, kv := range u.Puts {
		id, ok := strings.CutPrefix(string(kv.Key), d.store.tokenKey(""))
		if !ok {
			continue // the clock
		}
		record := &catalogv1.Token{}
		if err := proto.Unmarshal(kv.Value, record); err != nil {
			delete(next, id) // a record that cannot be read admits nobody
			d.log.Error("token cannot be read", "id", id, "error", err)
			continue
		}
		next[id] = newToken(record)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tokens, d.revision = next, u.Revision
	d.changed.Notify()
}

// lose makes no token known, so that lookups fail until the tokens are listed anew. Only the
// following goroutine calls it.
func (d *Directory) lose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tokens, d.revision, d.currentAt = nil, 0, time.Time{}
}
