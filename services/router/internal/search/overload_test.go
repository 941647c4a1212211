package search_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

// The cluster of these tests. Each searcher is the first holder of some shards, and the second
// holder of those of the searcher before it. On average it searches a shard in simTime.
const (
	simSearchers  = 3
	simProcessors = 2
	simShards     = 4
	simTime       = 10 * time.Millisecond
	simDeadline   = 500 * time.Millisecond
	// simPeak is how many queries of all shards it can answer a second.
	simPeak = float64(simProcessors) / simShards * float64(time.Second/simTime)
)

// simSearcher takes simulated time for its answers. It refuses calls that would wait for more than
// half of their time, as searchers do.
type simSearcher struct {
	searchv1.SearchServiceClient
	processors chan struct{}
	rng        *rand.Rand

	mu    sync.Mutex
	ahead int
}

func (s *simSearcher) StreamSearch(ctx context.Context, streamed *searchv1.StreamSearchRequest, opts ...grpc.CallOption) (grpc.ServerStreamingClient[searchv1.StreamSearchResponse], error) {
	req := streamed.Search
	deadline, _ := ctx.Deadline()
	s.mu.Lock()
	wait := time.Duration(s.ahead) * simTime / time.Duration(cap(s.processors))
	if wait > time.Until(deadline)/2 {
		s.mu.Unlock()
		return nil, searchapi.Overloaded("too much to do", wait)
	}
	s.ahead += len(req.Plan.Shards)
	s.mu.Unlock()
	var shards []searchapi.Shard
	for _, p := range req.Plan.Shards {
		shards = append(shards, searchapi.Shard{Digest: searchapi.Digest(p.Digest)})
	}
	account := searchapi.NewAccount(shards)
	var searching sync.WaitGroup
	var cost searchapi.Cost
	for _, shard := range shards {
		searching.Go(func() {
			took, done := s.work(ctx)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ahead--
			cost.Processor += took
			if done {
				account.Searched(shard.Digest)
			}
		})
	}
	searching.Wait()
	tellCost(opts, cost)
	return &oneMessage[searchv1.StreamSearchResponse]{message: &searchv1.StreamSearchResponse{Coverage: account.Coverage()}}, ctx.Err()
}

// oneMessage is a stream of one message.
type oneMessage[M any] struct {
	grpc.ClientStream
	message *M
}

func (m *oneMessage[M]) Recv() (*M, error) {
	next := m.message
	if m.message = nil; next == nil {
		return nil, io.EOF
	}
	return next, nil
}

// work returns how long it had a processor.
func (s *simSearcher) work(ctx context.Context) (took time.Duration, done bool) {
	select {
	case s.processors <- struct{}{}:
		defer func() { <-s.processors }()
	case <-ctx.Done():
		return 0, false
	}
	began := time.Now()
	select {
	case <-time.After(time.Duration(s.rng.ExpFloat64() * float64(simTime))):
		return time.Since(began), true
	case <-ctx.Done():
		return time.Since(began), false
	}
}

// tellCost puts the cost of a call into its trailer.
func tellCost(opts []grpc.CallOption, cost searchapi.Cost) {
	for _, opt := range opts {
		if trailer, ok := opt.(grpc.TrailerCallOption); ok {
			*trailer.TrailerAddr = cost.Trailer()
		}
	}
}

// simulation is the searchers that a service is made with.
type simulation struct {
	searchers []*simSearcher
	layout    *search.Layout
}

func (*simulation) Reach(context.Context, *searchv1.Consistency, int64) error { return nil }

func (s *simulation) At(context.Context, *searchv1.Consistency, int64) (*search.Layout, error) {
	return s.layout, nil
}

func (s *simulation) Candidates(d searchapi.Digest) (targets []fanout.Target) {
	for i := range 2 {
		id := fmt.Sprint((int(d[0]) + i) % simSearchers)
		targets = append(targets, fanout.Target{ID: id, Address: id})
	}
	return targets
}

func (s *simulation) Client(address string) (searchv1.SearchServiceClient, error) {
	return s.searchers[address[0]-'0'], nil
}

func simulate(t testing.TB, maxQueries int) *search.Service {
	t.Helper()
	return simulateWith(t, simProcessors, search.Config{MaxQueries: maxQueries})
}

// simulateWith is simulate with searchers of that many processors, and any limits.
func simulateWith(t testing.TB, processors int, cfg search.Config) *search.Service {
	t.Helper()
	s := &simulation{}
	var roots []*catalogv1.Root
	for i := range simSearchers {
		s.searchers = append(s.searchers, &simSearcher{processors: make(chan struct{}, processors), rng: testrun.Locked(uint64(i))})
	}
	for i := range simSearchers * simShards {
		digest := d(i)
		roots = append(roots, &catalogv1.Root{
			Repo: fmt.Sprintf("repo%02d", i), Generation: 1, Shards: []*catalogv1.ShardRef{{Digest: digest[:], SizeBytes: 1}},
		})
	}
	var err error
	if s.layout, err = search.NewLayout(1, roots); err != nil {
		t.Fatal(err)
	}
	cfg.Budget = search.Budget{Default: time.Second, Most: time.Second}
	return newService(t, cfg, s, s)
}

// newService makes a service whose searchers answer every ping at once.
func newService(t testing.TB, cfg search.Config, layouts search.Layouts, searchers search.Searchers) *search.Service {
	t.Helper()
	registry, log := prometheus.NewRegistry(), slog.New(slog.DiscardHandler)
	reached := fanout.NewMetrics(registry)
	metrics := search.NewMetrics(registry)
	ping := func(context.Context, fanout.Target) error { return nil }
	cfg.Peers = fanout.NewPeers(fanout.Shares{Hedges: 0.1, Retries: 0.2}, ping, reached, log)
	return search.New(cfg, layouts, searchers, noop.NewTracerProvider().Tracer(""), metrics, log)
}

// ended counts how queries ended.
type ended struct{ good, shed, late, incomplete int }

// offer sends queries at random moments, at a multiple of the rate that can be
// answered.
func offer(t testing.TB, s *search.Service, load float64, during time.Duration) (e ended) {
	t.Helper()
	var mu sync.Mutex
	var queries sync.WaitGroup
	between, rng := float64(time.Second)/simPeak/load, rand.New(rand.NewPCG(1, 0))
	for start := time.Now(); time.Since(start) < during; time.Sleep(time.Duration(rng.ExpFloat64() * between)) {
		queries.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), simDeadline)
			defer cancel()
			resp, err := s.Search(ctx, &searchv1.SearchRequest{Query: "q"})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case searchapi.IsOverloaded(err):
				e.shed++
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
	queries.Wait()
	return e
}

// TestGoodputUnderOverload: at ten times the load that can be served, nearly as many queries are
// answered in full and in time as at the best load, although each needs every searcher. Nearly all
// admitted queries end so. Without the limit each searcher refuses calls of its own choice, and
// next to no query gets all it needs.
func TestGoodputUnderOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := simulate(t, 1000)
		const during = 30 * time.Second
		peak := 0
		for _, load := range []float64{0.5, 0.9, 1, 2, 5, 10} {
			e := offer(t, s, load, during)
			t.Logf("%4.1fx: %4.1f good a second, %+v", load, float64(e.good)/during.Seconds(), e)
			peak = max(peak, e.good)
			if e.late > 0 {
				t.Errorf("at %vx %d queries were answered after their deadline", load, e.late)
			}
			if admitted := e.good + e.incomplete; float64(e.incomplete) > 0.1*float64(admitted) {
				t.Errorf("at %vx %d of %d admitted queries were not answered in full", load, e.incomplete, admitted)
			}
			if load >= 1 && float64(e.good) < 0.85*float64(peak) {
				t.Errorf("at %vx %d good answers, at the peak %d", load, e.good, peak)
			}
		}
	})
}

// TestClasses: a caller chooses the class of its query, a stream of everything is in the lowest by
// default, and a refusal says when to retry.
func TestClasses(t *testing.T) {
	for name, c := range map[string]struct {
		class string
		ask   func(context.Context, *search.Service) error
		code  codes.Code // while two queries of at most four run
	}{
		"search":             {"", searchOnce, codes.OK},
		"search of a batch":  {"batch", searchOnce, codes.ResourceExhausted},
		"stream":             {"", streamAll, codes.ResourceExhausted},
		"interactive stream": {"interactive", streamAll, codes.OK},
		"no class":           {"urgent", searchOnce, codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := simulate(t, 4)
				var others sync.WaitGroup
				for range 2 {
					others.Go(func() { _ = searchOnce(t.Context(), s) })
				}
				synctest.Wait()
				ctx := t.Context()
				if c.class != "" {
					ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("trawl-class", c.class))
				}
				err := c.ask(ctx, s)
				if status.Code(err) != c.code || c.code == codes.ResourceExhausted && !searchapi.IsOverloaded(err) {
					t.Errorf("got %v, want %v", err, c.code)
				}
				others.Wait()
			})
		})
	}
}

func searchOnce(ctx context.Context, s *search.Service) error {
	_, err := s.Search(ctx, &searchv1.SearchRequest{Query: "q"})
	return err
}

func streamAll(ctx context.Context, s *search.Service) error {
	return s.StreamSearch(&searchv1.StreamSearchRequest{Search: &searchv1.SearchRequest{Query: "q"}}, &stream{ctx: ctx})
}
