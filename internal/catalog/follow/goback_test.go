package follow_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	"github.com/trawl-search/trawl/internal/catalog/follow"
)

// TestReadersWithAClockElsewhere: when etcd goes back, or goes on to a copy with a longer history, a reader ends with what is stored
// too, whether what was there is gone, comes back or has another value, and follows on from there.
func TestReadersWithAClockElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := etcdtest.New()
		client := etcd.Client(nil)
		empty := etcd.Copy()
		put := func(key, value string) {
			if _, err := client.Put(t.Context(), key, value); err != nil {
				t.Fatal(err)
			}
		}
		put("clock", "first")
		put("in/kept", "")
		put("in/deleted", "")
		put("in/changed", "before")
		copied := etcd.Copy()
		put("in/changed", "lost")
		put("in/lost", "")
		if _, err := client.Delete(t.Context(), "in/deleted"); err != nil {
			t.Fatal(err)
		}
		put("out", "") // it has no part in the range, but the history is longer
		var mu sync.Mutex
		keys, resets := map[string]string{}, 0
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() {
			follow.Run(ctx, client, follow.Range{From: "in/", To: "in0"}, "clock", slog.New(slog.DiscardHandler), func(u follow.Update) {
				mu.Lock()
				defer mu.Unlock()
				if u.Reset {
					clear(keys)
					resets++
				}
				for _, key := range u.Deletes {
					delete(keys, key)
				}
				for _, kv := range u.Puts {
					keys[string(kv.Key)] = string(kv.Value)
				}
			})
		})
		for i, goBack := range []func(){func() {}, copied, empty, copied} {
			goBack()
			time.Sleep(time.Minute) // it looks before and after each
			for _, more := range []string{"", "in/more"} {
				if more != "" {
					put(more, fmt.Sprint(i))
					time.Sleep(time.Minute)
				}
				mu.Lock()
				if want := stored(t.Context(), t, client); !maps.Equal(keys, want) {
					t.Errorf("change %d: the reader has %v, stored are %v", i, keys, want)
				}
				mu.Unlock()
			}
		}
		if resets != 4 {
			t.Errorf("%d listings", resets)
		}
		cancel()
		running.Wait()
	})
}
