package search_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
)

// rankedRepos are repos with files that match about equally well; the later the repo the higher its rank.
func rankedRepos() *indextest.Corpus {
	c := &indextest.Corpus{}
	for i, name := range []string{"a", "m", "z"} {
		r := indextest.Repo{Name: name, Branches: []string{"main"}, Rank: []uint8{0, 35, 100}[i]}
		for j := range 300 {
			text := strings.Repeat("a common word\n", 1+j%11) + strings.Repeat("word. uncommon\n", j%5)
			r.Documents = append(r.Documents, indextest.Document{
				Path: fmt.Sprintf("%03d.go", j), Branches: r.Branches, Language: "Go", Content: fmt.Appendf([]byte(text), "// %s %d\n", name, j),
			})
		}
		c.Repos = append(c.Repos, r)
	}
	return someTests(c)
}

// TestRanksWhateverTheSharding searches repos of different ranks in one shard, in one merged of several and in several with a floor, in pages: the
// files are the first of all in one order.
func TestRanksWhateverTheSharding(t *testing.T) {
	c, rng := rankedRepos(), rand.New(rand.NewPCG(52, 1))
	of := func(repos ...indextest.Repo) part {
		return part{shard: openShard(t, buildShard(t, &indextest.Corpus{Repos: repos}))}
	}
	whole, a, m, z := of(c.Repos...), of(c.Repos[0]), of(c.Repos[1]), of(c.Repos[2])
	shardings := [][]part{{whole}, {{shard: mergedShard(t, c, rng)}}, {a, m, z}, {z, m, a}, {of(c.Repos[:2]...), z}, {m, of(c.Repos[0], c.Repos[2])}}
	for _, text := range []string{"common", "c:common", "c:word c:common", "common word", `c:"common word"`, "c:comm?on", "(common|uncommon)", "common or uncommon", "lang:Go", "f:go", "-nothing"} {
		q := prepare(t, parse(t, text))
		all := run(t, whole.shard, q, search.Options{MaxFiles: 1000, MaxMatchesPerFile: 3}).Files
		if len(all) < 120 || all[0].Repo != "z" {
			t.Fatalf("%s: %d files, want some of z first", text, len(all))
		}
		for i, parts := range shardings {
			opts := search.Options{Mode: search.TopK, MaxMatchesPerFile: 3}
			for rest := all[:120]; len(rest) > 0; rest = rest[opts.MaxFiles:] {
				opts.MaxFiles = min(1+rng.IntN(40), len(rest))
				got, err := searchParts(parts, q, opts)
				if want := rest[:opts.MaxFiles]; err != nil || !sameFiles(got.Files, want) {
					t.Fatalf("%s, sharding %d, best %d after %v: %v\n%v\nwant\n%v", text, i, opts.MaxFiles, opts.After, err, got.Files, want)
				}
				last := rest[opts.MaxFiles-1].Key()
				opts.After = &last
			}
		}
	}
}

// TestRanksEndSearchesEarly: where one repo has a shard of its own, its rank does not have more files looked at.
func TestRanksEndSearchesEarly(t *testing.T) {
	for _, text := range []string{"common", "c:common", "common word", "lang:Go"} {
		var considered []uint64
		for _, rank := range []uint8{0, 100} {
			c := manyFiles(2000)
			c.Repos[0].Rank = rank
			got := run(t, openShard(t, buildShard(t, c)), prepare(t, parse(t, text)), search.Options{Mode: search.TopK, MaxFiles: 10})
			considered = append(considered, got.Stats.FilesConsidered)
		}
		if !slices.Equal(considered[:1], considered[1:]) {
			t.Errorf("%s: %d files are considered without a rank, and %d with one", text, considered[0], considered[1])
		}
	}
}

// TestRanksAreAmongTheContenders: files of a repo with a rank are the best, though those of another repo score more without it.
func TestRanksAreAmongTheContenders(t *testing.T) {
	for name, texts := range map[string][2]string{
		"whole words":    {strings.Repeat("needle thread\n", 8), strings.Repeat("needle thread\n", 7)},
		"parts of words": {strings.Repeat("needle thread\n", 2), strings.Repeat("needle threads\n", 7)},
	} {
		t.Run(name, func(t *testing.T) { checkContenders(t, texts) })
	}
}

// checkContenders searches a repo without rank and one with the highest, whose files are these texts.
func checkContenders(t *testing.T, texts [2]string) {
	t.Helper()
	var lexicon strings.Builder // beside which reading takes little
	for i := range 20000 {
		fmt.Fprintf(&lexicon, "w%04xneedle\nw%04xthread\n", i, i)
	}
	c := &indextest.Corpus{}
	for i, name := range []string{"a", "z"} {
		r := indextest.Repo{Name: name, Branches: []string{"main"}, Rank: uint8(100 * i)}
		for j := range 60 {
			r.Documents = append(r.Documents, indextest.Document{Path: fmt.Sprintf("%02d", j), Branches: r.Branches, Content: fmt.Appendf(nil, "%s %d\n%s", name, j, texts[i])})
		}
		r.Documents = append(r.Documents, indextest.Document{Path: "words", Branches: r.Branches, Content: []byte(lexicon.String())})
		c.Repos = append(c.Repos, r)
	}
	whole := openShard(t, buildShard(t, c))
	a := openShard(t, buildShard(t, &indextest.Corpus{Repos: c.Repos[:1]}))
	z := openShard(t, buildShard(t, &indextest.Corpus{Repos: c.Repos[1:]}))
	for _, text := range []string{"c:needle c:thread", "needle thread"} {
		q := prepare(t, parse(t, text))
		opts := search.Options{MaxFiles: 10, MaxMatchesPerFile: 3}
		want := run(t, whole, q, opts).Files
		if slices.ContainsFunc(want, func(f search.FileMatch) bool { return f.Repo != "z" }) {
			t.Errorf("%s: a file of the other repo is among the best: %v", text, want)
		}
		opts.Mode = search.TopK
		for _, parts := range [][]part{{{shard: whole}}, {{shard: a}, {shard: z}}, {{shard: z}, {shard: a}}} {
			if got, err := searchParts(parts, q, opts); err != nil || !sameFiles(got.Files, want) {
				t.Errorf("%s in %d shards: %v\n%v\nwant\n%v", text, len(parts), err, got.Files, want)
			}
		}
	}
}
