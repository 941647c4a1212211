package recorder

import (
	"context"
	"maps"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/integration/history"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Follow has Settle read the changes that etcd records from now on, rather than all that it has ever recorded, which it may forget meanwhile. Call it
// before Start.
func (w *Workload) Follow(etcd *clientv3.Client, prefix string) {
	w.t.Helper()
	w.following = map[string]clientv3.WatchChan{}
	for _, r := range w.repos {
		for _, key := range []string{prefix + desired + r.Name, prefix + roots + r.Name} {
			now, err := etcd.Get(w.t.Context(), key)
			testrun.Must(w.t, err)
			w.following[key] = etcd.Watch(w.t.Context(), key, clientv3.WithRev(now.Header.Revision+1))
		}
	}
}

const desired, roots = "desired/", "roots/" // kinds of keys

// addWrites adds a repo's changes to the history, in the order that etcd has recorded:
// requests, publications and deletions. Only the callers' answers show when each change became
// visible.
func (w *Workload) addWrites(etcd *clientv3.Client, prefix string, r *Repo) {
	w.t.Helper()
	changes := map[int64]history.Write{} // by revision
	for _, e := range w.events(etcd, prefix+desired+r.Name) {
		changes[e.Kv.ModRevision] = history.Write{Kind: history.Delete, Answer: history.Answer{Revision: e.Kv.ModRevision}}
		if e.Type == clientv3.EventTypePut {
			var put catalogv1.Desired
			testrun.Must(w.t, proto.Unmarshal(e.Kv.Value, &put))
			changes[e.Kv.ModRevision] = history.Write{Kind: history.Put, Answer: history.Answer{Epoch: put.GetEpoch()}}
		}
	}
	for _, e := range w.events(etcd, prefix+roots+r.Name) {
		if e.Type != clientv3.EventTypePut {
			continue // deleted together with the desired state, which is recorded
		}
		var root catalogv1.Root
		testrun.Must(w.t, proto.Unmarshal(e.Kv.Value, &root))
		for _, ref := range root.GetShards() {
			w.holders[ref.GetKey()] = append(w.holders[ref.GetKey()], r.Name)
		}
		changes[e.Kv.ModRevision] = history.Write{Kind: history.Publish, Answer: history.Answer{
			Generation: root.GetGeneration(), Epoch: root.GetEpoch(), Commit: r.numbers[root.GetBranches()[0].GetCommit()],
		}}
	}
	var writes []history.Write
	for _, revision := range slices.Sorted(maps.Keys(changes)) {
		writes = append(writes, changes[revision])
	}
	testrun.Must(w.t, w.History.Written(r.Name, writes))
}

// Packs counts the shards, of all that were published, that several of the repos shared.
func (w *Workload) Packs() (packs, all int) {
	for _, repos := range w.holders {
		if len(slices.Compact(slices.Sorted(slices.Values(repos)))) > 1 {
			packs++
		}
	}
	return packs, len(w.holders)
}

// events returns all changes that a key had since Follow, or ever.
func (w *Workload) events(etcd *clientv3.Client, key string) (events []*clientv3.Event) {
	w.t.Helper()
	now, err := etcd.Get(w.t.Context(), key)
	testrun.Must(w.t, err)
	ctx, cancel := context.WithCancel(w.t.Context())
	defer cancel()
	watch, following := w.following[key]
	if !following {
		watch = etcd.Watch(ctx, key, clientv3.WithRev(1))
	}
	// etcd reports progress only to watches that have caught up, and drops other requests for it. A
	// key without events is in no other answer.
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for end := time.After(testrun.Patience); ; {
		select {
		case resp, open := <-watch:
			if testrun.Must(w.t, resp.Err()); !open {
				w.t.Fatalf("the watch of %s ended", key)
			}
			events = append(events, resp.Events...)
			if resp.Header.Revision >= now.Header.Revision {
				return events
			}
		case <-again.C:
			testrun.Must(w.t, etcd.RequestProgress(ctx))
		case <-end:
			w.t.Fatalf("etcd does not report all events of %s", key)
		}
	}
}
