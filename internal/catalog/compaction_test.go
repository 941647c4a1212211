package catalog_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// planned publishes repos and plans one compaction of all of them.
func planned(t *testing.T, s *catalog.Store, repos ...string) catalog.Compaction {
	t.Helper()
	work := &catalogv1.Compaction{}
	for _, repo := range repos {
		putDesired(t, s, repo)
		publish(t, s, repo)
		root, err := s.GetRoot(t.Context(), repo)
		if err != nil {
			t.Fatal(err)
		}
		work.Inputs = append(work.Inputs, &catalogv1.CompactionInput{Repo: repo, Revision: root.Revision})
	}
	for range 2 { // the second one changes nothing
		if err := s.PlanCompaction(t.Context(), work); err != nil {
			t.Fatal(err)
		}
	}
	return only(t, s)
}

func only(t *testing.T, s *catalog.Store) catalog.Compaction {
	t.Helper()
	all, err := s.ListCompactions(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v; want one compaction", all, err)
	}
	return all[0]
}

// later is when an attempt that fails may be repeated.
var later = time.Unix(2_000_000_000, 0)

func claim(t *testing.T, s *catalog.Store, c catalog.Compaction) *catalog.Claim {
	t.Helper()
	claim, err := s.Claim(t.Context(), c, time.Minute, later)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
		defer cancel()
		_ = claim.Release(ctx)
	})
	return claim
}

// replacements moves all roots that the claim may replace into one shard.
func replacements(t *testing.T, c *catalog.Claim) (all []catalog.Replacement) {
	t.Helper()
	roots, err := c.Roots(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(fmt.Append(nil, c.Fence()))
	for _, root := range roots {
		next := proto.CloneOf(root.Record)
		next.Generation++
		next.Shards = []*catalogv1.ShardRef{{Digest: digest[:], Key: catalog.ShardKey(c.Fence(), digest)}}
		next.ManifestKey = catalog.ManifestKey(c.Fence(), next.Repo, next.Generation, digest)
		all = append(all, catalog.Replacement{Old: root, Next: next})
	}
	return all
}

// TestFlipManyRepos: more repos than one transaction takes, and a repeated call.
func TestFlipManyRepos(t *testing.T) {
	s := newStore(t)
	var repos []string
	for i := range 150 {
		repos = append(repos, fmt.Sprintf("repo-%03d", i))
	}
	c := claim(t, s, planned(t, s, repos...))
	all := replacements(t, c)
	for range 2 {
		done, err := c.ReplaceShards(t.Context(), all)
		slices.Sort(done)
		if err != nil || !slices.Equal(done, repos) {
			t.Fatalf("done are %d of %d: %v", len(done), len(repos), err)
		}
	}
	revisions := map[int64]int{}
	for root, err := range s.ListRoots(t.Context()) {
		if err != nil || root.Record.Generation != 2 || root.Record.Fence != c.Fence() || len(root.Record.Shards) != 1 {
			t.Fatalf("%v, %v", root, err)
		}
		revisions[root.Revision]++
	}
	if len(revisions) != 3 {
		t.Errorf("%d transactions, want 3", len(revisions))
	}
	now, err := s.CurrentRevision(t.Context())
	if err != nil || revisions[now] == 0 {
		t.Errorf("the clock is at %d, %v", now, err)
	}
}

// inTheWay is what happens to repo-b between the reading of its root and the flip.
var inTheWay = map[string]func(*testing.T, *catalog.Store){
	"a job has it": func(t *testing.T, s *catalog.Store) { acquire(t, s, "repo-b") },
	"a job published": func(t *testing.T, s *catalog.Store) {
		lease := acquire(t, s, "repo-b")
		if _, err := s.Publish(t.Context(), lease, lease.Root(), nextRoot(lease)); err != nil {
			t.Fatal(err)
		}
		release(t, lease)
	},
	"only its epoch advanced": func(t *testing.T, s *catalog.Store) {
		putDesired(t, s, "repo-b")
		lease := acquire(t, s, "repo-b")
		next := proto.CloneOf(lease.Root().Record)
		next.Epoch++
		if _, err := s.Publish(t.Context(), lease, lease.Root(), next); err != nil {
			t.Fatal(err)
		}
		release(t, lease)
	},
	"it was deleted": func(t *testing.T, s *catalog.Store) {
		if _, err := s.DeleteRepo(t.Context(), "repo-b"); err != nil {
			t.Fatal(err)
		}
	},
	"it was deleted and is back": func(t *testing.T, s *catalog.Store) {
		if _, err := s.DeleteRepo(t.Context(), "repo-b"); err != nil {
			t.Fatal(err)
		}
		putDesired(t, s, "repo-b")
		publish(t, s, "repo-b")
	},
}

func TestFlipGivesWay(t *testing.T) {
	for name, happens := range inTheWay {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			c := claim(t, s, planned(t, s, "repo-a", "repo-b", "repo-c"))
			all := replacements(t, c)
			happens(t, s)
			before, err := s.GetRoot(t.Context(), "repo-b")
			if err != nil && !errors.Is(err, catalog.ErrNotFound) {
				t.Fatal(err)
			}
			done, err := c.ReplaceShards(t.Context(), all)
			if err != nil || !slices.Equal(done, []string{"repo-a", "repo-c"}) {
				t.Errorf("done are %q, %v", done, err)
			}
			after, _ := s.GetRoot(t.Context(), "repo-b")
			if after.Revision != before.Revision {
				t.Errorf("root %v became %v", before, after)
			}
			if roots, err := c.Roots(t.Context()); err != nil || len(roots) != 0 {
				t.Errorf("still to do are %v, %v", roots, err)
			}
		})
	}
}

// TestJobAfterReplacement: a job that begins after the flip works from the new root.
func TestJobAfterReplacement(t *testing.T) {
	s := newStore(t)
	c := claim(t, s, planned(t, s, "repo"))
	if _, err := c.ReplaceShards(t.Context(), replacements(t, c)); err != nil {
		t.Fatal(err)
	}
	lease := acquire(t, s, "repo")
	if lease.Root().Record.Generation != 2 || lease.NextGeneration() != 3 {
		t.Fatalf("root %v, next generation %d", lease.Root().Record, lease.NextGeneration())
	}
	next := nextRoot(lease)
	next.Shards = append(next.Shards, lease.Root().Record.Shards...) // of the pack
	if _, err := s.Publish(t.Context(), lease, lease.Root(), next); err != nil {
		t.Error(err)
	}
}

func TestFlipIsTheSameGenerationElsewhere(t *testing.T) {
	s := newStore(t)
	c := claim(t, s, planned(t, s, "repo"))
	foreign := sha256.Sum256([]byte("foreign"))
	for name, spoil := range map[string]func(*catalogv1.Root){
		"generation":     func(r *catalogv1.Root) { r.Generation++ },
		"same":           func(r *catalogv1.Root) { r.Generation-- },
		"epoch":          func(r *catalogv1.Root) { r.Epoch++ },
		"branches":       func(r *catalogv1.Root) { r.Branches = append(r.Branches, &catalogv1.Branch{Name: "x"}) },
		"inputs":         func(r *catalogv1.Root) { r.Inputs = []byte("x") },
		"repo":           func(r *catalogv1.Root) { r.Repo = "other" },
		"foreign object": func(r *catalogv1.Root) { r.Shards[0].Key = catalog.ShardKey(c.Fence()+1, foreign) },
	} {
		all := replacements(t, c)
		spoil(all[0].Next)
		if _, err := c.ReplaceShards(t.Context(), all); !errors.Is(err, catalog.ErrGeneration) && !errors.Is(err, catalog.ErrForeignObject) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if root, err := s.GetRoot(t.Context(), "repo"); err != nil || root.Record.Generation != 1 {
		t.Errorf("%v, %v", root, err)
	}
}

// TestClaimIsExclusive: one indexer at a time does a compaction, and an indexer that
// lost the claim can change nothing.
func TestClaimIsExclusive(t *testing.T) {
	s := newStore(t)
	work := planned(t, s, "repo")
	first := claim(t, s, work)
	if _, err := s.Claim(t.Context(), only(t, s), time.Second, later); !errors.Is(err, catalog.ErrLeased) {
		t.Errorf("second claim: %v", err)
	}
	if err := s.ReplaceCompaction(t.Context(), only(t, s)); err != nil || !only(t, s).Claimed {
		t.Errorf("a claimed compaction was replaced: %v", err)
	}
	all := replacements(t, first)
	if err := first.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context(), work, time.Second, later); !errors.Is(err, catalog.ErrStale) {
		t.Errorf("claim of what was read before: %v", err)
	}
	second := claim(t, s, only(t, s))
	if second.Fence() <= first.Fence() || second.Work().Attempts != 2 {
		t.Errorf("fence %d after %d, %d attempts", second.Fence(), first.Fence(), second.Work().Attempts)
	}
	for what, err := range map[string]error{
		"replace": func() error { _, err := first.ReplaceShards(t.Context(), all); return err }(),
		"roots":   func() error { _, err := first.Roots(t.Context()); return err }(),
		"pack":    first.NotePack(t.Context(), &catalogv1.Pack{Key: "shards/x"}),
		"done":    first.Done(t.Context()),
		"failed":  first.Failed(t.Context(), errors.New("x")),
	} {
		if !errors.Is(err, catalog.ErrLeaseLost) {
			t.Errorf("%s without the claim: %v", what, err)
		}
	}
	if err := second.Failed(t.Context(), errors.New(strings.Repeat("ü", 1000))); err != nil {
		t.Fatal(err)
	}
	if r := only(t, s).Record; !r.NotBefore.AsTime().Equal(later) || r.Attempts != 2 || !strings.HasPrefix(r.Error, "üü") || len(r.Error) > 500 {
		t.Errorf("after a failure: %v", r)
	}
	if err := second.Done(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all, err := s.ListCompactions(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("left are %v, %v", all, err)
	}
}

func TestReplaceCompaction(t *testing.T) {
	s := newStore(t)
	work := planned(t, s, "repo-a", "repo-b")
	parts := []*catalogv1.Compaction{{Inputs: work.Record.Inputs[:1]}, {Inputs: work.Record.Inputs[1:]}}
	if err := s.ReplaceCompaction(t.Context(), work, parts...); err != nil {
		t.Fatal(err)
	}
	all, err := s.ListCompactions(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%v, %v", all, err)
	}
	if err := s.ReplaceCompaction(t.Context(), work); err != nil { // gone already
		t.Error(err)
	}
	for _, part := range all {
		if err := s.ReplaceCompaction(t.Context(), part); err != nil {
			t.Error(err)
		}
	}
	if all, err := s.ListCompactions(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("left are %v, %v", all, err)
	}
}

// TestReplaceWhatChanged: a compaction stays if an attempt was counted since it was
// read, and it still counts that attempt when it is planned again.
func TestReplaceWhatChanged(t *testing.T) {
	s := newStore(t)
	read := planned(t, s, "repo")
	if err := claim(t, s, read).Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.ReplaceCompaction(t.Context(), read); err != nil {
		t.Fatal(err)
	}
	if err := s.PlanCompaction(t.Context(), &catalogv1.Compaction{Inputs: read.Record.Inputs}); err != nil { // is there already
		t.Fatal(err)
	}
	if c := only(t, s); c.Record.Attempts != 1 {
		t.Errorf("left is %v", c.Record)
	}
}

// TestClaimKeepsItsObjects: an object made under a claim is garbage as soon as the
// claim has ended, and not before.
func TestClaimKeepsItsObjects(t *testing.T) {
	s := newStore(t)
	c := claim(t, s, planned(t, s, "repo"))
	key := replacements(t, c)[0].Next.Shards[0].Key
	reach, err := s.Reach(t.Context())
	if err != nil || !reach.Pending(key) || reach.Garbage(key) {
		t.Errorf("under the claim: %v", err)
	}
	if err := c.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if reach, err = s.Reach(t.Context()); err != nil || !reach.Garbage(key) {
		t.Errorf("after the claim: %v", err)
	}
}

func TestPacks(t *testing.T) {
	s := newStore(t)
	c := claim(t, s, planned(t, s, "repo"))
	for key, repos := range map[string][]string{"shards/one": {"a", "b"}, "shards/two": {"b", "c"}} {
		if err := c.NotePack(t.Context(), &catalogv1.Pack{Key: key, Repos: repos, MadeAt: timestamppb.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(repo string, want ...string) {
		t.Helper()
		got, err := s.PacksOf(t.Context(), repo)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s is in %q, %v, want %q", repo, got, err, want)
		}
	}
	check("a", "shards/one")
	check("b", "shards/one", "shards/two")
	check("d")
	for pack, err := range s.ListPacks(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if pack.Record.Key == "shards/one" {
			if err := s.ForgetPack(t.Context(), pack); err != nil {
				t.Fatal(err)
			}
		}
	}
	check("a")
	check("b", "shards/two")
}

func TestLives(t *testing.T) {
	s := newStore(t)
	putDesired(t, s, "a")
	putDesired(t, s, "b")
	first, err := s.Lives(t.Context())
	if err != nil || len(first) != 2 {
		t.Fatalf("%v, %v", first, err)
	}
	putDesired(t, s, "a")
	if _, err := s.DeleteRepo(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	putDesired(t, s, "b")
	second, err := s.Lives(t.Context())
	if err != nil || second["a"] != first["a"] || second["b"] <= first["b"] {
		t.Errorf("%v after %v, %v", second, first, err)
	}
}
