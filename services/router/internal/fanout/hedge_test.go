package fanout_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/testrun"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
)

const usual = 5 * time.Millisecond

// cluster is searchers that take their time. At first all of them hold all shards. A shard's first
// candidate is chosen by its digest.
type cluster struct {
	fanout.Fanout
	size int
	// takes returns how long a searcher takes for an answer, and its error.
	takes func(searcher int) (time.Duration, error)
	// holds reports whether a searcher holds a shard.
	holds func(fanout.Target, searchapi.Digest) bool
	calls []atomic.Int64
	// held counts the replies that are neither accepted nor dropped.
	held atomic.Int64
}

func newCluster(t testing.TB, size int, shares fanout.Shares) *cluster {
	c := &cluster{size: size, calls: make([]atomic.Int64, size)}
	c.Fanout = fanout.Fanout{Peers: newPeers(t, shares, c.ping), Candidates: func(d searchapi.Digest) (targets []fanout.Target) {
		// Two shards with the same first candidate have different second ones.
		step := 1 + int(d[0])/size%max(size-1, 1)
		for i := range min(size, 3) {
			targets = append(targets, fanout.Target{ID: fmt.Sprint((int(d[0]) + i*step) % size), Address: "x"})
		}
		return targets
	}}
	c.takes = func(int) (time.Duration, error) { return usual, nil }
	c.holds = func(fanout.Target, searchapi.Digest) bool { return true }
	return c
}

// ping is answered by searchers that are slow, and not by those that are silent.
func (c *cluster) ping(ctx context.Context, t fanout.Target) error {
	took, err := c.takes(int(t.ID[0] - '0'))
	if took < silent {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// silent is how long a searcher takes that never answers.
const silent = time.Hour

func (c *cluster) call(ctx context.Context, t fanout.Target, shards []searchapi.Shard) (reply, error) {
	id := int(t.ID[0] - '0')
	c.calls[id].Add(1)
	took, err := c.takes(id)
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return reply{}, status.FromContextError(ctx.Err()).Err()
	}
	if err != nil {
		return reply{}, err
	}
	account := searchapi.NewAccount(shards)
	var found []searchapi.Digest
	for _, s := range shards {
		if !c.holds(t, s.Digest) {
			account.Uncovered(s.Digest, searchv1.UncoveredReason_UNCOVERED_REASON_NOT_COVERED, "")
			continue
		}
		account.Searched(s.Digest)
		found = append(found, s.Digest)
	}
	c.held.Add(1)
	return reply{Value: found, Coverage: account.Coverage(), Drop: sync.OnceFunc(func() { c.held.Add(-1) })}, nil
}

// search asks for n shards and compares the results with the account: those of each searched shard
// came once.
func (c *cluster) search(t testing.TB, n int, deadline time.Duration) (*searchv1.Coverage, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	shards, start := someShards(n), time.Now()
	account, found := searchapi.NewAccount(shards), make(map[searchapi.Digest]int)
	fanout.Scatter(ctx, c.Fanout, shards, account, c.call, func(digests []searchapi.Digest) {
		c.held.Add(-1)
		for _, d := range digests {
			found[d]++
		}
	})
	coverage := account.Coverage()
	if len(found) != int(coverage.Searched) {
		t.Errorf("results of %d shards, coverage %v", len(found), coverage)
	}
	for d, times := range found {
		if times != 1 {
			t.Errorf("the results of shard %d came %d times", d[0], times)
		}
	}
	return coverage, time.Since(start)
}

func (c *cluster) warm(t testing.TB, n int) {
	t.Helper()
	for range 50 {
		if coverage, took := c.search(t, n, time.Second); !coverage.Complete || took != usual {
			t.Fatalf("at first: %v after %v", coverage, took)
		}
	}
}

// inBubble runs f in a bubble of time. What it reports fails rt, which then prints what it drew: a failure of the bubble's own test would end
// rt before that.
func inBubble(t *testing.T, rt *rapid.T, f func(testing.TB)) {
	var said complaints
	synctest.Test(t, func(t *testing.T) {
		said.TB = t
		f(&said)
	})
	for _, text := range said.texts {
		rt.Error(text)
	}
}

// complaints keeps what a test reports. It is for one goroutine.
type complaints struct {
	testing.TB

	texts []string
}

func (c *complaints) Errorf(format string, args ...any) {
	c.texts = append(c.texts, fmt.Sprintf(format, args...))
}

// Fatalf ends the goroutine.
func (c *complaints) Fatalf(format string, args ...any) {
	c.Errorf(format, args...)
	runtime.Goexit()
}

// TestSlowSearcherIsHedged: one searcher of four takes a second. Its shards come from the three
// others, all of which must answer, soon after its usual latency. Without hedges they come a second
// later.
func TestSlowSearcherIsHedged(t *testing.T) {
	for share, most := range map[float64]time.Duration{0.1: 4 * usual, 0: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 4, fanout.Shares{Hedges: share})
			c.warm(t, 36)
			c.takes = func(searcher int) (time.Duration, error) {
				if searcher == 1 {
					return time.Second, nil
				}
				return usual, nil
			}
			coverage, took := c.search(t, 36, 5*time.Second)
			if !coverage.Complete || took > most || share == 0 && took < most {
				t.Errorf("with a share of %v: %v, %v", share, took, coverage)
			}
		})
	}
}

// TestHedgesKeepToTheirBudget: when answers take very different times, every twentieth call would
// be hedged. The share of hedges stays within the budget.
func TestHedgesKeepToTheirBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 4, fanout.Shares{Hedges: 0.01})
		c.warm(t, 4)
		rng := testrun.Locked(1)
		c.takes = func(int) (time.Duration, error) {
			return usual + time.Duration(rng.ExpFloat64()*float64(4*usual)), nil
		}
		before := c.total()
		const queries = 2000
		for range queries {
			if coverage, _ := c.search(t, 4, time.Second); !coverage.Complete {
				t.Fatalf("coverage %v", coverage)
			}
		}
		first := 4.0 * queries
		hedges := float64(c.total()-before) - first
		if hedges == 0 || hedges > 0.01*first+20 {
			t.Errorf("%.0f hedges of %.0f calls", hedges, first)
		}
	})
}

func (c *cluster) total() (sum int64) {
	for i := range c.calls {
		sum += c.calls[i].Load()
	}
	return sum
}

// TestRetriesKeepToTheirBudget: when every searcher fails, retries must not make it worse.
func TestRetriesKeepToTheirBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 4, fanout.Shares{Retries: 0.1})
		c.takes = func(int) (time.Duration, error) { return usual, status.Error(codes.Unavailable, "down") }
		const queries = 1000
		for range queries {
			if coverage, _ := c.search(t, 4, time.Second); coverage.Failed != 4 {
				t.Fatalf("coverage %v", coverage)
			}
		}
		first := 4.0 * queries
		if retries := float64(c.total()) - first; retries == 0 || retries > 0.1*first+20 {
			t.Errorf("%.0f retries of %.0f calls", retries, first)
		}
	})
}

// many runs atOnce queries at once, and then one every hundredth of a second for a while. Every
// answer must be complete. It returns the longest time that a query took.
func (c *cluster) many(t testing.TB, atOnce int, deadline, during time.Duration) (worst time.Duration) {
	t.Helper()
	var mu sync.Mutex
	var underWay sync.WaitGroup
	incomplete, end := 0, time.Now().Add(during)
	ask := func() {
		coverage, took := c.search(t, 9, deadline)
		mu.Lock()
		defer mu.Unlock()
		worst = max(worst, took)
		if !coverage.Complete {
			incomplete++
		}
	}
	for range atOnce {
		underWay.Go(ask)
	}
	for ; time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		underWay.Go(ask)
	}
	underWay.Wait()
	if incomplete > 0 {
		t.Errorf("%d answers are incomplete", incomplete)
	}
	return worst
}

// TestBrokenConnection: a connection that breaks fails all calls under way on it, however many, and
// every one of them is answered by another searcher. While it stays broken, hardly any later query
// notices.
func TestBrokenConnection(t *testing.T) {
	for _, atOnce := range []int{1, 200} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 3, fanout.Shares{Retries: 0.001})
			c.warm(t, 9)
			c.takes = func(searcher int) (time.Duration, error) {
				if searcher == 2 {
					return usual / 2, fmt.Errorf("%w: %w", fanout.ErrDisconnected, status.Error(codes.Unavailable, "broken pipe"))
				}
				return usual, nil
			}
			before := c.calls[2].Load()
			if worst := c.many(t, atOnce, time.Second, 10*time.Second); worst > 2*usual {
				t.Errorf("an answer took %v", worst)
			}
			// The calls of the first moment, and then at most one probe every 1.5 seconds.
			if calls := c.calls[2].Load() - before; calls > int64(atOnce)+7 {
				t.Errorf("of %d queries at once %d calls to a searcher that is not reached", atOnce, calls)
			}
		})
	}
}

// TestSlowIsNotSilent: a searcher that takes much longer than usual has not stopped. That holds
// even if queries come one at a time, so that it answers no other query meanwhile. Queries wait for
// it, and later ones ask it again.
func TestSlowIsNotSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, fanout.Shares{})
		c.warm(t, 9)
		c.takes = func(searcher int) (time.Duration, error) {
			if searcher == 2 {
				return 10 * time.Second, nil
			}
			return usual, nil
		}
		before := c.total()
		const queries = 20
		for range queries {
			if coverage, _ := c.search(t, 9, time.Minute); !coverage.Complete {
				t.Fatalf("coverage %v", coverage)
			}
		}
		if calls := c.total() - before; calls != 3*queries {
			t.Errorf("%d calls, want one to each searcher for %d queries", calls, queries)
		}
	})
}

// TestBreaker: a searcher that fails, or is silent, soon gets probes alone, so that no query waits
// for it. When it is back it gets its shards again.
func TestBreaker(t *testing.T) {
	for name, trouble := range map[string]struct {
		took time.Duration
		err  error
	}{
		"fails":               {0, status.Error(codes.Unavailable, "connection refused")},
		"is silent":           {silent, nil},
		"has another clock":   {0, status.Error(codes.Unauthenticated, "the seal was good until an hour ago; do the clocks differ?")},
		"knows other routers": {0, status.Error(codes.PermissionDenied, "the certificate is not a router's")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 3, fanout.Shares{Hedges: 0.1})
				c.warm(t, 9)
				c.takes = func(searcher int) (time.Duration, error) {
					if searcher == 2 {
						return trouble.took, trouble.err
					}
					return usual, nil
				}
				for range 20 {
					c.search(t, 9, 250*time.Millisecond)
				}
				before := c.calls[2].Load()
				for range 200 { // a second, in which no breaker half-opens
					if coverage, took := c.search(t, 9, 250*time.Millisecond); !coverage.Complete || took > usual {
						t.Fatalf("%v after %v", coverage, took)
					}
				}
				if probes := c.calls[2].Load() - before; probes != 0 {
					t.Errorf("%d calls to a searcher whose breaker is open", probes)
				}
				c.takes = func(int) (time.Duration, error) { return usual, nil }
				time.Sleep(10 * time.Second)
				before = c.calls[2].Load()
				for range 20 {
					c.search(t, 9, time.Second)
				}
				if calls := c.calls[2].Load() - before; calls != 20 {
					t.Errorf("%d calls of 20 queries to a searcher that is back", calls)
				}
			})
		})
	}
}

// TestOnlySearcherIsAskedWhateverItsBreaker: there is nobody else to ask.
func TestOnlySearcherIsAskedWhateverItsBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, fanout.Shares{})
		c.takes = func(int) (time.Duration, error) { return 0, status.Error(codes.Internal, "bug") }
		for range 20 {
			c.search(t, 1, time.Second)
		}
		c.takes = func(int) (time.Duration, error) { return usual, nil }
		if coverage, _ := c.search(t, 1, time.Second); !coverage.Complete {
			t.Errorf("coverage %v", coverage)
		}
	})
}

// TestOnlySearcherIsWaitedFor: a searcher that is slow is neither hedged nor pinged if nobody else has its shard.
func TestOnlySearcherIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, fanout.Shares{Hedges: 1})
		var pings atomic.Int64
		c.Peers = newPeers(t, fanout.Shares{Hedges: 1}, func(context.Context, fanout.Target) error {
			pings.Add(1)
			return nil
		})
		c.warm(t, 3)
		c.takes = func(int) (time.Duration, error) { return 10 * time.Second, nil }
		before := c.total()
		if coverage, _ := c.search(t, 3, time.Minute); !coverage.Complete || c.total()-before != 1 || pings.Load() > 0 {
			t.Errorf("%d calls, %d pings, coverage %v", c.total()-before, pings.Load(), coverage)
		}
	})
}

// TestAccountUnderHedging lets searchers be late, fail, answer at the same
// moment or never, with every budget: the account adds up, each result comes
// once, nothing is later than the deadline, and each reply is accepted or dropped.
func TestAccountUnderHedging(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size, n := rapid.IntRange(1, 5).Draw(rt, "searchers"), rapid.IntRange(1, 30).Draw(rt, "shards")
		shares := fanout.Shares{
			Hedges:  rapid.SampledFrom([]float64{0, 0.1, 10}).Draw(rt, "hedges"),
			Retries: rapid.SampledFrom([]float64{0.01, 10}).Draw(rt, "retries"),
		}
		seed := rapid.Uint64().Draw(rt, "seed")
		inBubble(t, rt, func(t testing.TB) {
			random := rand.New(rand.NewPCG(seed, 0))
			c := newCluster(t, size, shares)
			c.warm(t, n)
			var script [200][5]time.Duration
			var fails [200][5]error
			for i := range script {
				for s := range script[i] {
					script[i][s] = []time.Duration{0, usual, 3 * usual, 10 * usual, 20 * usual, time.Hour}[random.IntN(6)]
					if random.IntN(5) == 0 {
						fails[i][s] = status.Error([]codes.Code{codes.Unavailable, codes.Canceled, codes.DeadlineExceeded}[random.IntN(3)], "gone")
					}
				}
			}
			var turn atomic.Int64
			c.takes = func(searcher int) (time.Duration, error) {
				i := turn.Add(1) % int64(len(script))
				return script[i][searcher], fails[i][searcher]
			}
			for range 20 {
				const deadline = 20 * usual
				coverage, took := c.search(t, n, deadline)
				if coverage.Requested != uint64(n) || coverage.Requested != coverage.Searched+coverage.Failed+coverage.NotReached || took > deadline {
					t.Errorf("coverage %v after %v", coverage, took)
				}
				if synctest.Wait(); c.held.Load() != 0 {
					t.Errorf("%d replies are neither accepted nor dropped", c.held.Load())
				}
			}
		})
	})
}

// TestHedgesCountAtTheDeadline: results of hedges that came in time are used, although one hedge is
// as slow as the original call.
func TestHedgesCountAtTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 4, fanout.Shares{Hedges: 0.1})
		c.warm(t, 36)
		c.takes = func(searcher int) (time.Duration, error) {
			if searcher == 1 || searcher == 2 {
				return time.Hour, nil
			}
			return usual, nil
		}
		const early = time.Second / 2 // before both are found silent
		coverage, took := c.search(t, 36, early)
		// Nine shards have searcher 1 first and nine have 2; a third of each is at the other one next.
		if coverage.Searched != 36-6 || coverage.NotReached != 6 || took != early {
			t.Errorf("%v after %v", coverage, took)
		}
	})
}

// TestShardsAreFoundWhoeverHoldsThem: each shard is held by some of its candidates, which answer when
// they like. Every answer is complete, without budget for retries and without a second round:
// searchers that do not hold a shard have not failed.
func TestShardsAreFoundWhoeverHoldsThem(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		size, n := rapid.IntRange(2, 5).Draw(rt, "searchers"), rapid.IntRange(1, 30).Draw(rt, "shards")
		const none = -1 // newPeers takes 0 for its default
		shares := fanout.Shares{Hedges: rapid.SampledFrom([]float64{0.1, 10}).Draw(rt, "hedges"), Retries: none}
		seed := rapid.Uint64().Draw(rt, "seed")
		inBubble(t, rt, func(t testing.TB) {
			random := testrun.Locked(seed)
			c := newCluster(t, size, shares)
			all := c.Candidates
			c.Candidates = func(d searchapi.Digest) []fanout.Target {
				if d[0]%4 == 3 { // no other searcher can be asked
					return all(d)[:1]
				}
				return all(d)
			}
			c.warm(t, n)
			c.takes = func(int) (time.Duration, error) {
				return []time.Duration{0, usual, 3 * usual, 10 * usual, time.Second}[random.IntN(5)], nil
			}
			for range 50 {
				holders := make(map[searchapi.Digest]fanout.Target)
				for _, s := range someShards(n) {
					candidates := c.Candidates(s.Digest)
					holders[s.Digest] = candidates[random.IntN(len(candidates))]
				}
				also := random.IntN(3)
				c.holds = func(target fanout.Target, d searchapi.Digest) bool {
					return holders[d] == target || also > 0 && (int(d[0])+int(target.ID[0]))%(also+1) == 0
				}
				if coverage, _ := c.search(t, n, time.Minute); !coverage.Complete {
					t.Errorf("coverage %v", coverage)
				}
			}
		})
	})
}
