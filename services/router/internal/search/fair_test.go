package search_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

// caller is a principal of its own.
type caller struct {
	access.Principal
	id string
}

func (c caller) ID() string { return c.id }

// load is what one caller asked, and how it went.
type load struct {
	took     []time.Duration // of answers, with the pauses and repetitions before
	attempts int
}

// percentile99 is the time within which 99 of 100 answers came.
func (l *load) percentile99() time.Duration {
	slices.Sort(l.took)
	return l.took[len(l.took)*99/100]
}

// asks sends queries of a caller at random moments. One that is refused is sent again
// after a pause, until it is answered, except those of the greedy caller: it has asked
// the next one already.
func asks(s *search.Service, id string, perSecond float64, during time.Duration) *load {
	var l load
	var mu sync.Mutex
	var queries sync.WaitGroup
	ctx := access.With(context.Background(), caller{access.Anyone, id})
	rng := rand.New(rand.NewPCG(1, uint64(perSecond)))
	for start := time.Now(); time.Since(start) < during; time.Sleep(time.Duration(rng.ExpFloat64() / perSecond * float64(time.Second))) {
		queries.Go(func() {
			for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
				within, cancel := context.WithTimeout(ctx, simDeadline)
				_, err := s.Search(within, &searchv1.SearchRequest{Query: "q"})
				cancel()
				mu.Lock()
				l.attempts++
				if err == nil {
					l.took = append(l.took, time.Since(began))
				}
				mu.Unlock()
				if !searchapi.IsOverloaded(err) || id == "greedy" {
					return
				}
			}
		})
	}
	queries.Wait()
	return &l
}

// TestGreedyCaller: of two callers one asks fifty times as much as the other, and more
// than twice as much as can be answered. The other one's 99th percentile, repetitions
// included, at most doubles. The limit is twice what keeps the searchers busy.
func TestGreedyCaller(t *testing.T) {
	const (
		perSecond  = 20.
		processors = 16
		during     = time.Minute
		atOnce     = 2 * processors / simShards
	)
	run := func(greedy float64) (modest, other *load) {
		synctest.Test(t, func(t *testing.T) {
			s := simulateWith(t, processors, search.Config{MaxQueries: atOnce, CallerShare: 0.5})
			var callers sync.WaitGroup
			if greedy > 0 {
				callers.Go(func() { other = asks(s, "greedy", greedy, during) })
			}
			callers.Go(func() { modest = asks(s, "modest", perSecond, during) })
			callers.Wait()
		})
		return modest, other
	}
	alone, _ := run(0)
	beside, greedy := run(50 * perSecond)
	t.Logf("99 of 100 answers within %v alone, within %v beside %d queries of which %d were answered",
		alone.percentile99(), beside.percentile99(), greedy.attempts, len(greedy.took))
	if len(beside.took) < len(alone.took)*8/10 || beside.percentile99() > 2*alone.percentile99() {
		t.Errorf("%d answers, 99 of 100 within %v; alone %d, within %v", len(beside.took), beside.percentile99(), len(alone.took), alone.percentile99())
	}
	if perSecond := float64(len(greedy.took)) / during.Seconds(); perSecond < 100 {
		t.Errorf("the greedy caller got only %.0f answers a second", perSecond)
	}
}

// TestDefaultsBoundTheGreedy is TestGreedyCaller with the default limits of a router, over searchers of several sizes.
// The other caller's 99th percentile at most doubles once the greedy one has used up its burst.
func TestDefaultsBoundTheGreedy(t *testing.T) {
	var defaults router.Config
	defaults.SetDefaults()
	limits := search.Config{
		MaxQueries: defaults.MaxQueries, CallerShare: defaults.CallerShare,
		CallerProcessors: defaults.CallerProcessors,
	}
	const during = 90 * time.Second
	for _, processors := range []int{4, 8} {
		perSecond := 20 * float64(processors) / 16
		run := func(greedy float64) (first, then *load) {
			synctest.Test(t, func(t *testing.T) {
				s := simulateWith(t, processors, limits)
				var callers sync.WaitGroup
				if greedy > 0 {
					callers.Go(func() { asks(s, "greedy", greedy, 2*during) })
				}
				first = asks(s, "modest", perSecond, during)
				then = asks(s, "modest", perSecond, during)
				callers.Wait()
			})
			return first, then
		}
		_, alone := run(0)
		first, beside := run(50 * perSecond)
		t.Logf("%d processors: 99 of 100 answers within %v alone, %v in the first %v beside the greedy, %v then", processors*simSearchers,
			alone.percentile99(), first.percentile99(), during, beside.percentile99())
		if len(beside.took) < len(alone.took)*8/10 || beside.percentile99() > 2*alone.percentile99() {
			t.Errorf("%d processors: %d answers, 99 of 100 within %v; alone %d, within %v", processors*simSearchers, len(beside.took), beside.percentile99(), len(alone.took), alone.percentile99())
		}
	}
}
