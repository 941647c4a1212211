package fanout_test

import (
	"context"
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/testrun"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
)

var fleetSize = flag.Int("searchers", 100, "how many searchers each query asks")

// The latency of a searcher's answers: the median, and the ratio of the 99th percentile to it. The
// ratio is from bench/results, for queries on Linux (rare: 0.979 ms to 1.55; common: 75.5 to 108).
const (
	answerMedian = 5 * time.Millisecond
	answerSpread = 1.5
	// stallMean is how long a searcher stands still when it does: for its
	// garbage collection, its disk, its neighbours.
	stallMean = 20 * answerMedian
	// frozenSearcher has no shard in common with the slow one.
	frozenSearcher = 50
	// sizeDeadline is the time of each query.
	sizeDeadline = 2 * time.Second
)

// trouble is what is wrong with the searchers of a simulation.
type trouble struct {
	name string
	// stalls is the share of answers that a stall delays.
	stalls float64
	// slow is how many times as long the first searcher takes.
	slow float64
	// frozen means that frozenSearcher never answers.
	frozen bool
}

var troubles = []trouble{
	{name: "no stalls", slow: 1},
	{name: "stalls .1 %", stalls: 0.001, slow: 1},
	{name: "stalls 1 %", stalls: 0.01, slow: 1},
	{name: "one slow 20x", slow: 20},
	{name: "one frozen", slow: 1, frozen: true},
	{name: "all of it", stalls: 0.01, slow: 20, frozen: true},
}

// takes draws how long a searcher takes for an answer.
func (t *trouble) takes(rng *rand.Rand, searcher int) time.Duration {
	if t.frozen && searcher == frozenSearcher {
		return time.Hour
	}
	// A log-normal distribution; 2.326 is the normal one's 99th percentile.
	took := float64(answerMedian) * math.Exp(rng.NormFloat64()*math.Log(answerSpread)/2.326)
	if searcher == 0 {
		took *= t.slow
	}
	if rng.Float64() < t.stalls {
		took += rng.ExpFloat64() * float64(stallMean)
	}
	return time.Duration(took)
}

// sized is the result of a simulation.
type sized struct {
	p50, p99, worst time.Duration
	// repeated is the share of calls that were hedges. complete is the share of queries that were
	// answered in full.
	repeated, complete float64
}

// simulate asks every searcher for two shards in each query, after a while in which it learns their
// latency.
func simulate(t *testing.T, trouble trouble, size, queries int, share float64) (s sized) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		rng := testrun.Locked(1)
		call := func(ctx context.Context, target fanout.Target, shards []searchapi.Shard) (reply, error) {
			calls.Add(1)
			id, err := strconv.Atoi(target.ID)
			if err != nil {
				return reply{}, err
			}
			select {
			case <-time.After(trouble.takes(rng, id)):
			case <-ctx.Done():
				return reply{}, status.FromContextError(ctx.Err()).Err()
			}
			account := searchapi.NewAccount(shards)
			for _, shard := range shards {
				account.Searched(shard.Digest)
			}
			return reply{Coverage: account.Coverage()}, nil
		}
		var shards []searchapi.Shard
		for i := range 2 * size {
			shards = append(shards, searchapi.Shard{Digest: searchapi.Digest{byte(i), byte(i >> 8), byte(i >> 16)}})
		}
		f := fanout.Fanout{Peers: peers(t, fanout.Shares{Hedges: share}), Candidates: func(d searchapi.Digest) []fanout.Target {
			// The two shards of a searcher have different replicas.
			i := int(d[0]) + int(d[1])<<8 + int(d[2])<<16
			return []fanout.Target{{ID: strconv.Itoa(i % size)}, {ID: strconv.Itoa((i%size + 1 + i/size) % size)}}
		}}
		var took []time.Duration
		complete := 0
		for i := range queries + queries/4 {
			if i == queries/4 {
				calls.Store(0)
			}
			account, start := searchapi.NewAccount(shards), time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), sizeDeadline)
			fanout.Scatter(ctx, f, shards, account, call, func([]searchapi.Digest) {})
			cancel()
			if i >= queries/4 {
				took = append(took, time.Since(start))
				if account.Coverage().Complete {
					complete++
				}
			}
		}
		slices.Sort(took)
		s = sized{
			p50: took[queries/2], p99: took[queries*99/100], worst: took[queries-1],
			repeated: float64(calls.Load())/float64(size*queries) - 1, complete: float64(complete) / float64(queries),
		}
	})
	return s
}

// TestFanOutAtSize shows how long queries of very many searchers take with and without hedges, in
// simulated time:
//
//	go test -run FanOutAtSize -v ./services/router/internal/fanout -searchers 1000
func TestFanOutAtSize(t *testing.T) {
	size, queries := *fleetSize, testrun.Rounds(200, 400) // with 100, the 99th percentile is the maximum, which means nothing
	t.Logf("%-14s %8s %10s %10s %10s %10s %9s", "", "hedges", "p50", "p99", "worst", "repeated", "complete")
	for _, trouble := range troubles {
		var took [2]sized
		for i, share := range []float64{0, 0.1} {
			s := simulate(t, trouble, size, queries, share)
			took[i] = s
			t.Logf("%-14s %8v %10v %10v %10v %9.1f%% %8.1f%%", trouble.name, share,
				s.p50.Round(100*time.Microsecond), s.p99.Round(100*time.Microsecond), s.worst.Round(100*time.Microsecond), 100*s.repeated, 100*s.complete)
		}
		troubled := trouble.stalls > 0 || trouble.slow > 1
		if troubled && took[1].p99 > took[0].p99 || took[1].repeated > 0.12 || took[1].complete < took[0].complete {
			t.Errorf("%s: hedges help nothing: %+v, without %+v", trouble.name, took[1], took[0])
		}
	}
}
