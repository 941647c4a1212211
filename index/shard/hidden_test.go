package shard_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/trawl-search/trawl/index/docset"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/shard"
)

// hideSome chooses documents of a corpus: it returns them by their numbers in a
// shard of the corpus, and the corpus without them.
func hideSome(c *indextest.Corpus, rnd *rand.Rand) (map[string]docset.Set, *indextest.Corpus) {
	hidden := map[string]docset.Set{}
	rest := &indextest.Corpus{Name: c.Name}
	for _, r := range c.Repos {
		docs := slices.SortedFunc(slices.Values(r.Documents), func(a, b indextest.Document) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), bytes.Compare(objectID(a), objectID(b)))
		})
		share := rnd.IntN(5)
		var numbers []uint32
		r.Documents = nil
		for i, d := range docs {
			if rnd.IntN(4) < share {
				numbers = append(numbers, uint32(i))
			} else {
				r.Documents = append(r.Documents, d)
			}
		}
		hidden[r.Name] = docset.Of(numbers)
		rest.Repos = append(rest.Repos, r)
	}
	hidden["a repo that is not there"] = docset.Of([]uint32{0})
	return hidden, rest
}

// TestHiddenIsNotThere: a shard of which documents are hidden answers as one that
// was built without them: files, scores, counts, pages of the best, lists, files by path.
func TestHiddenIsNotThere(t *testing.T) {
	for seed := range corpora(12) {
		c := someTests(indextest.Random(seed))
		rnd := rand.New(rand.NewPCG(seed, 3))
		hidden, rest := hideSome(c, rnd)
		have, want := openShard(t, buildShard(t, c)), openShard(t, buildShard(t, rest))
		for i, q := range indextest.Queries(c, seed+3000, 60) {
			tree, err := query.Parse(q.Text, query.ParseOptions{})
			if err == nil {
				tree, err = indextest.Resolve(rest, tree)
			}
			if err != nil {
				t.Fatal(err)
			}
			ready, err := shard.Prepare(tree)
			if err != nil {
				continue // as the oracle's tests know
			}
			what := fmt.Sprintf("seed %d, %s", seed, q.Text)
			opts := shard.Options{MaxFiles: 1 + rnd.IntN(10), MaxMatchesPerFile: 5, ContextLines: 1, After: somewhere(want, ready, rnd)}
			compareSearches(t, what, have, want, ready, opts, hidden, i%3)
			compareLists(t, what, have, want, ready, hidden)
		}
		compareFiles(t, have, c, rest, hidden)
	}
}

func compareSearches(t *testing.T, what string, have, want *shard.Shard, q *shard.Query, opts shard.Options, hidden map[string]docset.Set, helpers int) {
	t.Helper()
	whole := search(t, want, q, opts)
	opts.Hidden = hidden
	if got := search(t, have, q, shard.InPieces(opts, helpers)); !sameAnswer(got, whole) {
		t.Fatalf("%s: %+v\nwant %+v", what, got, whole)
	}
	opts.Mode = shard.TopK
	got := search(t, have, q, shard.InPieces(opts, helpers))
	if !sameFiles(got.Files, whole.Files) || got.Stats.FilesMatched > whole.Stats.FilesMatched {
		t.Fatalf("%s, best %d after %v: %v of %d\nwant %v of %d", what, opts.MaxFiles, opts.After,
			got.Files, got.Stats.FilesMatched, whole.Files, whole.Stats.FilesMatched)
	}
}

func compareLists(t *testing.T, what string, have, want *shard.Shard, q *shard.Query, hidden map[string]docset.Set) {
	t.Helper()
	whole, err := want.List(context.Background(), q, shard.ListOptions{MaxSkippedFiles: 3})
	got, gotErr := have.List(context.Background(), q, shard.ListOptions{MaxSkippedFiles: 3, Hidden: hidden})
	if err != nil || gotErr != nil {
		t.Fatalf("%s: list: %v, %v", what, err, gotErr)
	}
	for _, list := range []*shard.ListResult{whole, got} {
		for i := range list.Repos {
			list.Repos[i].Repo.FirstDoc, list.Repos[i].Repo.Docs = 0, 0 // those of the shard
		}
	}
	if !reflect.DeepEqual(got.Repos, whole.Repos) || !errors.Is(got.Incomplete, whole.Incomplete) {
		t.Fatalf("%s: lists %+v\nwant %+v", what, got, whole)
	}
}

// compareFiles asks for every document of c, of which those of rest are there.
func compareFiles(t *testing.T, s *shard.Shard, c, rest *indextest.Corpus, hidden map[string]docset.Set) {
	t.Helper()
	for i, r := range c.Repos {
		for _, d := range r.Documents {
			there := slices.ContainsFunc(rest.Repos[i].Documents, func(o indextest.Document) bool {
				return o.Path == d.Path && slices.Equal(o.Branches, d.Branches)
			})
			f, err := s.File(context.Background(), r.Name, []byte(d.Path), d.Branches[0], hidden[r.Name])
			switch {
			case there && (err != nil || !bytes.Equal(f.Content, d.Content)):
				t.Fatalf("corpus %s: %q of %s: %+v, %v", c.Name, d.Path, r.Name, f, err)
			case !there && !errors.Is(err, shard.ErrNoFile):
				t.Fatalf("corpus %s: %q of %s is hidden: %+v, %v", c.Name, d.Path, r.Name, f, err)
			}
		}
	}
}
