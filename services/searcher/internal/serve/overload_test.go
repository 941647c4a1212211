package serve_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/testrun"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/processor"
	"github.com/trawl-search/trawl/services/searcher/internal/serve"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

// workTime is the mean time of a search of a worker. The service of these tests has two processors.
const (
	workTime   = 10 * time.Millisecond
	processors = 2
)

// worker is a shard whose search takes a random time.
type worker struct {
	act
	chance *rand.Rand
}

func (w worker) Find(ctx context.Context, q *search.Query, opts search.Options) (*search.Found, error) {
	r, err := w.act.Find(ctx, q, opts)
	select {
	case <-time.After(time.Duration(w.chance.ExpFloat64() * float64(workTime))):
	case <-ctx.Done():
		r.Incomplete = ctx.Err()
	}
	return r, err
}

// works names workers.
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
func offer(t testing.TB, s *serve.Service, chance *rand.Rand, load float64, shards int, deadline, during time.Duration) (e ended) {
	t.Helper()
	var mu sync.Mutex
	var calls sync.WaitGroup
	between := float64(workTime) * float64(shards) / processors / load
	for start := time.Now(); time.Since(start) < during; time.Sleep(time.Duration(chance.ExpFloat64() * between)) {
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), deadline)
			defer cancel()
			resp, err := searchAll(ctx, s, &searchv1.SearchRequest{Query: "q", Plan: planOf("r", works(shards)...)})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case searchapi.IsOverloaded(err):
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

// TestGoodputUnderOverload: at ten times the load that it can serve, a searcher answers nearly as
// many calls in full and in time as at its peak, and nearly all admitted calls end so. Without
// admission, all calls would wait for each other until the time of all is over.
func TestGoodputUnderOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		chance := testrun.Rand(t)
		open := func(path string) (shardcache.Shard, error) {
			content, err := os.ReadFile(path)
			return worker{act(content), chance}, err
		}
		s := serviceOf(serve.Config{}, storeOf(t, t.TempDir(), open, works(4)...))
		const deadline, during = 500 * time.Millisecond, 30 * time.Second
		peak := 0
		for _, load := range []float64{0.5, 0.9, 1, 2, 5, 10} {
			e := offer(t, s, chance, load, 4, deadline, during)
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

// dearTime is how long a search of the shard "dear" takes, and dearLag how long it
// goes on after its context has ended.
const (
	dearTime = 100 * time.Millisecond
	dearLag  = 5 * time.Millisecond
	// decodedByDear is what the search of a dear shard decodes, in bytes.
	decodedByDear = 1000
)

func dear(ctx context.Context) error {
	select {
	case <-time.After(dearTime):
		return nil
	case <-ctx.Done():
		time.Sleep(dearLag)
		return ctx.Err()
	}
}

// TestSingleCallerIsNotRefused: a caller sends one query after another, none of which can be
// answered in full in its time. It gets a part of the answer each time. What the previous query
// left running is not in the way: it is about to end.
func TestSingleCallerIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shards := []string{"dear-1", "dear-2", "dear-3", "dear-4", "dear-5"}
		s := start(t, shards...)
		var calling sync.WaitGroup
		defer calling.Wait()
		for i := range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			calling.Go(func() {
				resp, err := searchAll(ctx, s, &searchv1.SearchRequest{Query: "q", Plan: planOf("r", shards...)})
				if err != nil {
					t.Errorf("query %d was refused: %v", i, err)
				} else if resp.Coverage.Complete {
					t.Errorf("query %d was answered in full", i)
				}
			})
			// The caller waits no longer than it said, or gives up, and asks again.
			if i%2 == 0 {
				time.Sleep(20 * time.Millisecond)
				cancel()
			}
			<-ctx.Done()
			cancel()
		}
	})
}

// TestEndOfWaiting: the expected wait for earlier calls ends at their deadlines.
func TestEndOfWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shards := []string{"dear-1", "dear-2", "dear-3", "dear-4", "dear-5", "dear-6"}
		s := start(t, shards...)
		ask := func(within time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			_, err := searchAll(ctx, s, &searchv1.SearchRequest{Query: "q", Plan: planOf("r", shards...)})
			return err
		}
		for range 20 { // it learns how long a shard takes
			if err := ask(time.Second); err != nil {
				t.Fatal(err)
			}
		}
		var calling sync.WaitGroup
		defer calling.Wait()
		calling.Go(func() {
			if err := ask(50 * time.Millisecond); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if err := ask(200 * time.Millisecond); err != nil {
			t.Errorf("with time to wait for the one before: %v", err)
		}
		calling.Wait()
		calling.Go(func() { _ = ask(time.Second) })
		synctest.Wait()
		if err := ask(200 * time.Millisecond); !searchapi.IsOverloaded(err) {
			t.Errorf("behind a long one: %v, want a refusal", err)
		}
	})
}

// TestCallerGoneEndsItsWork: when its caller goes away, the searches of a call end at once, and those of other shards do
// not begin.
func TestCallerGoneEndsItsWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shards := []string{"slow", "dear-1", "dear-2", "dear-3", "dear-4"}
		s := start(t, shards...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var ended time.Time
		var calling sync.WaitGroup
		calling.Go(func() {
			_, _ = searchAll(ctx, s, &searchv1.SearchRequest{Query: "q", Plan: planOf("r", shards...)})
			ended = time.Now()
		})
		synctest.Wait()
		gone := time.Now()
		cancel()
		calling.Wait()
		if after := ended.Sub(gone); after > dearLag {
			t.Errorf("work went on for %v", after)
		}
	})
}

// readTime is how long a search of the shard "bucket" waits for the bucket.
const readTime = time.Second

func read(ctx context.Context) error {
	resume := processor.Pause(ctx)
	select {
	case <-time.After(readTime):
	case <-ctx.Done():
	}
	return resume()
}

// TestSearchesOfTheBucketHoldUpNoOthers: shards that are read from a slow bucket take no processor
// from shards on disk, and admission does not count them as a wait.
func TestSearchesOfTheBucketHoldUpNoOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := []string{"bucket-1", "bucket-2", "bucket-3", "bucket-4"}
		s := start(t, append(slow, "good")...)
		ask := func(within time.Duration, shards ...string) (*searchv1.SearchResponse, error) {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			return searchAll(ctx, s, &searchv1.SearchRequest{Query: "q", Plan: planOf("r", shards...)})
		}
		var calling sync.WaitGroup
		defer calling.Wait()
		for range 10 {
			calling.Go(func() {
				if resp, err := ask(time.Minute, slow...); err != nil || !resp.Coverage.Complete {
					t.Errorf("of the bucket: %v, %v", resp, err)
				}
			})
		}
		for range 20 {
			time.Sleep(100 * time.Millisecond)
			began := time.Now()
			if resp, err := ask(50*time.Millisecond, "good"); err != nil || !resp.Coverage.Complete || time.Since(began) > 0 {
				t.Errorf("of the disk: %v, %v after %v", resp, err, time.Since(began))
			}
		}
	})
}
