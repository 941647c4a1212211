package search_test

import (
	"bytes"
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/merge"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/testrun"
)

// form is one way to index a corpus: in shards that are searched one after another, with some documents hidden or
// not. In each form a corpus must give the same answers.
type form struct {
	name  string
	parts []part
}

// part is one shard of a form.
type part struct {
	shard *search.Shard
	// first is the number of its first repo among those of all parts, by which Options.Repos asks.
	first    int
	overlays map[int]search.Overlay
	// late is the call of Options.FloorNow, from 1, that first returns the floor of the shards before; 0: the floor
	// is known from the start.
	late int
}

// formNames are the names of all forms.
var formNames = []string{"fresh", "compact", "hidden", "apart", "merged"}

// formOf indexes the corpus in the named form. In the form with hidden documents, rng chooses these and their
// contents.
func formOf(t fataler, name string, c *indextest.Corpus, rng *rand.Rand) form {
	t.Helper()
	f := form{name: name}
	switch name {
	case "fresh":
		f.parts = []part{{shard: openShard(t, buildShard(t, c))}}
	case "compact":
		f.parts = []part{{shard: openShard(t, buildShardWith(t, c, build.Options{Effort: docstore.Compact}))}}
	case "hidden":
		f.parts = []part{newDirty(c, rng).part(t)}
	case "apart":
		for _, d := range deal(c, rng) {
			f.parts = append(f.parts, newDirty(d, rng).part(t))
		}
	case "merged":
		f.parts = []part{{shard: mergedShard(t, c, rng)}}
	default:
		t.Fatalf("no form is called %q", name)
	}
	return f
}

// pager returns the function that searches the shards.
func (f form) pager() indextest.Pager {
	var asked query.Q
	var ready *search.Query // of asked
	return indextest.Pager{Name: f.name, Page: func(q query.Q, ask indextest.Ask) (page indextest.Page, err error) {
		if q != asked {
			if ready, err = search.Prepare(q); err != nil {
				return page, err
			}
			asked = q
		}
		opts := search.Options{MaxFiles: ask.MaxFiles, MaxMatchesPerFile: ask.MaxMatches, ContextLines: ask.MaxFiles % 2}
		if ask.TopK {
			opts.Mode = search.TopK
		}
		if a := ask.After; a != nil {
			opts.After = &search.Key{Score: a.Score, Repo: a.Repo, Path: []byte(a.Path), Blob: a.Object}
		}
		opts = search.WithHelpers(opts, ask.Helpers)
		res, err := searchParts(f.parts, ready, opts)
		if err != nil {
			return page, err
		}
		page = indextest.Page{FilesMatched: res.Stats.FilesMatched, Matches: res.Stats.Matches, Inexact: res.Stats.CountsInexact}
		for _, file := range res.Files {
			page.Files = append(page.Files, indextest.PageFile{Result: toResult(file), Matches: file.MatchCount})
		}
		return page, nil
	}}
}

// deal spreads the documents of each repo over two or three corpora, like a base and its deltas.
func deal(c *indextest.Corpus, rng *rand.Rand) []*indextest.Corpus {
	parts := make([]*indextest.Corpus, 2+rng.IntN(2))
	for i := range parts {
		parts[i] = &indextest.Corpus{Name: c.Name}
		for _, r := range c.Repos {
			r.Documents = nil
			parts[i].Repos = append(parts[i].Repos, r)
		}
	}
	for i, r := range c.Repos {
		for _, d := range r.Documents {
			to := &parts[rng.IntN(len(parts))].Repos[i]
			to.Documents = append(to.Documents, d)
		}
	}
	return parts
}

// dirty is a corpus with additional documents that are to be hidden.
type dirty struct {
	corpus *indextest.Corpus
	hidden map[string][]uint32 // their numbers in each repo
}

// newDirty adds documents whose contents and paths are equal or similar to those of others.
func newDirty(c *indextest.Corpus, rng *rand.Rand) dirty {
	d := dirty{&indextest.Corpus{Name: c.Name}, map[string][]uint32{}}
	var some []indextest.Document
	for _, r := range c.Repos {
		some = append(some, r.Documents...)
	}
	for _, r := range c.Repos {
		have := map[string]bool{}
		for i := range r.Documents {
			have[r.Documents[i].Path+"\x00"+string(r.Documents[i].Object())] = true
		}
		hide := map[string]bool{}
		r.Documents = slices.Clone(r.Documents)
		for range rng.IntN(1 + min(len(some), 20)) {
			o := some[rng.IntN(len(some))]
			o.Path = some[rng.IntN(len(some))].Path
			o.Branches = r.Branches[:1+rng.IntN(len(r.Branches))]
			if rng.IntN(2) == 0 && !o.Skipped {
				o.Content = append(bytes.Clone(o.Content[rng.IntN(1+len(o.Content)):]), "foo hidden"...)
			}
			if key := o.Path + "\x00" + string(o.Object()); !have[key] {
				have[key], hide[key] = true, true
				r.Documents = append(r.Documents, o)
			}
		}
		slices.SortFunc(r.Documents, func(a, b indextest.Document) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), bytes.Compare(a.Object(), b.Object()))
		})
		for i := range r.Documents {
			if hide[r.Documents[i].Path+"\x00"+string(r.Documents[i].Object())] {
				d.hidden[r.Name] = append(d.hidden[r.Name], uint32(i))
			}
		}
		d.corpus.Repos = append(d.corpus.Repos, r)
	}
	return d
}

// part builds the shard, with an overlay that hides the additional documents.
func (d dirty) part(t fataler) part {
	t.Helper()
	p := part{shard: openShard(t, buildShard(t, d.corpus)), overlays: map[int]search.Overlay{}}
	for repo, numbers := range d.hidden {
		p.overlays[numberOf(d.corpus, repo)] = search.Overlay{Hidden: docstore.SetOf(numbers)}
	}
	return p
}

// mergedShard deals the documents to several shards and merges these without the hidden documents.
func mergedShard(t fataler, c *indextest.Corpus, rng *rand.Rand) *search.Shard {
	t.Helper()
	var inputs []merge.Input
	for _, p := range deal(c, rng) {
		d := newDirty(p, rng)
		f, err := format.NewFile("input.trawl", buildShard(t, d.corpus))
		if err != nil {
			t.Fatalf("open: %v", err)
		}
		in := merge.Input{File: f}
		for _, r := range d.corpus.Repos {
			in.Repos = append(in.Repos, merge.Repo{Record: repoRecord(r), Hidden: d.hidden[r.Name]})
		}
		inputs = append(inputs, in)
	}
	var buf bytes.Buffer
	if _, err := merge.Shards(context.Background(), &buf, inputs, merge.Options{Processors: 1 + rng.IntN(3)}); err != nil {
		t.Fatalf("merge %s: %v", c.Name, err)
	}
	return openShard(t, buf.Bytes())
}

// checkForms runs queries over a corpus in every form and compares all answers with the oracle's. The seed is for
// the forms.
func checkForms(t *testing.T, c *indextest.Corpus, queries []indextest.Query, seed uint64) {
	t.Helper()
	var pagers []indextest.Pager
	for i, name := range formNames {
		f := formOf(t, name, c, rand.New(rand.NewPCG(seed, uint64(i))))
		for _, p := range f.parts {
			if err := p.shard.Verify(context.Background()); err != nil {
				t.Fatalf("corpus %s, %s: %v", c.Name, name, err)
			}
		}
		pagers = append(pagers, f.pager())
	}
	indextest.CheckPages(t, c, queries, pagers...)
}

// TestWords compares the engine with brute force, in every form, on corpora that are hard for an index of words.
func TestWords(t *testing.T) {
	for seed := range testrun.Rounds[uint64](3, 15) {
		c := indextest.Words(seed)
		checkForms(t, c, indextest.Queries(c, seed, 150), seed)
	}
}

// TestRandomCorporaInEveryForm does the same on corpora that are hard for other parts of an index.
func TestRandomCorporaInEveryForm(t *testing.T) {
	for seed := range testrun.Rounds[uint64](4, 10) {
		c := indextest.Random(seed)
		checkForms(t, c, indextest.Queries(c, seed+4000, 120), seed)
	}
}
