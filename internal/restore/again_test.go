package restore_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/owner"
	"github.com/trawl-search/trawl/internal/restore"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// TestRestoredNumbersNeverComeTwice: however often etcd is lost, each request gets an epoch above all that its
// repo had, and each publication a generation above all. That includes the epochs of requests for which nothing was
// built, and generations that lack an object. What nothing complete answers is asked for again. The newest complete
// generation is restored, whatever its fence.
func TestRestoredNumbersNeverComeTwice(t *testing.T) {
	w, rng := newWorld(t), testrun.Rand(t)
	repos := []*catalogv1.Desired{{Name: "a", Url: "u"}, {Name: "b", Url: "u"}}
	epochs, generations, contents := map[string]uint64{}, map[string]uint64{}, 0
	newEpoch := func(name string, epoch uint64) {
		if epoch <= epochs[name] {
			t.Errorf("%s gets epoch %d after %d", name, epoch, epochs[name])
		}
		epochs[name] = max(epoch, epochs[name])
	}
	// Each repo is incomplete after some lives, and whole after others.
	incomplete := func(life int, d *catalogv1.Desired) bool { return (life == 0) == (d.Name == "a") }
	testrun.Must(t, owner.Claim(t.Context(), w.bucket, w.store))
	for i := range 60 { // later etcds have lower revisions, and so do their fences
		_, _, err := w.store.PutDesired(t.Context(), repos[i%2])
		testrun.Must(t, err)
	}
	for life := range 3 {
		newest := map[string]*catalogv1.Root{}
		for _, d := range repos {
			var root *catalogv1.Root
			for range 1 + rng.IntN(3) {
				contents++
				root = w.publish(d, fmt.Sprint(contents), rng.IntN(2) == 0)
				if newEpoch(d.Name, root.Epoch); root.Generation <= generations[d.Name] {
					t.Errorf("%s has generation %d after %d", d.Name, root.Generation, generations[d.Name])
				}
				generations[d.Name], newest[d.Name] = root.Generation, root
			}
			if incomplete(life, d) {
				testrun.Must(t, w.bucket.Delete(t.Context(), root.Shards[0].Key))
			}
			for range 1 + rng.IntN(3) { // no job is done for these
				epoch, _, err := w.store.PutDesired(t.Context(), d)
				testrun.Must(t, err)
				newEpoch(d.Name, epoch)
			}
		}
		w.etcd()
		_, err := w.restore(restore.Restorer{})
		testrun.Must(t, err, owner.Check(t.Context(), w.bucket, w.store))
		for _, d := range repos {
			have, err := w.store.GetDesired(t.Context(), d.Name)
			testrun.Must(t, err)
			if incomplete(life, d) {
				newEpoch(d.Name, have.Record.Epoch)
			} else if got := w.root(d.Name); !proto.Equal(got, newest[d.Name]) {
				t.Errorf("%v is restored, want %v", got, newest[d.Name])
			}
		}
	}
}

// TestLastJobOfAGeneration: of the jobs of one generation the one that began last could publish, and is
// restored. If it lacks an object, the one before it is.
func TestLastJobOfAGeneration(t *testing.T) {
	w := newWorld(t)
	_, _, err := w.store.PutDesired(t.Context(), &catalogv1.Desired{Name: "a", Url: "u"})
	testrun.Must(t, err)
	var roots []*catalogv1.Root
	for i := range 5 {
		lease, err := w.store.AcquireLease(t.Context(), "a", time.Minute)
		testrun.Must(t, err)
		root := w.attempt(lease, fmt.Sprint("shard of job ", i), &catalogv1.ShardRef{}, false)
		root.Fence = lease.Fence()
		roots = append(roots, root)
		testrun.Must(t, lease.Release(t.Context()))
	}
	for i, root := range slices.Backward(roots) {
		w.etcd()
		lines, err := w.restore(restore.Restorer{})
		testrun.Must(t, err)
		if got := w.root("a"); !proto.Equal(got, root) {
			t.Errorf("with the objects of the first %d jobs %q and %v are restored, want %v", i+1, lines, got, root)
		}
		testrun.Must(t, w.bucket.Delete(t.Context(), root.Shards[0].Key))
	}
}

// TestBucketsThatAreNotTakenOver: a bucket of another Trawl restores nothing. One whose etcd was lost keeps its owner
// through a dry run, and through a restore that its caller ended.
func TestBucketsThatAreNotTakenOver(t *testing.T) {
	w := newWorld(t)
	testrun.Must(t, owner.Claim(t.Context(), w.bucket, w.store))
	for _, name := range []string{"a", "b"} {
		w.publish(&catalogv1.Desired{Name: name, Url: "u"}, name, false)
	}
	e, ended := w.etcd(), errors.New("ended")
	runs := []struct {
		what          string
		r             restore.Restorer
		prefix        string
		report        error
		err, ownerErr error
	}{
		{"a dry run", restore.Restorer{DryRun: true}, "", nil, nil, owner.ErrNewEtcd},
		{"another Trawl", restore.Restorer{}, "/other/", nil, owner.ErrOwned, owner.ErrOwned},
		{"a caller who ends it", restore.Restorer{}, "", ended, ended, owner.ErrNewEtcd},
	}
	for _, run := range runs {
		run.r.Store, run.r.Bucket = catalog.New(e.Client(), run.prefix), w.bucket
		if err := run.r.Run(t.Context(), func(restore.Repo) error { return run.report }, nil); !errors.Is(err, run.err) {
			t.Errorf("%s: %v, want %v", run.what, err, run.err)
		}
		if err := owner.Check(t.Context(), w.bucket, run.r.Store); !errors.Is(err, run.ownerErr) {
			t.Errorf("%s: the owner then gives %v, want %v", run.what, err, run.ownerErr)
		}
		if _, err := run.r.Store.GetDesired(t.Context(), "b"); !errors.Is(err, catalog.ErrNotFound) && run.report == nil {
			t.Errorf("%s restores repos: %v", run.what, err)
		}
	}
}
