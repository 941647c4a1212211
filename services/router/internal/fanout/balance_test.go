package fanout_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
)

// asked counts the shards that each searcher is asked for, and answers for all of them
// after some time.
type asked struct {
	takes time.Duration
	// takesOf is the time of each searcher, in place of takes.
	takesOf func(id string) time.Duration

	mu     sync.Mutex
	shards map[string]int
}

func (a *asked) call(ctx context.Context, t fanout.Target, shards []searchapi.Shard) (reply, error) {
	a.mu.Lock()
	a.shards[t.ID] += len(shards)
	a.mu.Unlock()
	account, takes := searchapi.NewAccount(shards), a.takes
	if a.takesOf != nil {
		takes = a.takesOf(t.ID)
	}
	select {
	case <-time.After(takes):
		for _, s := range shards {
			account.Searched(s.Digest)
		}
	case <-ctx.Done():
	}
	return reply{Coverage: account.Coverage()}, nil
}

func (a *asked) most() (most int) {
	for _, n := range a.shards {
		most = max(most, n)
	}
	return most
}

func (a *asked) scatter(t testing.TB, f fanout.Fanout, shards []searchapi.Shard) {
	account := searchapi.NewAccount(shards)
	fanout.Scatter(t.Context(), f, shards, account, a.call, func([]searchapi.Digest) {})
	if !account.Coverage().Complete {
		t.Errorf("coverage %v", account.Coverage())
	}
}

// TestNoSearcherIsAskedForMuchMore: by chance, one of twenty searchers ranks first for far more
// shards of a query than another. Since each shard has a second holder, none is asked for much more
// than a quarter above the average. The excess comes from shards whose holders have both reached
// that limit.
func TestNoSearcherIsAskedForMuchMore(t *testing.T) {
	const searchers, count = 20, 400
	var list []*catalogv1.Searcher
	for i := range searchers {
		list = append(list, &catalogv1.Searcher{Id: fmt.Sprint("searcher-", i), Address: "x"})
	}
	worst := map[int]int{}
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		shards := make([]searchapi.Shard, count)
		for i := range shards {
			for j := range shards[i].Digest {
				shards[i].Digest[j] = byte(rng.Uint32())
			}
		}
		for _, replicas := range []int{1, 2} {
			synctest.Test(t, func(t *testing.T) {
				a := &asked{shards: map[string]int{}}
				a.scatter(t, fanout.Fanout{
					Policy: fanout.Policy{Replicas: replicas}, Peers: peers(t, fanout.Shares{}), Candidates: fanout.NewDirectory(list, 2, "").Candidates,
				}, shards)
				worst[replicas] = max(worst[replicas], a.most())
			})
		}
	}
	t.Logf("most shards of one searcher, %d on average: %d if the first replica is asked, %d if either may be", count/searchers, worst[1], worst[2])
	if bound := count/searchers*5/4 + 2; worst[2] > bound || worst[1] <= bound {
		t.Errorf("at most %d are allowed, and more happen without the second replica", bound)
	}
}

// TestHotShardIsShared: queries that come one at a time all go to the searcher that has the shard
// in memory; many at once are shared with the second holder, and with no other searcher.
func TestHotShardIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const queries = 64
		a := &asked{takes: time.Second, shards: map[string]int{}}
		f := fanout.Fanout{
			Policy: fanout.Policy{Replicas: 2}, Peers: peers(t, fanout.Shares{}),
			Candidates: (&world{searchers: 3}).candidates,
		}
		for range 5 {
			a.scatter(t, f, someShards(1))
		}
		if a.shards["s0"] != 5 {
			t.Errorf("one at a time: %v", a.shards)
		}
		a.shards = map[string]int{}
		var all sync.WaitGroup
		for range queries {
			all.Go(func() { a.scatter(t, f, someShards(1)) })
			synctest.Wait() // one after the other
		}
		all.Wait()
		if most := queries/2*5/4 + 1; a.shards["s0"] > most || a.shards["s0"] < queries/2 || a.shards["s0"]+a.shards["s1"] != queries {
			t.Errorf("at once: %v, at most %d for each", a.shards, most)
		}
	})
}

// TestCoverageHoweverBalanced: the coverage does not depend on which searcher is asked first.
func TestCoverageHoweverBalanced(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n, searchers := rapid.IntRange(0, 12).Draw(rt, "shards"), rapid.IntRange(0, 4).Draw(rt, "searchers")
		table := make(map[string]behaviour)
		for i := range searchers {
			refused := rapid.IntRange(0, 3).Draw(rt, "refuses") == 0
			for j := range n {
				table[fmt.Sprintf("s%d/%d", i, j)] = rapid.SampledFrom([]behaviour{answers, answers, corrupt, notCovered}).Draw(rt, "shard")
				if refused {
					table[fmt.Sprintf("s%d/%d", i, j)] = refuses
				}
			}
		}
		w := &world{tb: t, searchers: searchers, does: func(s string, d searchapi.Digest) behaviour { return table[fmt.Sprintf("%s/%d", s, d[0])] }}
		searched := 0
		for j := range n {
			for i := range searchers {
				if table[fmt.Sprintf("s%d/%d", i, j)] == answers {
					searched++
					break
				}
			}
		}
		replicas := rapid.IntRange(0, 5).Draw(rt, "replicas")
		var c *searchv1.Coverage
		synctest.Test(t, func(t *testing.T) { c = w.scatter(t.Context(), fanout.Policy{Replicas: replicas}, someShards(n)) })
		if int(c.Searched) != searched || len(w.found) != searched || int(c.Searched)+len(c.Uncovered) != n {
			rt.Fatalf("%d of %d shards can be searched; coverage %v", searched, n, c)
		}
	})
}

// TestOwnZoneIsAskedFirst: a router in a zone asks its searchers for what they hold, evenly, and others for the rest. One that is slow, or
// does not answer, is asked no more than without zones.
func TestOwnZoneIsAskedFirst(t *testing.T) {
	const searchers, zones, count = 9, 3, 600
	var list []*catalogv1.Searcher
	for i := range searchers {
		list = append(list, &catalogv1.Searcher{Id: fmt.Sprint("s", i), Address: "x", Zone: fmt.Sprint("z", i%zones)})
	}
	rng := testrun.Rand(t)
	shards := make([]searchapi.Shard, count)
	for i := range shards {
		for j := range shards[i].Digest {
			shards[i].Digest[j] = byte(rng.Uint32())
		}
	}
	ask := func(t *testing.T, zone string, takes func(id string) time.Duration) (at map[string]int, near int) {
		a := &asked{shards: map[string]int{}, takesOf: takes}
		f := fanout.Fanout{Policy: fanout.Policy{Replicas: 2}, Peers: peers(t, fanout.Shares{Hedges: 1}), Candidates: fanout.NewDirectory(list, 2, zone).Candidates}
		for range 40 { // until latencies are known
			a.scatter(t, f, shards)
		}
		a.mu.Lock()
		a.shards = map[string]int{}
		a.mu.Unlock()
		a.scatter(t, f, shards)
		for _, s := range list {
			if s.Zone == zone {
				near += a.shards[s.Id]
			}
		}
		return a.shards, near
	}
	usually := func(string) time.Duration { return 5 * time.Millisecond }
	synctest.Test(t, func(t *testing.T) {
		at, near := ask(t, "z1", usually)
		if near < count*60/100 || at["s1"] > near/3*5/4+2 || at["s4"] > near/3*5/4+2 || at["s7"] > near/3*5/4+2 {
			t.Errorf("%d of %d shards are asked of the own zone, %v", near, count, at)
		}
		if _, near := ask(t, "z9", usually); near != 0 {
			t.Errorf("a zone without searchers has answered for %d shards", near)
		}
		at, near = ask(t, "z1", func(id string) time.Duration {
			if id == "s4" {
				return time.Second
			}
			return 5 * time.Millisecond
		})
		if at["s4"] > count/searchers*5/4+2 || near < count*40/100 {
			t.Errorf("s4 is slow: %d of %d shards are asked of the own zone, %v", near, count, at)
		}
	})
}
