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
