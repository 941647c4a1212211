package fanout_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
)

// TestSilentSearcher: many queries are under way when a searcher stops, far more than the budget of
// hedges covers. The other replicas answer all of them in full and in time. So they do in the next
// ten seconds, in which its breaker lets probes through.
func TestSilentSearcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, fanout.Shares{Hedges: 0.0001})
		c.warm(t, 9)
		c.takes = func(searcher int) (time.Duration, error) {
			if searcher == 2 {
				return silent, nil
			}
			return usual, nil
		}
		if worst := c.many(t, 200, 2*time.Second, 10*time.Second); worst > time.Second {
			t.Errorf("an answer took %v", worst)
		}
	})
}

// TestStandInsThatWereAway: a searcher is silent while the breakers of all others
// are still open, since they were away for a moment. They are asked all the same,
// now that nobody else is left, and answer.
func TestStandInsThatWereAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, fanout.Shares{Hedges: 0.0001})
		c.warm(t, 9)
		c.takes = func(searcher int) (time.Duration, error) {
			if searcher != 2 {
				return 0, fmt.Errorf("%w: %w", fanout.ErrDisconnected, status.Error(codes.Unavailable, "broken pipe"))
			}
			return usual, nil
		}
		c.search(t, 9, time.Second)
		c.takes = func(searcher int) (time.Duration, error) {
			if searcher == 2 {
				return silent, nil
			}
			return usual, nil
		}
		if coverage, took := c.search(t, 9, 1500*time.Millisecond); !coverage.Complete {
			t.Errorf("%v after %v", coverage, took)
		}
	})
}

// TestZoneIsSilent: all searchers of a zone are silent at once while the breaker of the one elsewhere is still open, since
// it was away for a moment. It is asked, and not those that are known to be silent in place of each other.
func TestZoneIsSilent(t *testing.T) {
	for elsewhere := range 3 {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 3, fanout.Shares{Hedges: 0.1})
			c.warm(t, 9)
			c.takes = func(searcher int) (time.Duration, error) {
				if searcher == elsewhere {
					return 0, fmt.Errorf("%w: %w", fanout.ErrDisconnected, status.Error(codes.Unavailable, "broken pipe"))
				}
				return usual, nil
			}
			c.search(t, 9, time.Second)
			c.takes = func(searcher int) (time.Duration, error) {
				if searcher != elsewhere {
					return silent, nil
				}
				return usual, nil
			}
			if coverage, took := c.search(t, 9, 4*time.Second); !coverage.Complete || took > 2*time.Second {
				t.Errorf("%v after %v", coverage, took)
			}
		})
	}
}

// TestLastHopeIsWaitedFor: a searcher was away for a moment and is back, but its breaker is still
// open. Now the others go away, as in a rolling restart. It is asked for their shards, since no
// other is left, and earlier failures do not end the wait for it.
func TestLastHopeIsWaitedFor(t *testing.T) {
	for _, takes := range []time.Duration{usual, 4 * usual, 500 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t, 3, fanout.Shares{Hedges: 0.1, Retries: 0.1})
			c.warm(t, 9)
			away := func(gone ...int) func(int) (time.Duration, error) {
				return func(searcher int) (time.Duration, error) {
					if slices.Contains(gone, searcher) {
						return 0, fmt.Errorf("%w: %w", fanout.ErrDisconnected, status.Error(codes.Unavailable, "broken pipe"))
					}
					return usual, nil
				}
			}
			c.takes = away(2)
			c.search(t, 9, time.Second)
			others := away(0, 1)
			c.takes = func(searcher int) (time.Duration, error) {
				if searcher == 2 {
					return takes, nil
				}
				return others(searcher)
			}
			if coverage, took := c.search(t, 9, 20*time.Second); !coverage.Complete || took > 2*takes {
				t.Errorf("back, and answering after %v: %v after %v", takes, coverage, took)
			}
		})
	}
}

// TestStandInsThatLeaveShardsOpen: the stand-ins of a silent searcher answer, but do not cover a
// shard, or fail. The next one is asked for that shard, with and without a budget.
func TestStandInsThatLeaveShardsOpen(t *testing.T) {
	for _, fails := range []bool{false, true} {
		for _, share := range []float64{0.0001, 1} {
			synctest.Test(t, func(t *testing.T) {
				w := &world{tb: t, searchers: 3, found: make(map[searchapi.Digest]int), does: func(searcher string, d searchapi.Digest) behaviour {
					switch {
					case searcher == "s0":
						return hangs
					case searcher == "s1" && fails:
						return refuses
					case searcher == "s1" && d[0] == 4:
						return notCovered
					}
					return answers
				}}
				f := w.fanout(fanout.Policy{})
				f.Peers = newPeers(t, fanout.Shares{Hedges: share}, func(ctx context.Context, target fanout.Target) error {
					if target.ID == "s0" {
						<-ctx.Done()
					}
					return ctx.Err()
				})
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				account, start := searchapi.NewAccount(someShards(9)), time.Now()
				fanout.Scatter(ctx, f, someShards(9), account, w.call, func([]searchapi.Digest) {})
				if took := time.Since(start); !account.Coverage().Complete || took > 1500*time.Millisecond {
					t.Errorf("share %v, fails %v: %v after %v", share, fails, account.Coverage(), took)
				}
			})
		}
	}
}
