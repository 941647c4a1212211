package fanout_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
)

// ownEnds are the codes of calls that a searcher ended itself, but which look like a passed deadline.
var ownEnds = []codes.Code{codes.Canceled, codes.DeadlineExceeded}

// TestSearcherEndsCallsItself: a searcher that cancels its calls, since it shuts down or has less
// time than the router, has failed. Others answer in its place, and soon it gets probes alone.
func TestSearcherEndsCallsItself(t *testing.T) {
	for _, code := range ownEnds {
		for _, after := range []time.Duration{0, usual, 4 * usual} {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 3, fanout.Shares{Hedges: 0.1, Retries: 0.1})
				c.warm(t, 9)
				c.takes = func(searcher int) (time.Duration, error) {
					if searcher == 2 {
						return after, status.Error(code, "shutting down")
					}
					return usual, nil
				}
				before := c.calls[2].Load()
				for range 100 {
					if coverage, took := c.search(t, 9, time.Minute); !coverage.Complete || took > after+usual {
						t.Fatalf("%s after %v: %v after %v", code, after, coverage, took)
					}
				}
				if calls := c.calls[2].Load() - before; calls > 20 {
					t.Errorf("%s after %v: %d calls of 100 queries to a searcher that ends all of them", code, after, calls)
				}
			})
		}
	}
}

// TestNobodyElseToAsk: the only searcher ends its calls itself. That is a failure and not a passed
// deadline, so a caller that needs a complete answer can retry.
func TestNobodyElseToAsk(t *testing.T) {
	for _, code := range ownEnds {
		call := func(context.Context, fanout.Target, []searchapi.Shard) (reply, error) {
			return reply{}, status.Error(code, "shutting down")
		}
		account := searchapi.NewAccount(someShards(1))
		fanout.Scatter(t.Context(), (&world{tb: t, searchers: 1}).fanout(fanout.Policy{}), someShards(1), account, call, func([]searchapi.Digest) {})
		const want = "searcher s0: ended the call before its deadline"
		if c := account.Coverage(); c.Failed != 1 || c.Uncovered[0].Message != want {
			t.Errorf("%s: %v", code, c)
		}
	}
}

// TestNoTurnInALaterRound: an earlier round of the query has searched a shard. In a later round the
// time is over before any searcher is asked for it, so it is not reached.
func TestNoTurnInALaterRound(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	account := searchapi.NewAccount(someShards(2))
	account.Searched(someShards(2)[0].Digest)
	w := &world{tb: t, searchers: 1}
	fanout.Scatter(ctx, w.fanout(fanout.Policy{}), someShards(2), account, w.call, func([]searchapi.Digest) {})
	if c := account.Coverage(); c.Complete || c.NotReached != 2 {
		t.Errorf("%v", c)
	}
}

// TestNobodyIsAskedAfterTheEnd: when the time of a query is over, no searcher is asked for the remaining
// shards, and the account names them.
func TestNobodyIsAskedAfterTheEnd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	account := searchapi.NewAccount(someShards(2))
	fanout.Scatter(ctx, (&world{tb: t, searchers: 2}).fanout(fanout.Policy{}), someShards(2), account,
		func(context.Context, fanout.Target, []searchapi.Shard) (reply, error) {
			t.Error("a searcher was asked")
			return reply{}, nil
		}, func([]searchapi.Digest) {})
	c := account.Coverage()
	if c.NotReached != 2 {
		t.Errorf("%v", c)
	}
	for _, u := range c.Uncovered {
		if u.Message != searchapi.NoTurn {
			t.Errorf("%q, want %q", u.Message, searchapi.NoTurn)
		}
	}
}
