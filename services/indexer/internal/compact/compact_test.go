package compact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/testrun"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestPack: small repos move into one shard with exactly their documents, and their old shards go.
func TestPack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(12)
		w.check("before")
		w.settle()
		w.check("after")
		keys := map[string]int{}
		for root, err := range w.truth.ListRoots(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			r := root.Record
			if len(r.Shards) != 1 || !r.Shards[0].GetCompacted() || len(r.Shards[0].GetHidden()) > 0 || r.Shards[0].GetDelta() {
				t.Errorf("%s has %v", r.Repo, r.Shards)
			}
			keys[r.Shards[0].GetKey()]++
		}
		if len(keys) != 1 {
			t.Errorf("%d shards: %v", len(keys), keys)
		}
		w.clean()
		for key := range keys {
			if packs, err := w.truth.PacksOf(t.Context(), "example.com/repo-03"); err != nil || len(packs) != 1 || packs[0] != key {
				t.Errorf("the repo is in %q, %v, want %q", packs, err, key)
			}
		}
	})
}

// TestDeletedFromPack: the bytes of a deleted repo leave a shared shard within the promised time,
// and nothing else does.
func TestDeletedFromPack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(12)
		w.settle()
		time.Sleep(w.cfg.Reclaim / 2)
		if _, err := w.truth.DeleteRepo(t.Context(), "example.com/repo-03"); err != nil {
			t.Fatal(err)
		}
		deleted := time.Now()
		w.publish("example.com/repo-04", files{"x.go": "x"}, false)
		// A new repo of the same name is a different repo.
		w.publish("example.com/repo-03", files{"back.go": "back"}, false)
		w.settle()
		w.check("before the time")
		if packs, err := w.truth.PacksOf(t.Context(), "example.com/repo-03"); err != nil || len(packs) != 1 {
			t.Fatalf("in %q, %v: the test shows nothing", packs, err)
		}
		time.Sleep(time.Until(deleted.Add(w.cfg.Reclaim)))
		w.settle()
		w.check("after the time")
		w.clean()
		if packs, err := w.truth.PacksOf(t.Context(), "example.com/repo-03"); err != nil || len(packs) > 1 {
			t.Errorf("in %q, %v", packs, err)
		}
	})
}

// TestCrashAnywhere ends a process before and after each of its operations. Published repos stay
// whole, another indexer does the work, and nothing is left over.
func TestCrashAnywhere(t *testing.T) {
	stride := testrun.Rounds(12, 1)
	for crash := 1 + testrun.Rand(t).IntN(stride); ; crash += stride {
		survived := false
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.fill(9)
			var steps atomic.Int64
			step := func() error {
				if steps.Add(1) >= int64(crash) {
					return errDead
				}
				return nil
			}
			err := w.scheduler(step).Pass(t.Context(), time.Now())
			for did := err == nil; did && err == nil; {
				did, err = w.worker(step).Next(t.Context())
			}
			survived = steps.Load() < int64(crash)
			if err != nil && !errors.Is(err, errDead) {
				t.Fatalf("at step %d: %v", crash, err)
			}
			w.check(fmt.Sprintf("after a crash at step %d", crash))
			w.settle()
			w.check("after that")
			w.clean()
		})
		if t.Failed() {
			t.Fatalf("crash at step %d", crash)
		}
		if survived {
			t.Logf("%d steps", crash)
			return
		}
	}
}

// TestPoisonIsAlone: an unreadable shard keeps its own repo from being compacted, but in the end no
// other repo.
func TestPoisonIsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(12)
		bad, err := w.truth.GetRoot(t.Context(), "example.com/repo-04")
		if err != nil {
			t.Fatal(err)
		}
		if err := w.bucket.Delete(t.Context(), bad.Record.GetShards()[0].GetKey()); err != nil {
			t.Fatal(err)
		}
		s, x := w.scheduler(nil), w.worker(nil)
		for range 30 {
			if err := s.Pass(t.Context(), time.Now()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(maxRetry)
			for did := true; did; {
				did, _ = x.Next(t.Context())
			}
		}
		for root, err := range w.truth.ListRoots(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if r := root.Record; (r.Repo == bad.Record.Repo) == r.Shards[0].GetCompacted() {
				t.Errorf("%s is compacted: %v", r.Repo, r.Shards[0].GetCompacted())
			}
		}
	})
}

// TestForgedShardIsNotMerged: an attacker replaces a shard by a valid one of the same size. Its content never
// gets into a merged shard with a valid digest.
func TestForgedShardIsNotMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(12)
		root, err := w.truth.GetRoot(t.Context(), "example.com/repo-04")
		if err != nil {
			t.Fatal(err)
		}
		ref := root.Record.GetShards()[0]
		docs := w.read(root.Record)
		docs["b.go"] = "the same evarywhere"
		scratch := bucket.NewMemory(1 << 20)
		forged, err := w.build(t.Context(), scratch, 1, root.Record, docs)
		if err != nil {
			t.Fatal(err)
		}
		if forged.GetSizeBytes() != ref.GetSizeBytes() || bytes.Equal(forged.GetDigest(), ref.GetDigest()) {
			t.Fatalf("%d bytes in the place of %d: the test shows nothing", forged.GetSizeBytes(), ref.GetSizeBytes())
		}
		content, _, err := scratch.Get(t.Context(), forged.GetKey())
		if err != nil {
			t.Fatal(err)
		}
		defer content.Close()
		if err := errors.Join(w.bucket.Delete(t.Context(), ref.GetKey()),
			w.bucket.Put(t.Context(), ref.GetKey(), content, bucket.PutOptions{Size: int64(forged.GetSizeBytes())})); err != nil {
			t.Fatal(err)
		}
		s, x, refused := w.scheduler(nil), w.worker(nil), 0
		for range 30 {
			if err := s.Pass(t.Context(), time.Now()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(maxRetry)
			for did := true; did; {
				if did, err = x.Next(t.Context()); errors.Is(err, format.ErrCorrupt) {
					refused++
				}
			}
		}
		for root, err := range w.truth.ListRoots(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			if r := root.Record; (r.GetRepo() == "example.com/repo-04") == r.GetShards()[0].GetCompacted() {
				t.Errorf("%s is compacted: %v", r.GetRepo(), r.GetShards()[0].GetCompacted())
			}
		}
		if refused == 0 {
			t.Error("no merge said why")
		}
	})
}

// TestGivesWay: while repos wait to be indexed, only compactions run that have a deadline or have
// waited for long.
func TestGivesWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(9)
		if err := w.scheduler(nil).Pass(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		x := w.worker(nil)
		x.Waiting = func(context.Context) bool { return true }
		if did, err := x.Next(t.Context()); did || err != nil {
			t.Errorf("it did not wait: %v", err)
		}
		time.Sleep(patience + time.Second)
		if did, err := x.Next(t.Context()); !did || err != nil {
			t.Errorf("it waits for ever: %v", err)
		}
	})
}

// TestRaces runs jobs, deletions, compactions and their planning side by side, each
// slow, failing at random, and losing its lease. Readers find every repo as it was
// published, and nothing is left over.
func TestRaces(t *testing.T) {
	schedules, seed := testrun.Rounds(8, 60), testrun.Seed(t)
	var flipped, pushed atomic.Int64
	for i := range uint64(schedules) {
		synctest.Test(t, func(t *testing.T) { race(t, seed+i, &flipped, &pushed) })
		if t.Failed() {
			t.Fatalf("repeat it by TRAWL_TEST_SEED=%d", seed+i)
		}
	}
	t.Logf("%d publications, %d repos compacted", pushed.Load(), flipped.Load())
	if flipped.Load() < int64(schedules) || pushed.Load() < int64(schedules) {
		t.Error("the schedules do not show what they are for")
	}
}

func race(t *testing.T, seed uint64, flipped, pushed *atomic.Int64) {
	w := newWorld(t)
	w.cfg.Reclaim = time.Minute
	w.fill(10)
	rng := testrun.Locked(seed)
	hop := func() error {
		time.Sleep(time.Duration(rng.IntN(int(300 * time.Millisecond))))
		if rng.IntN(150) == 0 {
			return errDead
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var running sync.WaitGroup
	loop := func(f func()) {
		running.Go(func() {
			for ctx.Err() == nil {
				f()
			}
		})
	}
	repo := func() string { return fmt.Sprintf("example.com/repo-%02d", rng.IntN(10)) }
	for range 2 {
		loop(func() {
			time.Sleep(time.Duration(rng.IntN(int(20 * time.Second))))
			next := files{"a.go": fmt.Sprint("a ", rng.IntN(5)), "b.go": fmt.Sprint("b ", rng.IntN(2)), "e.go": "e"}
			if w.push(ctx, w.store(hop), stepping{w.bucket, hop}, repo(), next, rng.IntN(3) > 0) == nil {
				pushed.Add(1)
			}
		})
		loop(func() {
			time.Sleep(time.Duration(rng.IntN(int(10 * time.Second))))
			_ = w.scheduler(hop).Pass(ctx, time.Now())
		})
		loop(func() {
			time.Sleep(time.Duration(rng.IntN(int(10 * time.Second))))
			if did, err := w.worker(hop).Next(ctx); did && err == nil {
				flipped.Add(1)
			}
		})
	}
	loop(func() {
		time.Sleep(time.Duration(rng.IntN(int(30 * time.Second))))
		switch all, err := w.truth.ListCompactions(ctx); {
		case err != nil || rng.IntN(2) == 0:
			_, _ = w.truth.DeleteRepo(ctx, repo())
		default:
			for _, c := range all {
				w.etcd.Expire(catalog.DefaultPrefix + "claims/" + c.Name)
			}
			w.etcd.Expire(catalog.DefaultPrefix + "leases/" + repo())
		}
	})
	loop(func() {
		time.Sleep(time.Duration(rng.IntN(int(3 * time.Second))))
		w.check("meanwhile")
	})
	running.Wait()
	time.Sleep(w.cfg.Reclaim)
	w.settle()
	w.check("at the end")
	w.clean()
}

// TestSinceIsBeforeTheClaim: from the moment at which etcd has granted a claim, even if the answer is
// not here yet, until the claim ends, no disk is said to be clean of repos deleted after it.
func TestSinceIsBeforeTheClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fill(12)
		time.Sleep(leaseTTL + time.Second)
		if err := w.scheduler(nil).Pass(t.Context(), time.Now()); err != nil {
			t.Fatal(err)
		}
		client, looks := w.etcd.Client(nil), 0
		var x *Worker
		x = w.worker(func() error {
			claims, err := client.Get(t.Context(), catalog.DefaultPrefix+"claims/", clientv3.WithPrefix())
			if err != nil {
				return err
			}
			for _, kv := range claims.Kvs {
				if since := x.Since(claims.Header.Revision + 1); since > kv.CreateRevision { // as if a repo were deleted now
					t.Errorf("clean as of %d while a claim of %d is held", since, kv.CreateRevision)
				}
				looks++
			}
			return nil
		})
		if did, err := x.Next(t.Context()); !did || err != nil {
			t.Fatal(did, err)
		}
		if revision, err := w.truth.CurrentRevision(t.Context()); err != nil || x.Since(revision) != revision || looks < 5 {
			t.Errorf("afterwards since %d at %d, %v, %d looks", x.Since(revision), revision, err, looks)
		}
	})
}
