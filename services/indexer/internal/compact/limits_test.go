package compact

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trawl-search/trawl/internal/limits"
)

// TestLimitsAreFollowed: limits override the settings, and a change of one is a reason to plan at once.
func TestLimitsAreFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		store := limits.NewStore(w.etcd.Client(nil), "")
		s := w.scheduler(nil)
		s.Every, s.Live = 24*time.Hour, limits.NewLive(store, slog.New(slog.DiscardHandler))
		var running sync.WaitGroup
		defer running.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		running.Go(func() { s.Live.Run(ctx) })
		synctest.Wait()
		if now := s.InForce(s.Live); now != s.Config {
			t.Errorf("without limits %+v, want %+v", now, s.Config)
		}
		changed, slept := s.Live.Changed(), make(chan time.Duration, 1)
		running.Go(func() {
			began := time.Now()
			s.sleep(ctx, changed)
			slept <- time.Since(began)
		})
		for name, value := range map[limits.Name]string{limits.CompactDeltas: "5", limits.CompactSettle: "3m", limits.CompactReclaim: "36h"} {
			if _, err := store.Set(t.Context(), limits.Key{Name: name}, value, "ops"); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		want := s.Config
		want.Deltas, want.Settle, want.Reclaim = 5, 3*time.Minute, 36*time.Hour
		if now := s.InForce(s.Live); now != want {
			t.Errorf("with limits %+v, want %+v", now, want)
		}
		if took := <-slept; took > time.Second {
			t.Errorf("the next plan came after %v", took)
		}
	})
}
