package serve_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trawl-search/trawl/internal/searchwire"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/serve"
)

// workTime is the mean time of a search of the shard "work". The service of
// these tests has two processors.
const (
	workTime   = 10 * time.Millisecond
	processors = 2
)

func work(ctx context.Context) error {
	select {
	case <-time.After(time.Duration(rand.ExpFloat64() * float64(workTime))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// works names shards that take the mean time.
func works(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("work-", i))
	}
	return names
}

// ended counts how calls ended.
type ended struct{ good, refused, late, incomplete int }

// offer sends calls for some shards each at random moments, at a rate that is
// a multiple of what the processors can do, and gives each a deadline.
func offer(t testing.TB, s *serve.Service, load float64, shards int, deadline, during time.Duration) (e ended) {
	t.Helper()
	var mu sync.Mutex
	var calls sync.WaitGroup
	between := float64(workTime) * float64(shards) / processors / load
	for start := time.Now(); time.Since(start) < during; time.Sleep(time.Duration(rand.ExpFloat64() * between)) {
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), deadline)
			defer cancel()
			resp, err := s.Search(ctx, &searchv1.SearchRequest{Query: "q", Plan: planOf("r", works(shards)...)})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case searchwire.IsOverloaded(err):
				e.refused++
			case err != nil:
				t.Error(err)
			case ctx.Err() != nil:
				e.late++
			case !resp.Coverage.Complete:
				e.incomplete++
			default:
				e.good++
			}
		})
	}
	calls.Wait()
	return e
}

// TestGoodputUnderOverload: ten times the calls that it can answer cost a
// searcher little of what it answers in full and in time, and of what it lets
// in nearly all ends so. Without admission all wait for each other until the
// time of all is over.
func TestGoodputUnderOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, works(4)...)
		const deadline, during = 500 * time.Millisecond, 30 * time.Second
		peak := 0
		for _, load := range []float64{0.5, 0.9, 1, 2, 5, 10} {
			e := offer(t, s, load, 4, deadline, during)
			t.Logf("%4.1fx: %.1f good a second, %+v", load, float64(e.good)/during.Seconds(), e)
			peak = max(peak, e.good)
			if e.late > 0 {
				t.Errorf("at %vx %d calls were answered after their deadline", load, e.late)
			}
			if admitted := e.good + e.incomplete; float64(e.incomplete) > 0.05*float64(admitted) {
				t.Errorf("at %vx %d of %d admitted calls were not answered in full", load, e.incomplete, admitted)
			}
			if load >= 1 && float64(e.good) < 0.85*float64(peak) {
				t.Errorf("at %vx %d good answers, at the peak %d", load, e.good, peak)
			}
		}
	})
}
