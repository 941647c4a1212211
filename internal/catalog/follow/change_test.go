package follow

import (
	"maps"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"pgregory.net/rapid"
)

// An update must leave a reader where applying the events one by one does.
func TestChangeKeepsTheLastOfEachKey(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		oracle := map[string]string{"a": "0", "b": "0"}
		got := maps.Clone(oracle)
		var events []*clientv3.Event
		n := rapid.IntRange(1, 12).Draw(t, "events")
		for i := range n {
			key := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key")
			kv := &mvccpb.KeyValue{Key: []byte(key), ModRevision: int64(10 + i)}
			if rapid.Bool().Draw(t, "delete") {
				events = append(events, &clientv3.Event{Type: clientv3.EventTypeDelete, Kv: kv})
				delete(oracle, key)
				continue
			}
			kv.Value = []byte(rapid.StringN(0, 3, -1).Draw(t, "value"))
			events = append(events, &clientv3.Event{Type: clientv3.EventTypePut, Kv: kv})
			oracle[key] = string(kv.Value)
		}
		u := change(events)
		// Puts and deletes hold different keys, so their order cannot matter.
		for _, key := range u.Deletes {
			delete(got, key)
		}
		for _, kv := range u.Puts {
			got[string(kv.Key)] = string(kv.Value)
		}
		if !maps.Equal(got, oracle) || u.Revision != int64(9+n) || u.Reset {
			t.Fatalf("update %+v leads to %v, want %v at %d", u, got, oracle, 9+n)
		}
	})
}
