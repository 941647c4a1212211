package fanout_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
)

type reply = fanout.Reply[[]searchapi.Digest]

// behaviour is what a searcher does with a shard.
type behaviour int

const (
	answers behaviour = iota
	partly
	corrupt
	notCovered
	refuses // the whole call
	ends    // the whole call, by cancelling it
	hangs   // the whole call
	lies    // its coverage is of something else
)

// world is some searchers and what each does with each shard.
type world struct {
	tb        testing.TB
	searchers int
	does      func(searcher string, d searchapi.Digest) behaviour
	// found counts the results of a shard that were accepted.
	found map[searchapi.Digest]int
}

func (w *world) candidates(searchapi.Digest) (targets []fanout.Target) {
	for i := range w.searchers {
		targets = append(targets, fanout.Target{ID: fmt.Sprintf("s%d", i), Address: "x"})
	}
	return targets
}

// peers returns Peers without any knowledge. Without shares, failed calls are repeated without
// limit and none is hedged.
func peers(tb testing.TB, shares fanout.Shares) *fanout.Peers {
	tb.Helper()
	return newPeers(tb, shares, func(context.Context, fanout.Target) error { return nil })
}

func newPeers(tb testing.TB, shares fanout.Shares, ping fanout.Ping) *fanout.Peers {
	tb.Helper()
	metrics := fanout.NewMetrics(prometheus.NewRegistry())
	shares.Retries = cmp.Or(shares.Retries, 100)
	return fanout.NewPeers(shares, ping, metrics, slog.New(slog.DiscardHandler))
}

func (w *world) fanout(p fanout.Policy) fanout.Fanout {
	return fanout.Fanout{Policy: p, Peers: peers(w.tb, fanout.Shares{}), Candidates: w.candidates}
}

// call plays a searcher. The result for a shard is its digest.
func (w *world) call(ctx context.Context, t fanout.Target, shards []searchapi.Shard) (reply, error) {
	account := searchapi.NewAccount(shards)
	var found []searchapi.Digest
	for _, s := range shards {
		switch w.does(t.ID, s.Digest) {
		case refuses:
			return reply{}, status.Error(codes.Unavailable, "refused")
		case ends:
			return reply{}, status.Error(codes.Canceled, "shutting down")
		case hangs:
			<-ctx.Done()
			return reply{}, status.FromContextError(ctx.Err()).Err()
		case lies:
			return reply{Value: found, Coverage: &searchv1.Coverage{Requested: 77}}, nil
		case answers:
			account.Searched(s.Digest)
			found = append(found, s.Digest)
		case partly:
			account.InPart(s.Digest, "half")
			found = append(found, s.Digest)
		case corrupt:
			account.Uncovered(s.Digest, searchv1.UncoveredReason_UNCOVERED_REASON_CORRUPT, "damaged")
		case notCovered:
			account.Uncovered(s.Digest, searchv1.UncoveredReason_UNCOVERED_REASON_NOT_COVERED, "not here")
		}
	}
	return reply{Value: found, Coverage: account.Coverage()}, nil
}

func (w *world) scatter(ctx context.Context, p fanout.Policy, shards []searchapi.Shard) *searchv1.Coverage {
	account := searchapi.NewAccount(shards)
	w.found = make(map[searchapi.Digest]int)
	fanout.Scatter(ctx, w.fanout(p), shards, account, w.call, func(found []searchapi.Digest) {
		for _, d := range found {
			w.found[d]++
		}
	})
	return account.Coverage()
}

func someShards(n int) []searchapi.Shard {
	shards := make([]searchapi.Shard, n)
	for i := range shards {
		shards[i] = searchapi.Shard{Digest: searchapi.Digest{byte(i)}, Repos: searchapi.AllRepos()}
	}
	return shards
}

// TestCoverageIsTrue lets searchers do random things and holds the account
// against what they did: a shard is searched exactly if a searcher answered for
// it before any hung on it, its results came once, and every other one is named.
func TestCoverageIsTrue(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n, searchers := rapid.IntRange(0, 8).Draw(rt, "shards"), rapid.IntRange(0, 3).Draw(rt, "searchers")
		table := make(map[string]behaviour)
		for i := range searchers {
			whole := rapid.SampledFrom([]behaviour{answers, answers, refuses, ends, hangs, lies}).Draw(rt, "searcher")
			for j := range n {
				b := rapid.SampledFrom([]behaviour{answers, partly, corrupt, notCovered}).Draw(rt, "shard")
				if whole != answers {
					b = whole
				}
				table[fmt.Sprintf("s%d/%d", i, j)] = b
			}
		}
		w := &world{tb: t, searchers: searchers, does: func(s string, d searchapi.Digest) behaviour { return table[fmt.Sprintf("%s/%d", s, d[0])] }}
		var c *searchv1.Coverage
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			c = w.scatter(ctx, fanout.Policy{CoverWait: 300 * time.Millisecond, Pause: 10 * time.Millisecond}, someShards(n))
		})
		checkTruth(rt, w, c, n, table)
	})
}

func checkTruth(t *rapid.T, w *world, c *searchv1.Coverage, n int, table map[string]behaviour) {
	if c.Requested != uint64(n) || c.Requested != c.Searched+c.Pruned+c.Failed+c.NotReached || uint64(len(c.Uncovered)) != c.Failed+c.NotReached {
		t.Fatalf("does not add up: %v", c)
	}
	uncovered := make(map[byte]searchv1.UncoveredReason)
	for _, u := range c.Uncovered {
		uncovered[u.Digest[0]] = u.Reason
		if gave := w.found[searchapi.Digest(u.Digest)] > 0; u.InPart != gave {
			t.Fatalf("shard %d gave results: %t, in part: %t, %s", u.Digest[0], gave, u.InPart, u.Message)
		}
	}
	for j := range n {
		want, results := outcomeOf(w.searchers, j, table)
		if got := uncovered[byte(j)]; !slices.Contains(want, got) {
			t.Fatalf("shard %d is %v, want one of %v", j, got, want)
		}
		if w.found[searchapi.Digest{byte(j)}] != results {
			t.Fatalf("shard %d gave %d results, want %d", j, w.found[searchapi.Digest{byte(j)}], results)
		}
	}
	if c.Complete != (len(uncovered) == 0) {
		t.Fatalf("complete is %v with %d uncovered", c.Complete, len(uncovered))
	}
}

// outcomeOf follows one shard from searcher to searcher.
func outcomeOf(searchers, shard int, table map[string]behaviour) (reasons []searchv1.UncoveredReason, results int) {
	const prefix = "UNCOVERED_REASON_"
	reason := func(name string) searchv1.UncoveredReason {
		return searchv1.UncoveredReason(searchv1.UncoveredReason_value[prefix+name])
	}
	for i := range searchers {
		switch table[fmt.Sprintf("s%d/%d", i, shard)] {
		case answers:
			return []searchv1.UncoveredReason{0}, 1
		case partly:
			return []searchv1.UncoveredReason{reason("DEADLINE")}, 1
		case hangs:
			return []searchv1.UncoveredReason{reason("DEADLINE")}, 0
		case corrupt:
			reasons = append(reasons, reason("CORRUPT"))
		case notCovered:
			reasons = append(reasons, reason("NOT_COVERED"))
		case refuses:
			reasons = append(reasons, reason("UNREACHABLE"))
		case lies, ends:
			reasons = append(reasons, reason("ERROR"))
		}
	}
	if len(reasons) == 0 {
		reasons = append(reasons, reason("NO_SEARCHER"))
	}
	return reasons, 0
}

// TestHungSearcherCostsOnlyItsShards: what others answered is there at the
// deadline, and not a moment later.
func TestHungSearcherCostsOnlyItsShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{tb: t, searchers: 1, does: func(_ string, d searchapi.Digest) behaviour { return answers }}
		shards := someShards(4)
		candidates := func(d searchapi.Digest) []fanout.Target {
			return []fanout.Target{{ID: fmt.Sprint("s", d[0]%2)}}
		}
		w.does = func(s string, _ searchapi.Digest) behaviour {
			if s == "s1" {
				return hangs
			}
			return answers
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		account := searchapi.NewAccount(shards)
		var found []searchapi.Digest
		fanout.Scatter(ctx, fanout.Fanout{Peers: peers(t, fanout.Shares{}), Candidates: candidates}, shards, account, w.call, func(f []searchapi.Digest) { found = append(found, f...) })
		if took := time.Since(start); took != 50*time.Millisecond {
			t.Errorf("took %v", took)
		}
		if c := account.Coverage(); c.Searched != 2 || c.NotReached != 2 || len(found) != 2 {
			t.Errorf("coverage %v, %d results", c, len(found))
		}
	})
}

// TestDeafSearcher: a call that does not even end with its context is left behind.
func TestDeafSearcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		call := func(context.Context, fanout.Target, []searchapi.Shard) (reply, error) {
			<-release
			return reply{}, nil
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		account := searchapi.NewAccount(someShards(1))
		fanout.Scatter(ctx, (&world{tb: t, searchers: 1}).fanout(fanout.Policy{}), someShards(1), account, call, func([]searchapi.Digest) {})
		if took := time.Since(start); took != 50*time.Millisecond || account.Coverage().NotReached != 1 {
			t.Errorf("took %v, coverage %v", took, account.Coverage())
		}
		close(release) // its goroutine must end: synctest waits for it
	})
}

func TestWaitsForShardsThatAreLoading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		w := &world{tb: t, searchers: 2, does: func(string, searchapi.Digest) behaviour {
			if time.Since(start) < 100*time.Millisecond {
				return notCovered
			}
			return answers
		}}
		policy := fanout.Policy{CoverWait: time.Second, Pause: 10 * time.Millisecond}
		if c := w.scatter(t.Context(), policy, someShards(3)); !c.Complete {
			t.Errorf("coverage %v", c)
		}
		if took := time.Since(start); took > 200*time.Millisecond {
			t.Errorf("waited for %v", took)
		}
		w.does = func(string, searchapi.Digest) behaviour { return notCovered }
		start = time.Now()
		if c := w.scatter(t.Context(), policy, someShards(3)); c.Failed != 3 || c.Uncovered[0].Reason != searchv1.UncoveredReason_UNCOVERED_REASON_NOT_COVERED {
			t.Errorf("coverage %v", c)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("waited for %v", took)
		}
	})
}

// TestSearcherSeesTheDeadlineFirst: an error that a searcher returns for its own deadline, a moment
// before the router's, is not a failure. No other searcher could answer in that moment.
func TestSearcherSeesTheDeadlineFirst(t *testing.T) {
	for _, code := range []codes.Code{codes.DeadlineExceeded, codes.Canceled} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			call := func(context.Context, fanout.Target, []searchapi.Shard) (reply, error) {
				asked++
				time.Sleep(99 * time.Millisecond)
				return reply{}, status.Error(code, "its clock is ahead")
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			account := searchapi.NewAccount(someShards(1))
			fanout.Scatter(ctx, (&world{tb: t, searchers: 2}).fanout(fanout.Policy{}), someShards(1), account, call, func([]searchapi.Digest) {})
			if c := account.Coverage(); c.NotReached != 1 || asked != 1 {
				t.Errorf("%s: %d asked, coverage %v", code, asked, c)
			}
		})
	}
}

// TestNoTimeLeft: nobody is asked when the time is over before the first call.
func TestNoTimeLeft(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := &world{tb: t, searchers: 2, does: func(string, searchapi.Digest) behaviour { return answers }}
	c := w.scatter(ctx, fanout.Policy{}, someShards(3))
	if c.NotReached != 3 || c.Uncovered[0].Reason != searchv1.UncoveredReason_UNCOVERED_REASON_DEADLINE {
		t.Errorf("coverage %v", c)
	}
}

func TestLargePlansAreCut(t *testing.T) {
	var shards []searchapi.Shard
	for i := range 4500 {
		shards = append(shards, searchapi.Shard{Digest: searchapi.Digest{byte(i), byte(i >> 8)}})
	}
	largest, calls := 0, make(chan int, 10)
	w := &world{tb: t, searchers: 1, does: func(string, searchapi.Digest) behaviour { return answers }}
	call := func(ctx context.Context, target fanout.Target, part []searchapi.Shard) (reply, error) {
		calls <- len(part)
		return w.call(ctx, target, part)
	}
	account := searchapi.NewAccount(shards)
	fanout.Scatter(t.Context(), w.fanout(fanout.Policy{}), shards, account, call, func([]searchapi.Digest) {})
	close(calls)
	for n := range calls {
		largest = max(largest, n)
	}
	if c := account.Coverage(); !c.Complete || c.Searched != 4500 || largest > 2000 {
		t.Errorf("largest call %d, coverage %v", largest, c)
	}
}

// TestShardTooLargeToAskFor: the coverage names the setting where one shard alone makes a request
// too large, since that cannot be divided.
func TestShardTooLargeToAskFor(t *testing.T) {
	many := searchapi.Shard{Digest: searchapi.Digest{1}, Repos: searchapi.AllRepos(), Overlays: []searchapi.Overlay{{Hidden: make([]byte, 17<<20)}}}
	for _, shards := range [][]searchapi.Shard{{many}, someShards(1)} {
		w := &world{tb: t, searchers: 2}
		call := func(context.Context, fanout.Target, []searchapi.Shard) (reply, error) {
			return reply{}, status.Error(codes.ResourceExhausted, "grpc: received message larger than max")
		}
		account := searchapi.NewAccount(shards)
		fanout.Scatter(t.Context(), w.fanout(fanout.Policy{}), shards, account, call, func([]searchapi.Digest) {})
		message := account.Coverage().Uncovered[0].Message
		if explained := strings.Contains(message, "one shard has up to 17 MiB") && strings.Contains(message, "narrow the query"); explained != (len(shards[0].Overlays) > 0) {
			t.Errorf("a shard with %d overlays: %s", len(shards[0].Overlays), message)
		}
	}
}
