package ingest

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// TestASilentEtcdIsAskedOnceAtATime: however many callers put repos while etcd does not say how full it is, one question is under way,
// one caller waits for it, and it is asked again only when as much was put again. Meanwhile the last answer counts.
func TestASilentEtcdIsAskedOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSpace(catalog.New(etcdtest.New().Client(nil), ""), prometheus.NewRegistry(), slog.New(slog.DiscardHandler))
		const silence = 2 * time.Second
		var mu sync.Mutex
		asked, answer, fails := 0, catalog.Space{Used: 1, Quota: 10}, error(nil)
		s.ask = func(context.Context) (catalog.Space, error) {
			mu.Lock()
			defer mu.Unlock()
			asked++
			if fails != nil {
				mu.Unlock()
				time.Sleep(silence)
				mu.Lock()
			}
			return answer, fails
		}
		puts := func(n, bytes int) (refused, waited int) {
			var all sync.WaitGroup
			for range n {
				all.Go(func() {
					began := time.Now()
					err := s.take(t.Context(), bytes)
					mu.Lock()
					defer mu.Unlock()
					if searchapi.IsOverloaded(err) {
						refused++
					}
					if time.Since(began) > 0 {
						waited++
					}
				})
			}
			all.Wait()
			return refused, waited
		}
		for what, c := range map[string]struct {
			answer catalog.Space
			refuse bool
		}{"room": {catalog.Space{Used: 1, Quota: 10}, false}, "full": {catalog.Space{Used: 9, Quota: 10}, true}} {
			answer, fails, asked = c.answer, nil, 0
			s.look(t.Context())
			fails = errors.New("silent")
			refused, waited := puts(100, spaceBytes)
			if asked != 2 || waited != 1 || (refused == 100) != c.refuse || !c.refuse && refused > 0 {
				t.Errorf("%s: asked %d times, %d refused, %d waited", what, asked, refused, waited)
			}
			puts(1, 1) // for what the others have put meanwhile
			asked = 0
			if refused, waited := puts(100, spaceBytes/200); asked != 0 || waited != 0 || (refused == 100) != c.refuse {
				t.Errorf("%s, little more: asked %d times, %d refused, %d waited", what, asked, refused, waited)
			}
		}
	})
}
