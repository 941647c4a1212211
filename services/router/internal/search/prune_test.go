package search_test

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

// placed is a corpus spread over shards.
type placed struct {
	roots []*catalogv1.Root
	// at is the shard of each document, by repo and its place in the repo.
	at map[string][]searchapi.Digest
}

// spreadCorpus puts the documents of each repo into one to three shards, and some
// small repos into one together.
func spreadCorpus(c *indextest.Corpus, rng *rand.Rand) *placed {
	p := &placed{at: make(map[string][]searchapi.Digest)}
	refs := make(map[searchapi.Digest]*catalogv1.ShardRef)
	for _, repo := range c.Repos {
		root := &catalogv1.Root{Repo: repo.Name}
		for _, b := range repo.Branches {
			root.Branches = append(root.Branches, &catalogv1.Branch{Name: b})
		}
		shards := 1 + rng.IntN(3)
		for _, d := range repo.Documents {
			digest := searchapi.Digest(sha256.Sum256(fmt.Append(nil, repo.Name, rng.IntN(shards))))
			if shards == 1 {
				digest = searchapi.Digest{1} // shared
			}
			if refs[digest] == nil {
				refs[digest] = &catalogv1.ShardRef{Digest: digest[:]}
			}
			ref := refs[digest]
			ref.Documents++
			if d.Language != "" && !slices.Contains(ref.Languages, d.Language) {
				ref.Languages = append(ref.Languages, d.Language)
			}
			if !slices.Contains(root.Shards, ref) {
				root.Shards = append(root.Shards, ref)
			}
			p.at[repo.Name] = append(p.at[repo.Name], digest)
		}
		p.roots = append(p.roots, root)
	}
	return p
}

// holds are the shards with a document that the query finds.
func (p *placed) holds(t *testing.T, c *indextest.Corpus, q query.Q) map[searchapi.Digest]bool {
	t.Helper()
	found := make(map[searchapi.Digest]bool)
	for i, repo := range c.Repos {
		for j, d := range repo.Documents {
			one := &indextest.Corpus{Repos: []indextest.Repo{repo}}
			one.Repos[0].Documents = []indextest.Document{d}
			results, err := indextest.Eval(one, q)
			if err != nil {
				t.Fatal(err)
			}
			if len(results) > 0 {
				found[p.at[c.Repos[i].Name][j]] = true
			}
		}
	}
	return found
}

// TestPruningKeepsWhatMatches: over random corpora, random queries and random
// placements, no shard that is pruned holds a document that the query finds.
func TestPruningKeepsWhatMatches(t *testing.T) {
	pruned := 0
	for seed := range uint64(12) {
		c := indextest.Random(seed)
		p := spreadCorpus(c, rand.New(rand.NewPCG(seed, 1)))
		layout, err := search.NewLayout(1, p.roots)
		if err != nil {
			t.Fatal(err)
		}
		queries := indextest.Queries(c, seed, 80)
		queries = append(queries, indextest.Query{Text: "-b:main"}, indextest.Query{Text: "lang:go or b:HEAD"}, indextest.Query{Text: "-lang:go"})
		for _, text := range queries {
			q, err := query.Parse(text.Text, query.ParseOptions{SyntaxVersion: query.MaxSyntaxVersion})
			if err == nil {
				q, err = indextest.Resolve(c, q)
			}
			if err != nil {
				t.Fatalf("seed %d, %q: %v", seed, text.Text, err)
			}
			pruned += checkPruning(t, p, c, layout, q, fmt.Sprintf("seed %d, query %q", seed, text.Text))
		}
	}
	if pruned == 0 {
		t.Error("nothing was ever pruned")
	}
}

func checkPruning(t *testing.T, p *placed, c *indextest.Corpus, layout *search.Layout, q query.Q, what string) int {
	t.Helper()
	wanted, err := layout.Select(t.Context(), q)
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	pruned := make(map[searchapi.Digest]bool)
	for _, s := range layout.All() {
		pruned[s.Digest] = true
	}
	for _, s := range wanted {
		if !pruned[s.Digest] {
			t.Fatalf("%s: shard %s is wanted twice, or is not in the layout", what, s.Digest)
		}
		delete(pruned, s.Digest)
	}
	holds := p.holds(t, c, q)
	for d := range pruned {
		if holds[d] {
			t.Errorf("%s: shard %s was pruned and holds a match", what, d)
		}
	}
	return len(pruned)
}

func TestPruningPrunes(t *testing.T) {
	root := func(name, language string, n byte, branches ...string) *catalogv1.Root {
		d := searchapi.Digest{n}
		r := &catalogv1.Root{Repo: name, Shards: []*catalogv1.ShardRef{{Digest: d[:], Languages: []string{language}, Documents: 1}}}
		for _, b := range branches {
			r.Branches = append(r.Branches, &catalogv1.Branch{Name: b})
		}
		return r
	}
	layout, err := search.NewLayout(1, []*catalogv1.Root{
		root("host/a", "Go", 1, "main"), root("host/b", "C", 2, "main", "dev"), root("host/c", "C", 3, "master"),
	})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                       "123",
		"r:host":                 "123",
		"r:a$":                   "1",
		"-r:a$ foo":              "23",
		"lang:C":                 "23",
		"lang:C -r:b":            "3",
		"lang:C or r:a":          "123",
		"b:dev":                  "2",
		"b:HEAD":                 "123",
		"-b:main foo":            "23",
		"-(r:a or r:b)":          "3",
		"-(lang:C r:b)":          "123",
		"type:file r:c":          "3",
		"foo or (r:nowhere bar)": "123",
		"r:nowhere":              "",
	} {
		q, err := query.Parse(text, query.ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		wanted, err := layout.Select(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, s := range wanted {
			got += fmt.Sprint(s.Digest[0])
		}
		if got != want {
			t.Errorf("%q wants shards %q, not %q", text, got, want)
		}
	}
}

// TestShardThatTellsNoLanguages: a shard that also holds hidden repos names no languages, and is not
// pruned by language.
func TestShardThatTellsNoLanguages(t *testing.T) {
	d := searchapi.Digest{1}
	layout, err := search.NewLayout(1, []*catalogv1.Root{{Repo: "r", Shards: []*catalogv1.ShardRef{{Digest: d[:], Documents: 3}}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []query.Q{&query.Language{Name: "Go"}, &query.Not{Child: &query.Language{Name: "Go"}}, &query.Branch{Pattern: "main"}} {
		if wanted, err := layout.Select(t.Context(), q); err != nil || len(wanted) != 1 {
			t.Errorf("%v: %v, %v", q, wanted, err)
		}
	}
}

func TestLayoutGroupsSharedShards(t *testing.T) {
	d := searchapi.Digest{9}
	ref, other := &catalogv1.ShardRef{Digest: d[:], SizeBytes: 100, RepoNumber: 2}, &catalogv1.ShardRef{Digest: d[:], SizeBytes: 100}
	layout, err := search.NewLayout(5, []*catalogv1.Root{{Repo: "z", Shards: []*catalogv1.ShardRef{ref, ref}}, {Repo: "a", Shards: []*catalogv1.ShardRef{other}}})
	if err != nil {
		t.Fatal(err)
	}
	all := layout.All()
	if len(all) != 1 || !slices.Equal(slices.Collect(all[0].Repos.Numbers()), []uint32{0, 2}) {
		t.Errorf("got %v", all)
	}
	if of := layout.ShardsOf("z"); len(of) != 1 || !slices.Equal(slices.Collect(of[0].Repos.Numbers()), []uint32{2}) {
		t.Errorf("shards of z: %v", of)
	}
	if n := layout.IndexBytes("z"); n != 50 {
		t.Errorf("index bytes of z: %d", n)
	}
	if _, err := search.NewLayout(1, []*catalogv1.Root{{Repo: "x", Shards: []*catalogv1.ShardRef{{Digest: []byte("short")}}}}); err == nil {
		t.Error("a root with a bad digest was taken")
	}
}
