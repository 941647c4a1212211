package gc

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// endClaims ends the claims that are held before their time.
func (s *sim) endClaims(ctx context.Context) {
	all, err := s.truth.ListCompactions(ctx)
	if err != nil {
		return
	}
	for _, c := range all {
		s.etcd.Expire(catalog.DefaultPrefix + "claims/" + c.Name)
	}
}

// compact is an indexer that packs all repos into one shard, or does a compaction
// that another one has planned. It does not notice when its claim is lost.
func (s *sim) compact(ctx context.Context) {
	s.sleep(5 * time.Second)
	store, held := s.store(), context.WithoutCancel(ctx)
	if err := planAll(ctx, store); err != nil {
		return
	}
	all, err := store.ListCompactions(ctx)
	if err != nil || len(all) == 0 {
		return
	}
	work := all[s.rng.IntN(len(all))]
	claim, err := store.Claim(held, work, leaseTTL, time.Time{})
	if err != nil {
		return
	}
	defer claim.Release(held)
	flips, err := pack(ctx, s.far(ctx), claim)
	if err != nil || s.one(8) {
		return // it died
	}
	if s.one(4) {
		s.sleep(2 * hold)
	}
	var done []string
	for range 3 {
		done, err = claim.ReplaceShards(held, flips)
		s.check("after a flip")
		if !errors.Is(err, errAway) {
			break
		}
	}
	s.add(counts{compacted: len(done), gaveWay: min(len(flips)-len(done), 1)})
	if err == nil && !s.one(8) {
		_ = claim.Done(held)
	}
}

// planAll plans one compaction of everything that is served.
func planAll(ctx context.Context, store *catalog.Store) error {
	work := &catalogv1.Compaction{}
	for root, err := range store.ListRoots(ctx) {
		if err != nil {
			return err
		}
		work.Inputs = append(work.Inputs, &catalogv1.CompactionInput{Repo: root.Record.GetRepo(), Revision: root.Revision})
	}
	if len(work.Inputs) == 0 {
		return nil
	}
	return store.PlanCompaction(ctx, work)
}

// pack reads the shards of the roots that a claim may replace, and makes one shard
// for all of them, and the manifests.
func pack(ctx context.Context, b bucket.Bucket, claim *catalog.Claim) (flips []catalog.Replacement, err error) {
	roots, err := claim.Roots(ctx)
	if err != nil || len(roots) == 0 {
		return nil, err
	}
	var content []byte
	for _, root := range roots {
		content = fmt.Appendf(content, "pack of %s and ", root.Record.GetRepo())
		for _, shard := range root.Record.GetShards() {
			content = append(content, shard.GetDigest()...)
		}
	}
	digest := sha256.Sum256(content)
	ref := &catalogv1.ShardRef{Digest: digest[:], Key: catalog.ShardKey(claim.Fence(), digest), SizeBytes: uint64(len(content))}
	if err := put(ctx, b, ref.Key, content); err != nil {
		return nil, err
	}
	record := &catalogv1.Pack{Key: ref.Key}
	for _, root := range roots {
		next := proto.CloneOf(root.Record)
		next.Generation++
		next.Shards = []*catalogv1.ShardRef{ref}
		manifest := fmt.Appendf(nil, "manifest of %s at %d in a pack", next.Repo, next.Generation)
		sum := sha256.Sum256(manifest)
		next.ManifestKey, next.ManifestDigest = catalog.ManifestKey(claim.Fence(), next.Repo, next.Generation, sum), sum[:]
		if err := put(ctx, b, next.ManifestKey, manifest); err != nil {
			return nil, err
		}
		flips = append(flips, catalog.Replacement{Old: root, Next: next})
		record.Repos = append(record.Repos, next.Repo)
	}
	return flips, claim.NotePack(ctx, record)
}

// TestCompactionInAnyOrder packs two repos together while the garbage of an earlier
// attempt at the same is collected. At any moment one of the repos may be deleted, or
// the claim may end. There are too many orders to run them all.
func TestCompactionInAnyOrder(t *testing.T) {
	orders, compacted, rng := testrun.Rounds(500, 3000), [3]int{}, testrun.Rand(t)
	for range orders {
		synctest.Test(t, func(t *testing.T) { compacted[compactionOrder(t, rng.IntN)]++ })
		if t.Failed() {
			return
		}
	}
	t.Logf("of %d orders so many compacted no, one and both repos: %v", orders, compacted)
	if min(compacted[0], compacted[1], compacted[2]) < orders/50 {
		t.Error("the claim or the repo ends too early or too late in nearly all of them")
	}
}

// compactionOrder runs one order and says how many repos were compacted.
func compactionOrder(t *testing.T, choose func(int) int) (compacted int) {
	w := newWorld(t)
	ctx := t.Context()
	for _, repo := range []string{"a", "b"} {
		w.want(repo)
		lease, err := w.truth.AcquireLease(ctx, repo, leaseTTL)
		if err != nil {
			t.Fatal(err)
		}
		next, err := attempt(ctx, w.bucket, lease, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.truth.Publish(ctx, lease, nil, next); err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := planAll(ctx, w.truth); err != nil {
		t.Fatal(err)
	}
	abandoned, err := w.truth.Claim(ctx, w.only(ctx), leaseTTL, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pack(ctx, w.bucket, abandoned); err != nil {
		t.Fatal(err)
	}
	if err := abandoned.Release(ctx); err != nil {
		t.Fatal(err)
	}
	w.takeTurns(choose,
		w.start(func(a *actor) { compacted = w.compact(a) }),
		w.start(w.collectTwice),
		w.start(func(a *actor) {
			for range choose(12) {
				a.step()
			}
			switch choose(3) {
			case 0:
				_, err := w.truth.DeleteRepo(context.Background(), "b")
				if err != nil {
					t.Error(err)
				}
			case 1:
				w.etcd.Expire(catalog.DefaultPrefix + "claims/" + w.only(context.Background()).Name)
			}
		}),
	)
	w.checkClean()
	return compacted
}

func (w *world) only(ctx context.Context) catalog.Compaction {
	all, err := w.truth.ListCompactions(ctx)
	if err != nil || len(all) != 1 {
		w.t.Errorf("%d compactions, %v", len(all), err)
		return catalog.Compaction{}
	}
	return all[0]
}

// compact is one honest compaction; it says how many repos it did.
func (w *world) compact(a *actor) int {
	ctx := context.Background()
	claim, err := catalog.New(gated(w.etcd.Client(nil), a), "").Claim(ctx, w.only(ctx), leaseTTL, time.Time{})
	if err != nil {
		return 0 // the time of a hold was more than that of its lease
	}
	defer claim.Release(ctx)
	flips, err := pack(ctx, w.gatedBucket(a), claim)
	if err != nil && !errors.Is(err, catalog.ErrLeaseLost) {
		w.t.Error(err)
	}
	done, err := claim.ReplaceShards(ctx, flips)
	w.check("after a flip")
	if err != nil && !errors.Is(err, catalog.ErrLeaseLost) {
		w.t.Error(err)
	}
	return len(done)
}
