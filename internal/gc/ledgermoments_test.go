package gc

import (
	"context"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/membership"
)

// TestLedgerAtEveryMoment: an indexer that does not notice the deletion of its repo puts
// what it built, and then reports that its disk is clean, at each moment of each pass:
// before and after every call of etcd and every listing of the bucket. The bucket is
// never reported clean of the repo while the object is there, and in the end it is.
func TestLedgerAtEveryMoment(t *testing.T) {
	tried := 0
	for passNumber := range 3 {
		for moment, reached := 1, true; reached; moment++ {
			reached = false
			synctest.Test(t, func(t *testing.T) {
				m := &momentWorld{world: newWorld(t), what: fmt.Sprintf("pass %d, moment %d", passNumber+1, moment)}
				m.begin()
				for n := range 5 {
					passed := 0
					m.at = func() {
						if passed++; n == passNumber && passed == moment {
							reached = true
							m.zombieEnds()
						}
						m.checkBucket()
					}
					m.pass(m.momentCollector())
					m.checkBucket()
					time.Sleep(hold + time.Second)
				}
				if got := m.left(); reached && got.InBucket() {
					t.Errorf("%s: at the end the bucket is not said to be clean: %+v", m.what, got)
				}
			})
			if reached {
				tried++
			}
		}
	}
	if tried < 60 {
		t.Errorf("only %d moments", tried)
	}
}

// TestIndexerIsBackAtEveryMoment: the record of an indexer's disk is away while the indexer has
// claimed a compaction with a repo that is then deleted. At each moment of a pass the record comes
// back, and then the claim is lost. Nothing is reported gone before the indexer has said that its disk
// is clean: it may still put what it built.
func TestIndexerIsBackAtEveryMoment(t *testing.T) {
	tried := 0
	for moment, reached := 1, true; reached; moment++ {
		reached = false
		synctest.Test(t, func(t *testing.T) {
			m := &momentWorld{world: newWorld(t), what: fmt.Sprintf("moment %d", moment)}
			claim := m.beginCompaction()
			passed := 0
			m.at = func() {
				if passed++; passed != moment {
					return
				}
				reached = true
				m.tell(membership.IndexerDisk, "indexer", 0)
				if err := claim.Release(context.Background()); err != nil {
					t.Error(err)
				}
			}
			for range 5 {
				m.pass(m.momentCollector())
				if !m.left().InBucket() {
					t.Errorf("%s: the bucket is said to be clean", m.what)
				}
				time.Sleep(hold + time.Second)
			}
			if !reached { // the claim's goroutine ends with it
				_ = claim.Release(context.Background())
			}
		})
		if reached {
			tried++
		}
	}
	if tried < 15 {
		t.Errorf("only %d moments", tried)
	}
}

// beginCompaction claims a compaction with the repo a, which is deleted then. No disk has a record.
func (m *momentWorld) beginCompaction() *catalog.Claim {
	ctx := m.t.Context()
	for _, repo := range []string{"a", "b"} {
		m.want(repo)
		m.publish(repo, 1)
	}
	err := planAll(ctx, m.truth)
	if err != nil {
		m.t.Fatal(err)
	}
	all, err := m.truth.ListCompactions(ctx)
	if err != nil || len(all) == 0 {
		m.t.Fatalf("%d compactions, %v", len(all), err)
	}
	claim, err := m.truth.Claim(ctx, all[0], leaseTTL, time.Time{})
	if err != nil {
		m.t.Fatal(err)
	}
	revision, err := m.truth.DeleteRepo(ctx, "a")
	if err != nil {
		m.t.Fatal(err)
	}
	m.deletion = deletion{"a", revision}
	return claim
}

// momentWorld is a world with a repo that was deleted while it was indexed.
type momentWorld struct {
	*world

	what     string
	lease    *catalog.Lease
	deletion deletion
	at       func() // called at each moment of a pass
}

func (m *momentWorld) begin() {
	m.want("a")
	m.publish("a", 1)
	m.clear("indexer", 0)
	lease, err := m.truth.AcquireLease(m.t.Context(), "a", leaseTTL)
	if err != nil {
		m.t.Fatal(err)
	}
	m.lease = lease
	revision, err := m.truth.DeleteRepo(m.t.Context(), "a")
	if err != nil {
		m.t.Fatal(err)
	}
	m.deletion = deletion{"a", revision}
}

// zombieEnds is the end of the job: its objects are put, and its disk is clean.
func (m *momentWorld) zombieEnds() {
	ctx := context.Background()
	if _, err := attempt(ctx, m.bucket, m.lease, 1, 0); err != nil {
		m.t.Error(err)
	}
	if err := m.lease.Release(ctx); err != nil {
		m.t.Error(err)
	}
	revision, err := m.truth.CurrentRevision(ctx)
	if err != nil {
		m.t.Error(err)
	}
	m.tell(membership.IndexerDisk, "indexer", revision)
}

func (m *momentWorld) momentCollector() *Collector {
	var one sync.Mutex // a collector deletes several objects at once
	at := func() {
		one.Lock()
		defer one.Unlock()
		m.at()
	}
	moment := func(string) error { at(); return nil }
	client := m.etcd.Client(func(ctx context.Context) error { at(); return ctx.Err() })
	return m.collector(client, listings{watched{m.bucket, moment, moment}}, 1000)
}

// listings is a bucket that is watched after its listings too.
type listings struct{ watched }

func (b listings) List(ctx context.Context, prefix string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		for info, err := range b.watched.List(ctx, prefix) {
			if !yield(info, err) {
				return
			}
		}
		if err := b.after("list " + prefix); err != nil {
			yield(bucket.Info{}, err)
		}
	}
}

func (m *momentWorld) left() *catalog.Deletion {
	got, err := m.truth.Deletion(context.Background(), m.deletion.repo, m.deletion.revision)
	if err != nil {
		m.t.Error(err)
	}
	return got
}

func (m *momentWorld) checkBucket() {
	if keys := m.stored(); len(keys) > 0 && !m.left().InBucket() {
		m.t.Errorf("%s: the bucket is said to be clean while it has %q", m.what, keys)
	}
}
