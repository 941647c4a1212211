package etcdtest

import (
	"context"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// watcher is the client's side of watches.
type watcher struct{ link }

var _ clientv3.Watcher = watcher{}

// Watch implements clientv3.Watcher.
func (w watcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	op := clientv3.OpGet(key, opts...)
	w.mu.Lock()
	from := op.Rev()
	if from == 0 {
		from = w.revision + 1
	}
	w.mu.Unlock()
	events := make(chan clientv3.WatchResponse)
	go func() {
		defer close(events)
		for {
			answer, changed := w.since(op, from)
			if len(answer.Events) == 0 {
				select {
				case <-ctx.Done():
					return
				case <-changed:
				}
				continue
			}
			select {
			case <-ctx.Done():
				return
			case events <- answer:
				from = answer.Header.Revision + 1
			}
		}
	}()
	return events
}

// since returns what changed from a revision on, and a channel that is closed at the
// next change.
func (s *Server) since(op clientv3.Op, from int64) (clientv3.WatchResponse, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := clientv3.WatchResponse{Header: s.header()}
	for name, versions := range s.keys {
		if !inRange([]byte(name), op.KeyBytes(), slices.Concat(op.RangeBytes(), endOf(op))) {
			continue
		}
		for _, kv := range versions {
			if kv.ModRevision < from {
				continue
			}
			event := &clientv3.Event{Type: mvccpb.PUT, Kv: kv}
			if kv.Key == nil {
				event = &clientv3.Event{Type: mvccpb.DELETE, Kv: &mvccpb.KeyValue{Key: []byte(name), ModRevision: kv.ModRevision}}
			}
			answer.Events = append(answer.Events, event)
		}
	}
	slices.SortFunc(answer.Events, func(a, b *clientv3.Event) int { return int(a.Kv.ModRevision - b.Kv.ModRevision) })
	return answer, s.changed.Next()
}

// endOf makes the range of a single key.
func endOf(op clientv3.Op) []byte {
	if len(op.RangeBytes()) > 0 {
		return nil
	}
	return append(slices.Clone(op.KeyBytes()), 0)
}

// RequestProgress implements clientv3.Watcher.
func (watcher) RequestProgress(context.Context) error { return nil }

// Close implements clientv3.Watcher.
func (watcher) Close() error { return nil }
