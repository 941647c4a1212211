package gc

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

const (
	// simulated is how long a schedule lasts before its actors may finish.
	simulated = 90 * time.Second
	// A query takes up to queryTime, on roots that may be up to staleness old;
	// together less than the hold.
	queryTime, staleness = 12 * time.Second, 6 * time.Second
)

// TestSchedules runs indexers that lose their leases, stall and die, compactions that
// pack repos together and do the same, collectors, queries, requests and deletions
// side by side, each slow and failing at random, over the real catalog. Neither a
// root that is served nor a running query may ever lack an object, and what nobody
// reaches is gone two passes after the end.
func TestSchedules(t *testing.T) {
	schedules, seed := testrun.Rounds(500, 3_000), testrun.Seed(t)
	var total tally
	const lanes = 4
	t.Run("lanes", func(t *testing.T) {
		for lane := range uint64(lanes) {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				for i := lane; i < uint64(schedules); i += lanes {
					simulate(t, seed+i, &total)
				}
			})
		}
	})
	t.Logf("%+v", total.counts)
	for what, n := range total.counts.all() {
		if n < schedules/10 {
			t.Errorf("only %d %s: the schedules do not show what they are for", n, what)
		}
	}
}

// simulate runs the schedule of a seed.
func simulate(t *testing.T, seed uint64, total *tally) {
	var happened counts
	synctest.Test(t, func(t *testing.T) {
		s := newSim(t, seed)
		s.run()
		happened = s.tally.counts
	})
	total.add(happened)
	if t.Failed() {
		t.Fatalf("repeat it by TRAWL_TEST_SEED=%d", seed)
	}
}

// tally adds up what happened in all schedules.
type tally struct {
	mu sync.Mutex
	counts
}

func (t *tally) add(o counts) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.published += o.published
	t.refused += o.refused
	t.deleted += o.deleted
	t.queries += o.queries
	t.broken += o.broken
	t.compacted += o.compacted
	t.gaveWay += o.gaveWay
	t.gone += o.gone
}

// counts are what happened in a schedule.
type counts struct{ published, refused, deleted, queries, broken, compacted, gaveWay, gone int }

func (c counts) all() map[string]int {
	return map[string]int{
		"publications": c.published, "refused publications": c.refused, "deleted objects": c.deleted,
		"queries": c.queries, "passes broken off": c.broken,
		"repos compacted": c.compacted, "compactions in vain": c.gaveWay,
		"looks at deletions whose bytes are gone": c.gone,
	}
}

// sim is one schedule.
type sim struct {
	*world

	rng *rand.Rand
	tally
	deletions []deletion
}

// newSim makes the schedule of a seed. Time alone decides whose turn it is, so
// that the same seed gives the same schedule, except where two wake at the same
// nanosecond.
func newSim(t *testing.T, seed uint64) *sim {
	return &sim{world: newWorld(t), rng: testrun.Locked(seed)}
}

// one says yes once in n times.
func (s *sim) one(n int) bool { return s.rng.IntN(n) == 0 }

func (s *sim) sleep(most time.Duration) { time.Sleep(time.Duration(s.rng.Int64N(int64(most)))) }

func (s *sim) repo() string { return []string{"a", "b"}[s.rng.IntN(2)] }

var errAway = errors.New("away")

// hop is the way to a server or back: slow, and cut off now and then.
func (s *sim) hop(ctx context.Context) error {
	s.sleep(time.Second)
	if s.one(50) {
		return errAway
	}
	return ctx.Err()
}

// store is the catalog, and far the bucket, as one process reaches them.
func (s *sim) store() *catalog.Store { return catalog.New(s.etcd.Client(s.hop), "") }

func (s *sim) far(ctx context.Context) watched {
	hop := func(string) error { return s.hop(ctx) }
	return watched{s.bucket, hop, func(op string) error { s.check("after " + op); return hop(op) }}
}

func (s *sim) run() {
	ctx, cancel := context.WithTimeout(context.Background(), simulated)
	defer cancel()
	var running sync.WaitGroup
	loop := func(f func(context.Context)) {
		running.Go(func() {
			for ctx.Err() == nil {
				f(ctx)
			}
		})
	}
	for i := range 2 {
		loop(s.holder(fmt.Sprintf("index%d", i), s.index))
		loop(s.holder(fmt.Sprintf("compact%d", i), s.compact))
		loop(s.collect)
		loop(s.query)
	}
	loop(s.change)
	running.Wait()
	time.Sleep(hold) // what began without a time limit is over
	s.checkClean()
	s.checkAllGone()
}

// change puts and deletes repos, and ends leases before their time.
func (s *sim) change(ctx context.Context) {
	s.sleep(10 * time.Second)
	switch s.rng.IntN(5) {
	case 4:
		s.endClaims(ctx)
	case 0:
		repo := s.repo()
		if revision, err := s.store().DeleteRepo(ctx, repo); err == nil {
			s.noteDeletion(repo, revision)
		}
	case 1:
		s.etcd.Expire(catalog.DefaultPrefix + "leases/" + s.repo())
	default:
		_, _, _ = s.store().PutDesired(ctx, &catalogv1.Desired{Name: s.repo()})
	}
}

// index is a job of an indexer that does not notice when its lease is lost: its
// publications must then do no harm.
func (s *sim) index(ctx context.Context) {
	s.sleep(3 * time.Second)
	store, held := s.store(), context.WithoutCancel(ctx)
	lease, err := store.AcquireLease(held, s.repo(), leaseTTL)
	if err != nil {
		return
	}
	defer lease.Release(held)
	next, err := attempt(ctx, s.far(ctx), lease, 1+s.rng.IntN(2), s.rng.IntN(3))
	if err != nil || s.one(8) {
		return // it died
	}
	if s.one(4) {
		s.sleep(2 * hold)
	}
	for range 3 {
		_, err = store.Publish(held, lease, lease.Root(), next)
		s.check("after publishing")
		if !errors.Is(err, errAway) {
			break
		}
	}
	if err == nil {
		s.add(counts{published: 1})
	} else {
		s.add(counts{refused: 1})
	}
}

func (s *sim) collect(ctx context.Context) {
	s.sleep(15 * time.Second)
	c := s.collector(s.etcd.Client(s.hop), s.far(ctx), 1+s.rng.IntN(20))
	// The wall clock only decides when deleted repos are forgotten. A clock that is hours
	// off is the same as another Memory.
	c.Memory += time.Duration(s.rng.Int64N(int64(10*time.Hour))) - 5*time.Hour
	report, err := c.Pass(ctx)
	s.add(counts{deleted: report.Deleted.Objects})
	if err != nil {
		s.add(counts{broken: 1})
	}
	s.checkGone("after a pass")
	if report.Spared > 0 {
		s.t.Errorf("%d condemned objects were in use again", report.Spared)
	}
}

// query reads the shards of a root one after the other, as a search does.
func (s *sim) query(ctx context.Context) {
	root, err := s.store().GetRoot(ctx, s.repo())
	s.sleep(staleness)
	if err != nil {
		return
	}
	end := time.Now().Add(queryTime)
	for _, key := range keysOf(root.Record) {
		s.sleep(queryTime / 2)
		if time.Now().After(end) {
			break
		}
		if _, err := s.bucket.Stat(context.Background(), key); errors.Is(err, bucket.ErrNotFound) {
			s.t.Error(fmt.Errorf("a query that began %v ago on generation %d: %w", time.Since(end.Add(-queryTime)), root.Record.GetGeneration(), err))
		}
	}
	s.add(counts{queries: 1})
}
