package search

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// TestLookingAtNamesEndsAndIsCharged: what the router itself does with the names of very many repos
// ends with the time of the query, and the caller is charged for it.
func TestLookingAtNamesEndsAndIsCharged(t *testing.T) {
	var roots []*catalogv1.Root
	for i := range 5000 {
		digest := searchapi.Digest{byte(i), byte(i >> 8), 1}
		roots = append(roots, &catalogv1.Root{Repo: fmt.Sprintf("host/repo-%d", i), Shards: []*catalogv1.ShardRef{{Digest: digest[:], Repos: 1}}})
	}
	layout, err := NewLayout(1, roots)
	if err != nil {
		t.Fatal(err)
	}
	const text = "x r:(nowhere|none)$"
	tree, err := searchapi.Parse(text, 1)
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	usage := newUsage(1e-6, nil, nil) // a bucket of 60 µs, which gets one in a second
	run := func(caller string) *execution {
		return &execution{
			service: &Service{expressions: regex.NewProcessMemory()}, ticket: &ticket{slot: &slot{caller: caller}, usage: usage},
			asked: &question{text: text, written: text, version: 1}, layout: layout, tree: tree,
			coverage: searchapi.OpenAccount(len(roots)), compiled: newExpressions(nil),
		}
	}
	if got := run("a").empty(ended, &searchPage{}); got != nil {
		t.Errorf("after the end of its time: %v", got)
	}
	if got := run("b").empty(t.Context(), &searchPage{}); got == nil || got.Repos != 0 || len(got.Hints) != 1 {
		t.Errorf("in time: %v", got)
	}
	if _, err := run("c").prune(t.Context(), tree); err != nil {
		t.Error(err)
	}
	if _, err := run("d").prune(ended, tree); err == nil {
		t.Error("a plan after the end of its time")
	}
	for _, caller := range []string{"b", "c"} {
		if left := usage.processor.Of(caller).Tokens(); left > 59 {
			t.Errorf("caller %s has %v µs left of 60", caller, left)
		}
	}
}

// TestFewMissingReposAreNamed: an account of very many repos names as many shards as have few repos together, each with all of them, and
// counts the others.
func TestFewMissingReposAreNamed(t *testing.T) {
	const perShard = 1000
	for _, shards := range []int{1, namedRepos / perShard, namedRepos/perShard + 7} {
		var roots []*catalogv1.Root
		for i := range shards * perShard {
			digest := searchapi.Digest{byte(i / perShard), 1}
			roots = append(roots, &catalogv1.Root{Repo: fmt.Sprintf("host/%06d", i), Shards: []*catalogv1.ShardRef{{
				Digest: digest[:], Repos: perShard, RepoNumber: uint32(i % perShard),
			}}})
		}
		layout, err := NewLayout(1, roots)
		if err != nil {
			t.Fatal(err)
		}
		c := searchapi.NewAccount(layout.All()).Coverage()
		layout.nameUncovered(c)
		named := min(shards, namedRepos/perShard)
		if len(c.Uncovered) != named || c.UncoveredLeftOut != uint64(shards-named) || c.NotReached != uint64(shards) {
			t.Errorf("of %d shards %d are named, and %d left out", shards, len(c.Uncovered), c.UncoveredLeftOut)
		}
		for _, u := range c.Uncovered {
			if len(u.Repos) != perShard {
				t.Errorf("a shard of %d repos names %d", perShard, len(u.Repos))
			}
		}
	}
}

// TestOneCallGroupsTheRoots: all queries after a publication share one layout.
func TestOneCallGroupsTheRoots(t *testing.T) {
	snapshot := &catalog.Snapshot{Revision: 1}
	for range 50 {
		r := NewRoots(nil)
		var layouts [8]*snapshotLayouts
		var all sync.WaitGroup
		for i := range layouts {
			all.Go(func() { layouts[i], _ = r.group(t.Context(), snapshot) })
		}
		all.Wait()
		for _, l := range layouts {
			if l == nil || l != layouts[0] {
				t.Fatalf("layouts %v", layouts)
			}
		}
	}
	r := NewRoots(nil)
	r.grouping <- struct{}{} // another call groups
	ended, cancel := context.WithCancel(access.With(t.Context(), access.Anyone))
	cancel()
	if _, err := r.group(ended, snapshot); err == nil {
		t.Error("it waits longer than its caller")
	}
}
