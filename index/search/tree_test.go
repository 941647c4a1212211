package search_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
)

// treeOf lists a tree by brute force: the path of each entry with its size and language, or its number of files.
func treeOf(r *indextest.Repo, branch, folder string, depth int) (entries []string) {
	files := map[string]int{}
	for _, d := range r.Documents {
		below, inside := strings.CutPrefix(d.Path, folder)
		if !inside || !slices.Contains(d.Branches, branch) {
			continue
		}
		parts := strings.SplitAfter(below, "/")
		if len(parts) > depth {
			files[folder+strings.Join(parts[:depth], "")]++
			continue
		}
		size := uint64(len(d.Content))
		if d.Skipped {
			size = 0 // the corpus does not say it
		}
		entries = append(entries, fmt.Sprintf("%s %d %s %v", d.Path, size, d.Language, d.Skipped))
	}
	for path, n := range files {
		entries = append(entries, fmt.Sprintf("%s of %d", path, n))
	}
	path := func(e string) string { return e[:strings.LastIndex(e[:strings.LastIndex(e, " ")], " ")] }
	slices.SortFunc(entries, func(a, b string) int { return cmp.Compare(path(a), path(b)) })
	return entries
}

// listed reads a tree in parts.
func listed(t *testing.T, s *search.Shard, repo string, of search.Options, opts search.TreeOptions) (entries []string) {
	t.Helper()
	for more := true; more; {
		tree, err := s.Tree(context.Background(), repo, of, opts)
		if err != nil {
			t.Fatal(err)
		}
		if more = tree.More; more && len(tree.Entries) == 0 || len(tree.Entries) > max(opts.MaxEntries, 1) {
			t.Fatalf("a part of %d entries, at most %d, more %v", len(tree.Entries), opts.MaxEntries, more)
		}
		for _, e := range tree.Entries {
			if opts.After = e.Path; e.Files > 0 {
				entries = append(entries, fmt.Sprintf("%s of %d", e.Path, e.Files))
				continue
			}
			if e.Skip != 0 {
				e.Size = 0
			}
			entries = append(entries, fmt.Sprintf("%s %d %s %v", e.Path, e.Size, e.Language, e.Skip != 0))
		}
	}
	return entries
}

// TestTreeIsThatOfTheDocuments: whatever the folder, the depth and the size of the parts, a tree has exactly the entries of the documents,
// before and after a push that replaced documents and changed branches.
func TestTreeIsThatOfTheDocuments(t *testing.T) {
	for seed := range uint64(12) {
		c := someTests(indextest.Random(seed))
		rnd := rand.New(rand.NewPCG(seed, 7))
		overlays, rest := change(c, rnd)
		s := openShard(t, buildShard(t, c))
		compare := func(r *indextest.Repo, of search.Options) {
			folders := []string{"", "no/such/"}
			for _, d := range r.Documents {
				for i := range d.Path {
					if d.Path[i] == '/' {
						folders = append(folders, d.Path[:i+1])
					}
				}
			}
			slices.Sort(folders)
			for _, folder := range slices.Compact(folders) {
				for _, branch := range append(slices.Clone(r.Branches), "no such branch") {
					depth := 1 + rnd.IntN(4)
					opts := search.TreeOptions{Branch: branch, Folder: []byte(folder), Depth: uint32(depth), MaxEntries: rnd.IntN(20), MaxBytes: rnd.IntN(200)}
					got, want := listed(t, s, r.Name, of, opts), treeOf(r, branch, folder, depth)
					if !slices.Equal(got, want) {
						t.Fatalf("seed %d, %s, %q on %s to depth %d:\n got %q\nwant %q", seed, r.Name, folder, branch, depth, got, want)
					}
				}
			}
		}
		for i := range c.Repos {
			compare(&c.Repos[i], search.Options{})
			compare(&rest.Repos[i], search.Options{Overlays: overlays})
		}
		if got := listed(t, s, "no/such/repo", search.Options{}, search.TreeOptions{Branch: "main", Depth: 1}); len(got) > 0 {
			t.Errorf("a tree of a repo that is not there: %q", got)
		}
	}
}

// TestTreeEnds: a canceled listing ends.
func TestTreeEnds(t *testing.T) {
	c := &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}}}}
	for i := range 100 {
		d := indextest.Document{Path: fmt.Sprintf("a/%02d", i), Content: []byte("x"), Branches: []string{"main"}}
		c.Repos[0].Documents = append(c.Repos[0].Documents, d)
	}
	s := openShard(t, buildShard(t, c))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if tree, err := s.Tree(ctx, "r", search.Options{}, search.TreeOptions{Branch: "main", Depth: 1, MaxEntries: 9, MaxBytes: 9999}); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v, %v", tree, err)
	}
}
