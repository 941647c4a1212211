package catalog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

func claimPack(t *testing.T, s *catalog.Store) *catalog.PackClaim {
	t.Helper()
	pack, err := s.ClaimPack(t.Context(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { releasePack(t, pack) })
	return pack
}

func releasePack(t *testing.T, pack *catalog.PackClaim) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
	defer cancel()
	if err := pack.Release(ctx); err != nil {
		t.Error(err)
	}
}

// TestPackedRoots: repos that share a shard are published one by one, each under its own lease, while
// the claim of the shard is held and no longer. An object is no garbage as long as it may be published.
func TestPackedRoots(t *testing.T) {
	s := newStore(t)
	leases := map[string]*catalog.Lease{}
	for _, repo := range []string{"a", "b", "c", "lost"} {
		putDesired(t, s, repo)
		leases[repo] = acquire(t, s, repo)
	}
	pack := claimPack(t, s)
	shard := catalog.ShardKey(pack.Fence(), [32]byte{1})
	packed := func(repo string) *catalogv1.Root {
		l := leases[repo]
		root := rootWith(l, catalog.ManifestKey(l.Fence(), repo, 1, [32]byte{2}), shard)
		root.Repo = repo
		return root
	}
	if _, err := s.Publish(t.Context(), leases["a"], nil, packed("a")); !errors.Is(err, catalog.ErrForeignObject) {
		t.Errorf("published without the claim: %v", err)
	}
	if r := reach(t, s); r.Garbage(shard) || !r.Pending(shard) || r.Settled != pack.Fence() {
		t.Errorf("while the claim is held: garbage %v, pending %v, settled %d, want %d", r.Garbage(shard), r.Pending(shard), r.Settled, pack.Fence())
	}
	first, err := s.PublishPacked(t.Context(), leases["a"], pack, packed("a"))
	if err != nil {
		t.Fatal(err)
	}
	if again, err := s.PublishPacked(t.Context(), leases["a"], pack, packed("a")); err != nil || again != first {
		t.Errorf("its own root is published at %d, %v, and was at %d", again, err, first)
	}
	release(t, leases["lost"])
	if _, err := s.PublishPacked(t.Context(), leases["lost"], pack, packed("lost")); !errors.Is(err, catalog.ErrLeaseLost) {
		t.Errorf("published without a lease: %v", err)
	}
	if _, err := s.DeleteRepo(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.PublishPacked(t.Context(), leases["b"], pack, packed("b")); !errors.Is(err, catalog.ErrNotDesired) {
		t.Errorf("published after its deletion: %v", err)
	}
	releasePack(t, pack)
	if _, err := s.PublishPacked(t.Context(), leases["c"], pack, packed("c")); !errors.Is(err, catalog.ErrLeaseLost) {
		t.Errorf("published after the claim: %v", err)
	}
	if err := pack.NotePack(t.Context(), &catalogv1.Pack{Key: shard}); !errors.Is(err, catalog.ErrLeaseLost) {
		t.Errorf("noted after the claim: %v", err)
	}
	if r := reach(t, s); r.Garbage(shard) {
		t.Error("a shard that a root names is garbage")
	}
	if _, err := s.DeleteRepo(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if r := reach(t, s); !r.Garbage(shard) {
		t.Error("a shard that no root names any more is no garbage")
	}
}

// TestHeldLeases: a repo goes into a pack only if it was not deleted before the claim, so that a deletion finds every
// pack with bytes of the repo.
func TestHeldLeases(t *testing.T) {
	s := newStore(t)
	var leases []*catalog.Lease
	var want []bool
	for i := range 130 { // more than one transaction takes
		repo := fmt.Sprintf("repo-%03d", i)
		putDesired(t, s, repo)
		leases, want = append(leases, acquire(t, s, repo)), append(want, true)
	}
	deleted, err := s.DeleteRepo(t.Context(), "repo-007")
	if err != nil {
		t.Fatal(err)
	}
	release(t, leases[100])
	acquire(t, s, "repo-100") // by another job
	want[7], want[100] = false, false
	pack := claimPack(t, s)
	held, err := pack.Held(t.Context(), leases)
	if err != nil || !slices.Equal(held, want) {
		t.Fatalf("held are %v, %v", held, err)
	}
	var names []string
	for i, l := range leases {
		if held[i] {
			names = append(names, l.Desired().GetName())
		}
	}
	later, err := s.DeleteRepo(t.Context(), "repo-008") // while the shard is built
	if err != nil {
		t.Fatal(err)
	}
	record := &catalogv1.Pack{Key: catalog.ShardKey(pack.Fence(), [32]byte{1}), Repos: names, MadeAt: timestamppb.Now()}
	if err := pack.NotePack(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	for repo, d := range map[string]struct {
		revision int64
		packs    int
	}{"repo-007": {deleted, 0}, "repo-008": {later, 1}} {
		if left, err := s.Deletion(t.Context(), repo, d.revision); err != nil || left.Packs != d.packs {
			t.Errorf("%s is in %d packs, %v; want %d", repo, left.Packs, err, d.packs)
		}
	}
	releasePack(t, pack)
	if _, err := pack.Held(t.Context(), leases); !errors.Is(err, catalog.ErrLeaseLost) {
		t.Errorf("after the claim: %v", err)
	}
}
