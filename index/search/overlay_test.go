package search_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
)

// numberOf is the number that a repo of a corpus has in a shard of it.
func numberOf(c *indextest.Corpus, repo string) (n int) {
	for _, r := range c.Repos {
		if r.Name < repo {
			n++
		}
	}
	return n
}

// change hides documents of a corpus and changes branches of its repos. It returns the overlays for
// a shard of the corpus, and the corpus after the changes.
func change(c *indextest.Corpus, rnd *rand.Rand) (map[int]search.Overlay, *indextest.Corpus) {
	overlays := map[int]search.Overlay{}
	rest := &indextest.Corpus{Name: c.Name}
	for _, r := range c.Repos {
		docs := slices.SortedFunc(slices.Values(r.Documents), func(a, b indextest.Document) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), bytes.Compare(a.Object(), b.Object()))
		})
		share := rnd.IntN(5)
		var numbers []uint32
		var o search.Overlay
		rename := func(branches []string) []string { return branches }
		if rnd.IntN(2) == 0 {
			o.Branches, rename = rearrange(&r, rnd)
		}
		r.Documents = nil
		for i, d := range docs {
			was := d.Branches
			d.Branches = rename(was)
			renamed := d.Skipped && !slices.Equal(was, d.Branches) // its Git object then differs
			if rnd.IntN(4) < share || len(d.Branches) == 0 || renamed {
				numbers = append(numbers, uint32(i))
			} else {
				r.Documents = append(r.Documents, d)
			}
		}
		o.Hidden = docstore.SetOf(numbers)
		overlays[numberOf(c, r.Name)] = o
		rest.Repos = append(rest.Repos, r)
	}
	overlays[len(c.Repos)] = search.Overlay{Hidden: docstore.SetOf([]uint32{0}), Branches: []search.Branch{{Name: "main"}}}
	return overlays, rest
}

// rearrange gives a repo other branches: some stay, some are renamed, and some become several. It
// returns them and a function that maps the branches of a document.
func rearrange(r *indextest.Repo, rnd *rand.Rand) (branches []search.Branch, rename func([]string) []string) {
	before := r.Branches
	r.Branches = nil
	for i := range 1 + rnd.IntN(4) {
		b := search.Branch{Name: fmt.Sprintf("next/%d", i), Place: rnd.IntN(len(before)+1) - 1}
		if name := before[rnd.IntN(len(before))]; rnd.IntN(2) == 0 && !slices.Contains(r.Branches, name) {
			b.Name = name
		}
		branches, r.Branches = append(branches, b), append(r.Branches, b.Name)
	}
	return branches, func(names []string) (now []string) {
		for _, b := range branches {
			if b.Place >= 0 && slices.Contains(names, before[b.Place]) {
				now = append(now, b.Name)
			}
		}
		return now
	}
}

// TestOverlay: a shard with hidden documents and changed branches answers like a shard built from
// what is left: files, scores, counts, pages of the best, lists, and files by path. It takes all
// corpora even in short runs, because few of them have branches in another order.
func TestOverlay(t *testing.T) {
	for seed := range uint64(12) {
		c := someTests(indextest.Random(seed))
		rnd := rand.New(rand.NewPCG(seed, 3))
		overlays, rest := change(c, rnd)
		have, want := openShard(t, buildShard(t, c)), openShard(t, buildShard(t, rest))
		for i, q := range indextest.Queries(c, seed+3000, 60) {
			tree, err := query.Parse(q.Text, query.ParseOptions{SyntaxVersion: query.MaxSyntaxVersion})
			if err == nil {
				tree, err = indextest.Resolve(rest, tree)
			}
			if err != nil {
				t.Fatal(err)
			}
			ready, err := search.Prepare(tree)
			if err != nil {
				continue // the oracle's tests cover this
			}
			what := fmt.Sprintf("seed %d, %s", seed, q.Text)
			opts := search.Options{MaxFiles: 1 + rnd.IntN(10), MaxMatchesPerFile: 5, ContextLines: 1, After: somewhere(want, ready, rnd)}
			compareSearches(t, what, have, want, ready, opts, overlays, i%3)
			compareLists(t, what, have, want, ready, overlays)
		}
		compareFiles(t, have, c, rest, overlays)
	}
}

func compareSearches(t *testing.T, what string, have, want *search.Shard, q *search.Query, opts search.Options, overlays map[int]search.Overlay, helpers int) {
	t.Helper()
	whole := run(t, want, q, opts)
	opts.Overlays = overlays
	if got := run(t, have, q, search.WithHelpers(opts, helpers)); !sameAnswer(got, whole) {
		t.Fatalf("%s: %+v\nwant %+v", what, got, whole)
	}
	opts.Mode = search.TopK
	got := run(t, have, q, search.WithHelpers(opts, helpers))
	if !sameFiles(got.Files, whole.Files) || got.Stats.FilesMatched > whole.Stats.FilesMatched {
		t.Fatalf("%s, best %d after %v: %v of %d\nwant %v of %d", what, opts.MaxFiles, opts.After,
			got.Files, got.Stats.FilesMatched, whole.Files, whole.Stats.FilesMatched)
	}
}

func compareLists(t *testing.T, what string, have, want *search.Shard, q *search.Query, overlays map[int]search.Overlay) {
	t.Helper()
	whole, err := want.List(context.Background(), q, search.ListOptions{MaxSkippedFiles: 3})
	got, gotErr := have.List(context.Background(), q, search.ListOptions{MaxSkippedFiles: 3, Overlays: overlays})
	if err != nil || gotErr != nil {
		t.Fatalf("%s: list: %v, %v", what, err, gotErr)
	}
	for _, list := range []*search.ListResult{whole, got} {
		for i := range list.Repos {
			list.Repos[i].Repo.FirstDoc, list.Repos[i].Repo.Docs, list.Repos[i].Repo.Branches = 0, 0, nil // they depend on the shard
		}
	}
	if !reflect.DeepEqual(got.Repos, whole.Repos) || !errors.Is(got.Incomplete, whole.Incomplete) {
		t.Fatalf("%s: lists %+v\nwant %+v", what, got, whole)
	}
}

// compareFiles requests every path of c on every branch, before and after.
func compareFiles(t *testing.T, s *search.Shard, c, rest *indextest.Corpus, overlays map[int]search.Overlay) {
	t.Helper()
	for i, r := range c.Repos {
		want := map[[2]string]*indextest.Document{}
		for _, d := range rest.Repos[i].Documents {
			for _, b := range d.Branches {
				want[[2]string{d.Path, b}] = &d
			}
		}
		for _, d := range r.Documents {
			for _, branch := range slices.Concat(r.Branches, rest.Repos[i].Branches, []string{""}) {
				f, err := s.File(context.Background(), r.Name, []byte(d.Path), branch, search.Options{Overlays: overlays}, search.Part{})
				on := slices.DeleteFunc(slices.Clone(rest.Repos[i].Branches), func(b string) bool { return want[[2]string{d.Path, b}] == nil })
				d := want[[2]string{d.Path, cmp.Or(branch, strings.Join(on[:min(1, len(on))], ""))}]
				switch {
				case d != nil && (err != nil || !bytes.Equal(f.Content, d.Content) || !slices.Equal(f.Branches, d.Branches)):
					t.Fatalf("corpus %s: %q of %s on %q: %+v, %v", c.Name, d.Path, r.Name, branch, f, err)
				case d == nil && !errors.Is(err, search.ErrNoFile):
					t.Fatalf("corpus %s: a file of %s that is not on %q: %+v, %v", c.Name, r.Name, branch, f, err)
				}
			}
		}
	}
}
