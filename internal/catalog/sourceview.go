package catalog

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/catalog/follow"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// ErrNotRead is the error of a view that has not read etcd yet.
var ErrNotRead = errors.New("the sources were not read yet")

// SourceView keeps the sources in memory, following etcd until it is closed. While etcd
// is away it keeps what it has and catches up afterwards. It is safe for concurrent
// use.
type SourceView struct {
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu      sync.Mutex
	sources map[string]*ingestv1.Source // by name, without removed ones; nil before the first listing
}

// NewSourceView starts following. It does not wait for etcd. The view ends with Close,
// or with the context.
func NewSourceView(ctx context.Context, store *Store, logger *slog.Logger) *SourceView {
	ctx, cancel := context.WithCancel(ctx)
	v := &SourceView{cancel: cancel}
	keys := follow.Range{From: store.key(sourceKind, ""), To: store.end(sourceKind)}
	v.ended.Go(func() {
		follow.Run(ctx, store.client, keys, store.clockKey(), logger, func(u follow.Update) { v.apply(store, logger, u) })
	})
	return v
}

// Close ends the view and waits for its goroutine.
func (v *SourceView) Close() {
	v.cancel()
	v.ended.Wait()
}

// Get returns the source of a name, which the caller must not change. It never blocks,
// and may be behind etcd. ErrNotFound if there is no such source, or it was removed;
// ErrNotRead before the first listing.
func (v *SourceView) Get(name string) (*ingestv1.Source, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.sources == nil {
		return nil, ErrNotRead
	}
	if s := v.sources[name]; s != nil {
		return s, nil
	}
	return nil, ErrNotFound
}

// All returns the sources by name, which the caller must not change. It never blocks, and may be behind etcd: before the
// first listing there are none.
func (v *SourceView) All() []*ingestv1.Source {
	v.mu.Lock()
	defer v.mu.Unlock()
	all := make([]*ingestv1.Source, 0, len(v.sources))
	for _, name := range slices.Sorted(maps.Keys(v.sources)) {
		all = append(all, v.sources[name])
	}
	return all
}

// apply applies a change. Only the following goroutine calls it.
func (v *SourceView) apply(store *Store, logger *slog.Logger, u follow.Update) {
	next := map[string]*ingestv1.Source{}
	if !u.Reset {
		v.mu.Lock()
		next = maps.Clone(v.sources)
		v.mu.Unlock()
	}
	for _, key := range u.Deletes {
		delete(next, store.name(sourceKind, []byte(key)))
	}
	for _, kv := range u.Puts {
		name, record := store.name(sourceKind, kv.Key), &catalogv1.Source{}
		err := proto.Unmarshal(kv.Value, record)
		if err != nil {
			logger.Error("a source cannot be read", "source", name, "error", err)
		}
		if delete(next, name); err == nil && !record.GetRemoved() {
			next[name] = record.GetSpec()
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sources = next
}
