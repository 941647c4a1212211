package discover

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	"github.com/trawl-search/trawl/internal/limits"
)

// TestPollLimitIsFollowed: the bounds of a host follow the limit, and those of the setting come back with the limit unset.
func TestPollLimitIsFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := limits.NewStore(etcdtest.New().Client(nil), "")
		live := limits.NewLive(store, slog.New(slog.DiscardHandler))
		var following sync.WaitGroup
		defer following.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		following.Go(func() { live.Run(ctx) })
		key := limits.Key{Name: limits.PollPerSecond}
		var all hosts
		for _, c := range []struct {
			limit              string
			perSecond, perHost int
		}{{"", 10, 4}, {"100", 100, 40}, {"1", 1, 1}, {"", 10, 4}} {
			var err error
			if c.limit == "" {
				_, err = store.Unset(t.Context(), key)
			} else {
				_, err = store.Set(t.Context(), key, c.limit, "ops")
			}
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			b := all.of("example.org", Config{PerSecond: 10, Live: live})
			if b.rate.Burst() != c.perSecond || float64(b.rate.Limit()) != float64(c.perSecond) || cap(b.slots) != c.perHost {
				t.Errorf("limit %q: %v a second, %d at once, want %d and %d", c.limit, b.rate.Limit(), cap(b.slots), c.perSecond, c.perHost)
			}
			if all.of("example.org", Config{PerSecond: 10, Live: live}) != b {
				t.Errorf("limit %q: the bounds are new although nothing changed", c.limit)
			}
		}
	})
}
