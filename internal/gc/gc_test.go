package gc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/owner"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// publish does one honest job of n shards at once.
func (w *world) publish(repo string, n int) *catalogv1.Root {
	ctx := context.Background()
	lease, err := w.truth.AcquireLease(ctx, repo, leaseTTL)
	if err != nil {
		w.t.Fatal(err)
	}
	next, err := attempt(ctx, w.bucket, lease, n, 0)
	if err == nil {
		_, err = w.truth.Publish(ctx, lease, lease.Root(), next)
	}
	if err := errors.Join(err, lease.Release(ctx)); err != nil {
		w.t.Fatal(err)
	}
	return next
}

// pass makes a pass that must succeed.
func (w *world) pass(c *Collector) Report {
	w.t.Helper()
	report, err := c.Pass(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	return report
}

// replaced is a world with a repo whose ten shards and manifest were replaced by one
// shard and a manifest.
func replaced(t *testing.T) (*world, *Collector) {
	w := newWorld(t)
	w.want("repo")
	w.publish("repo", 10)
	w.publish("repo", 1)
	return w, w.collector(w.etcd.Client(nil), w.bucket, 100)
}

// TestBucketOfAnother: a catalog with another prefix in the same etcd collects
// nothing from a bucket that is claimed, and reports no garbage there, whatever it
// has itself.
func TestBucketOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := replaced(t)
		if err := owner.Claim(t.Context(), w.bucket, w.truth); err != nil {
			t.Fatal(err)
		}
		other := *c
		other.Store = catalog.New(w.etcd.Client(nil), "/other/")
		if _, _, err := other.Store.PutDesired(t.Context(), &catalogv1.Desired{Name: "theirs", Url: "https://example.org/theirs"}); err != nil {
			t.Fatal(err)
		}
		before := w.stored()
		for range 3 {
			if _, err := other.Pass(t.Context()); !errors.Is(err, owner.ErrOwned) {
				t.Errorf("pass: %v", err)
			}
			time.Sleep(2 * hold)
		}
		if _, err := other.Audit(t.Context(), false, func(f Finding) error { return fmt.Errorf("found %v", f) }); !errors.Is(err, owner.ErrOwned) {
			t.Errorf("audit: %v", err)
		}
		if now := w.stored(); !slices.Equal(before, now) {
			t.Errorf("stored before %q, now %q", before, now)
		}
		if report := w.pass(c); report.Condemned.Objects == 0 {
			t.Errorf("the owner's own pass: %+v", report)
		}
		if _, err := c.Audit(t.Context(), false, func(f Finding) error {
			if f.Key == owner.Key {
				return fmt.Errorf("found %v", f)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
}

// TestNewEtcd: with an etcd that has no record of the bucket nothing is garbage,
// however far its revisions have come. Neither a wrong address nor the loss of all
// data of etcd may empty the bucket.
func TestNewEtcd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := replaced(t)
		before := w.stored()
		anew := newWorld(t)
		for range 1000 {
			if _, err := anew.etcd.Client(nil).Put(t.Context(), "/else", ""); err != nil {
				t.Fatal(err)
			}
		}
		c := anew.collector(anew.etcd.Client(nil), w.bucket, 100)
		for range 3 {
			if _, err := c.Pass(t.Context()); !errors.Is(err, errForgotten) {
				t.Errorf("got %v", err)
			}
			time.Sleep(2 * hold)
		}
		if after := w.stored(); !slices.Equal(after, before) {
			t.Errorf("objects %v are left of %v", after, before)
		}
		if r := anew.pass(anew.collector(anew.etcd.Client(nil), anew.bucket, 100)); r != (Report{}) {
			t.Errorf("with an empty bucket: %+v", r)
		}
	})
}

func TestGarbageWaitsAndGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := replaced(t)
		registry := prometheus.NewRegistry()
		var err error
		c.Metrics = NewMetrics(registry)
		if r := w.pass(c); r.Condemned.Objects != 11 || r.Condemned.Bytes == 0 || r.Kept.Objects != 2 || r.Deleted.Objects != 0 {
			t.Errorf("first pass: %+v", r)
		}
		time.Sleep(hold / 2)
		if r := w.pass(c); r.Waiting.Objects != 11 || r.Condemned.Objects != 0 || r.Deleted.Objects != 0 || len(w.stored()) != 13 {
			t.Errorf("before the hold has ended: %+v", r)
		}
		time.Sleep(hold/2 + time.Second)
		if r := w.pass(c); r.Deleted.Objects != 11 || r.Deleted.Bytes == 0 || r.Kept.Objects != 2 {
			t.Errorf("after the hold: %+v", r)
		}
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		counted := map[string]float64{}
		for _, f := range families {
			counted[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue()
		}
		if n := counted["trawl_gc_deleted_objects_total"]; n != 11 {
			t.Errorf("%v deletions are counted", n)
		}
		w.checkClean()
	})
}

// TestDeletedRepo: within the bound nothing is left of a deleted repo's objects, and
// later nothing of its records.
func TestDeletedRepo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := replaced(t)
		if _, err := w.truth.DeleteRepo(t.Context(), "repo"); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); c.Run(ctx, time.Minute) }()
		// Documented: a hold and two passes; etcd grants whole seconds.
		time.Sleep(hold + 2*time.Minute + time.Second)
		if left := w.stored(); len(left) > 0 {
			t.Errorf("left of a deleted repo: %q", left)
		}
		time.Sleep(c.Memory + time.Minute)
		cancel()
		<-done
		answer, err := w.etcd.Client(nil).Get(t.Context(), catalog.DefaultPrefix+"deleted/repo")
		if err != nil || len(answer.Kvs) > 0 {
			t.Errorf("remembered: %v, %v", answer, err)
		}
	})
}

func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := replaced(t)
		c.Limit = 4
		for _, left := range []int{13, 9, 5, 2, 2} {
			r := w.pass(c)
			if len(w.stored()) != left || r.Deleted.Objects > 4 || r.Condemned.Objects > 4 {
				t.Errorf("%d objects left, want %d: %+v", len(w.stored()), left, r)
			}
			time.Sleep(hold + time.Second)
		}
		w.checkClean()

		// A batch from a time when the limit was higher.
		w.publish("repo", 10)
		c.Limit = 100
		w.publish("repo", 1)
		w.pass(c)
		time.Sleep(hold + time.Second)
		c.Limit = 3
		for _, left := range []int{12, 9, 6, 3, 2} {
			if w.pass(c); len(w.stored()) != left {
				t.Errorf("%d objects left, want %d", len(w.stored()), left)
			}
			time.Sleep(time.Second)
		}
	})
}

func TestDryRunChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := replaced(t)
		dry := *c
		dry.DryRun = true
		for range 2 {
			if r := w.pass(&dry); r.Condemned.Objects != 11 || r.Deleted.Objects != 0 {
				t.Errorf("it would condemn %+v", r)
			}
		}
		w.pass(c)
		time.Sleep(hold + time.Second)
		for range 2 {
			if r := w.pass(&dry); r.Deleted.Objects != 11 || r.Condemned.Objects != 0 || len(w.stored()) != 13 {
				t.Errorf("it would delete %+v, left are %d", r, len(w.stored()))
			}
		}
	})
}

// TestInUseAgain condemns by hand an object that is in use: the second look spares
// it.
func TestInUseAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := replaced(t)
		reach, err := w.truth.Reach(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var wrong []*catalogv1.CondemnedObject
		for _, key := range append(w.live(), "shards/from-elsewhere") {
			wrong = append(wrong, &catalogv1.CondemnedObject{Key: key})
		}
		if err := w.truth.Condemn(t.Context(), reach, 0, wrong, hold); err != nil {
			t.Fatal(err)
		}
		time.Sleep(hold + time.Second)
		if r := w.pass(c); r.Spared != 3 || r.Deleted.Objects != 0 {
			t.Errorf("%+v", r)
		}
		w.check("after a pass")
	})
}

// TestBrokenBucket: a pass that fails has done no harm, and the next goes on.
func TestBrokenBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := replaced(t)
		w.pass(c)
		time.Sleep(hold + time.Second)
		var asked atomic.Int64 // deletions run at the same time
		c.Bucket = watched{w.bucket, func(op string) error {
			if asked.Add(1) > 3 && op == "delete" {
				return errAway
			}
			return nil
		}, func(string) error { return nil }}
		if _, err := c.Pass(t.Context()); !errors.Is(err, errAway) {
			t.Errorf("got %v", err)
		}
		c.Bucket = w.bucket
		w.pass(c)
		w.checkClean()
	})
}

func TestAudit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := replaced(t)
		w.pass(c)
		audit := func(contents bool) map[Problem]int {
			found := map[Problem]int{}
			well, err := c.Audit(t.Context(), contents, func(f Finding) error { found[f.Problem]++; return nil })
			if err != nil {
				t.Error(err)
			}
			found["well"] = well.Objects
			return found
		}
		expect := func(what string, got, want map[Problem]int) {
			t.Helper()
			if !maps.Equal(got, want) {
				t.Errorf("%s: found %v, want %v", what, got, want)
			}
		}
		expect("after a pass", audit(true), map[Problem]int{Condemned: 11, "well": 2})
		put(t.Context(), w.bucket, "other/thing", []byte("x"))
		dead, err := w.truth.AcquireLease(t.Context(), "repo", leaseTTL)
		if err != nil {
			t.Fatal(err)
		}
		attempt(t.Context(), w.bucket, dead, 1, 0)
		expect("a job runs", audit(false), map[Problem]int{Condemned: 11, Unknown: 1, "well": 2})
		dead.Release(t.Context())
		expect("it died", audit(false), map[Problem]int{Condemned: 11, Unknown: 1, Orphan: 2, "well": 2})

		root, err := w.truth.GetRoot(t.Context(), "repo")
		if err != nil {
			t.Fatal(err)
		}
		key := root.Record.GetShards()[0].GetKey()
		replace := func(content []byte) {
			if err := w.bucket.Put(t.Context(), key, bytes.NewReader(content), bucket.PutOptions{Size: int64(len(content))}); err != nil {
				t.Fatal(err)
			}
		}
		replace(bytes.Repeat([]byte("x"), int(root.Record.GetShards()[0].GetSizeBytes())))
		rest := map[Problem]int{Condemned: 11, Unknown: 1, Orphan: 2}
		with := func(p Problem, well int) map[Problem]int {
			want := maps.Clone(rest)
			want[p]++
			want["well"] += well
			return want
		}
		expect("same size, contents not read", audit(false), with("well", 1))
		expect("same size, contents read", audit(true), with(WrongDigest, 1))
		replace([]byte("short"))
		expect("another size", audit(false), with(WrongSize, 1))
		w.bucket.Delete(t.Context(), key)
		expect("not there", audit(true), with(Missing, 1))
		stop := errors.New("stop")
		if _, err := c.Audit(t.Context(), false, func(Finding) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("got %v", err)
		}
	})
}

// listed is a bucket that calls something after each listing.
type listed struct {
	bucket.Bucket

	after func()
}

func (b listed) List(ctx context.Context, prefix string) iter.Seq2[bucket.Info, error] {
	return func(yield func(bucket.Info, error) bool) {
		b.Bucket.List(ctx, prefix)(yield)
		b.after()
	}
}

// TestAuditDuringAPublication: objects that come after the bucket was listed, and that a root names when
// the roots are read, are no problem.
func TestAuditDuringAPublication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, c := replaced(t)
		w.pass(c)
		var root *catalogv1.Root
		c.Bucket = listed{w.bucket, func() { root = w.publish("repo", 3) }}
		for _, contents := range []bool{false, true} {
			well, err := c.Audit(t.Context(), contents, func(f Finding) error {
				if f.Repo != "" {
					t.Errorf("with contents %v: %+v", contents, f)
				}
				return nil
			})
			if want := len(keysOf(root)); err != nil || well.Objects != want {
				t.Errorf("with contents %v: %d objects are well, want %d, %v", contents, well.Objects, want, err)
			}
		}
	})
}

// TestConfig: the hold has bounds.
func TestConfig(t *testing.T) {
	var c Config
	c.SetDefaults()
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c.Hold = 0
	if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "hold") {
		t.Errorf("got %v", err)
	}
}
