package membership

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/catalog/follow"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Members follows the records of live searchers in etcd until it is closed. While etcd
// is away it keeps the last known searchers. It is safe for concurrent use.
type Members struct {
	logger *slog.Logger
	cancel context.CancelFunc
	ended  sync.WaitGroup
	byKey  map[string]*catalogv1.Searcher // used by the following goroutine only

	mu       sync.Mutex
	snapshot *MemberSnapshot
}

// MemberSnapshot is the live searchers at one moment. It never changes; its
// records are shared and must only be read.
type MemberSnapshot struct {
	// Searchers are in ascending order of id.
	Searchers []*catalogv1.Searcher

	listed  bool
	changed chan struct{}
}

// Changed is closed when there is a newer snapshot.
func (s *MemberSnapshot) Changed() <-chan struct{} { return s.changed }

// Placeable returns the members that new shards are placed on: those that are not
// draining, in ascending order of id.
func (s *MemberSnapshot) Placeable() []Member {
	members := make([]Member, 0, len(s.Searchers))
	for _, m := range s.Searchers {
		if !m.Draining {
			members = append(members, Member{ID: m.Id, Zone: m.Zone})
		}
	}
	return members
}

// Draining returns the ids of the others, in ascending order.
func (s *MemberSnapshot) Draining() (ids []ID) {
	for _, m := range s.Searchers {
		if m.Draining {
			ids = append(ids, m.Id)
		}
	}
	return ids
}

// NewMembers starts following, without waiting for etcd: see WaitListed. It ends with
// Close, or with the context. The prefix begins every key.
func NewMembers(ctx context.Context, client *clientv3.Client, prefix string, logger *slog.Logger) *Members {
	ctx, cancel := context.WithCancel(ctx)
	m := &Members{logger: logger, cancel: cancel, snapshot: &MemberSnapshot{changed: make(chan struct{})}}
	from := prefix + searcherKind
	keys := follow.Range{From: from, To: clientv3.GetPrefixRangeEnd(from)}
	m.ended.Go(func() { follow.Run(ctx, client, keys, follow.ClockKey(prefix), logger, m.apply) })
	return m
}

// Close stops following and waits for the goroutine. Snapshots stay valid.
func (m *Members) Close() {
	m.cancel()
	m.ended.Wait()
}

// Snapshot returns the newest snapshot; before the first listing an empty one. It
// never blocks.
func (m *Members) Snapshot() *MemberSnapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.snapshot
}

// WaitListed waits for the first listing and returns the newest snapshot.
func (m *Members) WaitListed(ctx context.Context) (*MemberSnapshot, error) {
	for {
		s := m.Snapshot()
		if s.listed {
			return s, nil
		}
		select {
		case <-s.changed:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the list of searchers: %w", context.Cause(ctx))
		}
	}
}

// apply makes the next snapshot. Only the following goroutine calls it.
func (m *Members) apply(u follow.Update) {
	if u.Reset {
		m.byKey = make(map[string]*catalogv1.Searcher, len(u.Puts))
	}
	for _, kv := range u.Puts {
		m.put(kv)
	}
	for _, key := range u.Deletes {
		delete(m.byKey, key)
	}
	next := &MemberSnapshot{listed: true, changed: make(chan struct{})}
	next.Searchers = slices.SortedFunc(maps.Values(m.byKey), func(a, b *catalogv1.Searcher) int {
		return cmp.Compare(a.Id, b.Id)
	})
	m.mu.Lock()
	old := m.snapshot
	m.snapshot = next
	m.mu.Unlock()
	close(old.changed)
}

// put adds a record. One that cannot be decoded is logged and left out.
func (m *Members) put(kv *mvccpb.KeyValue) {
	record := &catalogv1.Searcher{}
	if err := proto.Unmarshal(kv.Value, record); err != nil || record.Id == "" {
		m.logger.Error("cannot decode the record of a searcher, leaving it out", "key", string(kv.Key), "error", err)
		delete(m.byKey, string(kv.Key))
		return
	}
	m.byKey[string(kv.Key)] = record
}
