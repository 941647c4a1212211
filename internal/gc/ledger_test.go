package gc

import (
	"context"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/membership"
	"github.com/trawl-search/trawl/internal/testrun"
)

// foreign is the fencing token of an object made under another etcd.
const foreign = int64(1) << 40

// ledgerModel is a cluster in which one thing happens after the other. Each worker is
// an actor, and may be held before any step until others have finished.
type ledgerModel struct {
	*world

	rng       *rand.Rand
	over      bool
	indexers  []*indexerDisk
	searchers []*searcherDisk
	actors    []*actor
	deletions []deletion
	// noted are all packs that were ever noted.
	noted map[string]bool
	// alien is the object of another etcd, if one is there.
	alien string
	// gone counts the checks of a deletion whose bytes are gone.
	gone int
}

// TestLedger: bytes that are reported gone from a place are not there, whichever
// process stalls, dies, goes away or comes back. When all is quiet everything is gone,
// and reported gone.
func TestLedger(t *testing.T) {
	schedules, seed, gone := testrun.Rounds(100, 500), testrun.Seed(t), 0
	for i := range uint64(schedules) {
		synctest.Test(t, func(t *testing.T) {
			m := newLedgerModel(t, seed+i)
			if m.run(); t.Failed() {
				t.Logf("repeat it by TRAWL_TEST_SEED=%d", seed+i)
			}
			gone += m.gone
		})
	}
	t.Logf("%d schedules: %d looks at what is gone", schedules, gone)
	if !t.Failed() && gone < schedules {
		t.Error("the schedules do not show what they are for")
	}
}

func newLedgerModel(t *testing.T, seed uint64) *ledgerModel {
	m := &ledgerModel{world: newWorld(t), rng: testrun.Locked(seed), noted: map[string]bool{}}
	for _, repo := range []string{"a", "b", "c"} {
		m.want(repo)
		m.publish(repo, 1)
	}
	if m.one(8) {
		m.alien = catalog.ShardKey(foreign, [32]byte{1})
		if err := put(context.Background(), m.bucket, m.alien, []byte("shard 0 of a at 7")); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"0", "1"} {
		x := &indexerDisk{name: "indexer" + name, copies: map[int64]string{}}
		m.tell(membership.IndexerDisk, x.name, 0)
		m.indexers = append(m.indexers, x)
		s := &searcherDisk{name: "searcher" + name, files: map[string]*file{}}
		m.tell(membership.SearcherDisk, s.name, 0)
		m.searchers = append(m.searchers, s)
		m.actors = append(m.actors, m.start(func(a *actor) { m.work(a, x) }), m.start(m.collectAgain))
	}
	return m
}

// one says yes once in n times.
func (m *ledgerModel) one(n int) bool { return m.rng.IntN(n) == 0 }

func (m *ledgerModel) repo() string { return []string{"a", "b", "c"}[m.rng.IntN(3)] }

func (m *ledgerModel) run() {
	for range 120 {
		m.happen()
		synctest.Wait()
		m.checkPlaces()
		if m.t.Failed() {
			break
		}
	}
	m.over = true
	m.takeTurns(m.rng.IntN, m.actors...)
	if !m.t.Failed() {
		m.end()
	}
}

// happen is one thing that happens.
func (m *ledgerModel) happen() {
	switch m.rng.IntN(12) {
	case 0:
		if repo := m.repo(); m.one(2) {
			m.want(repo)
		} else if revision, err := m.truth.DeleteRepo(context.Background(), repo); err == nil {
			m.deletions = append(m.deletions, deletion{repo, revision})
		}
	case 1:
		m.etcd.Expire(catalog.DefaultPrefix + "leases/" + m.repo())
	case 2, 3:
		time.Sleep(hold + time.Second)
	case 4:
		m.indexerActs(m.indexers[m.rng.IntN(2)])
	case 5, 6:
		m.sweep(m.indexers[m.rng.IntN(2)])
	case 7, 8:
		m.searcherActs(m.searchers[m.rng.IntN(2)])
	default:
		a := m.actors[m.rng.IntN(len(m.actors))]
		for range 1 + m.rng.IntN(30) {
			synctest.Wait()
			a.turn <- struct{}{}
		}
	}
}

// work is an indexer that does not notice when a lease or a claim is lost.
func (m *ledgerModel) work(a *actor, x *indexerDisk) {
	for a.step(); !m.over; a.step() {
		if m.one(2) {
			m.index(a, x)
		} else {
			m.compact(a, x)
		}
		if x.life, x.since, x.claim = 0, 0, nil; x.away {
			m.indexerActs(x) // back at work: in a job of a repo nobody would wait for it
		}
	}
}

func (m *ledgerModel) index(a *actor, x *indexerDisk) {
	store, ctx := catalog.New(gated(m.etcd.Client(nil), a), ""), context.Background()
	lease, err := store.AcquireLease(ctx, m.repo(), leaseTTL)
	if err != nil {
		return
	}
	defer lease.Release(ctx)
	x.life = lease.Life()
	x.copies[x.life] = lease.Desired().GetName()
	next, err := attempt(ctx, m.gatedBucket(a), lease, 1+m.rng.IntN(2), m.rng.IntN(3))
	if err == nil && !m.one(8) {
		_, _ = store.Publish(ctx, lease, lease.Root(), next)
	}
}

func (m *ledgerModel) compact(a *actor, x *indexerDisk) {
	store, ctx := catalog.New(gated(m.etcd.Client(nil), a), ""), context.Background()
	if err := planAll(ctx, store); err != nil {
		return
	}
	all, err := store.ListCompactions(ctx)
	if err != nil || len(all) == 0 {
		return
	}
	work := all[m.rng.IntN(len(all))]
	x.since = work.Revision
	claim, err := store.Claim(ctx, work, leaseTTL, time.Time{})
	if err != nil {
		return
	}
	defer claim.Release(ctx)
	x.claim, x.since = claim, claim.Fence()
	a.step()
	flips, err := pack(ctx, m.gatedBucket(a), claim)
	if err != nil || m.one(8) {
		return
	}
	if _, err := claim.ReplaceShards(ctx, flips); err == nil {
		_ = claim.Done(ctx)
	}
}

// collectAgain collects again and again, some of it or all, and is broken off at times.
func (m *ledgerModel) collectAgain(a *actor) {
	far := m.gatedBucket(a)
	turn := far.before
	far.before = func(op string) error {
		if turn(op); m.one(50) {
			return errAway
		}
		return nil
	}
	for a.step(); !m.over; a.step() {
		limit := 100
		if m.one(2) {
			limit = 1 + m.rng.IntN(3)
		}
		c := m.collector(gated(m.etcd.Client(nil), a), far, limit)
		_, _ = c.Pass(context.Background())
	}
}

// end lets all actors work until nothing is left to do.
func (m *ledgerModel) end() {
	ctx := context.Background()
	if m.alien != "" {
		if err := m.bucket.Delete(ctx, m.alien); err != nil {
			m.t.Error(err)
		}
		m.alien = ""
	}
	for range 6 {
		time.Sleep(hold + time.Second)
		m.compactAll(ctx)
		for _, x := range m.indexers {
			x.away = false
			m.sweep(x)
		}
		for _, s := range m.searchers {
			m.comeBack(s)
			m.follow(s)
			m.drop(s, len(s.files))
			m.tell(membership.SearcherDisk, s.name, s.cleared())
		}
		m.pass(m.collector(m.etcd.Client(nil), m.bucket, 1000))
		m.checkPlaces()
	}
	for _, d := range m.deletions {
		if got, err := m.truth.Deletion(ctx, d.repo, d.revision); err != nil || !got.Gone() {
			m.t.Errorf("%s, deleted at %d, is not said to be gone at the end: %+v, %v", d.repo, d.revision, got, err)
		}
	}
}

func (m *ledgerModel) compactAll(ctx context.Context) {
	if err := planAll(ctx, m.truth); err != nil {
		m.t.Error(err)
	}
	all, err := m.truth.ListCompactions(ctx)
	if err != nil {
		m.t.Error(err)
	}
	for _, c := range all {
		claim, err := m.truth.Claim(ctx, c, leaseTTL, time.Time{})
		if err != nil {
			m.t.Error(err)
			continue
		}
		flips, err := pack(ctx, m.bucket, claim)
		if err == nil {
			_, err = claim.ReplaceShards(ctx, flips)
		}
		if err == nil {
			err = claim.Done(ctx)
		}
		if err != nil {
			m.t.Error(err)
		}
		if err := claim.Release(ctx); err != nil {
			m.t.Error(err)
		}
	}
}
