package search_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/testrun"
)

// TestBestOfSeveralWords searches for the files with several common words: in one shard, in one merged from several, and in two
// with a floor. The files are those of the exhaustive search, and the counts are no higher.
func TestBestOfSeveralWords(t *testing.T) {
	for seed := range testrun.Rounds[uint64](1, 5) {
		rnd := rand.New(rand.NewPCG(seed, 48))
		c := someNames(someDefinitions(commonWords(seed), rnd), rnd)
		half := 1 + rnd.IntN(2)
		var halves []part
		for _, repos := range [][]indextest.Repo{c.Repos[:half], c.Repos[half:]} {
			halves = append(halves, part{first: numberOf(c, repos[0].Name), shard: openShard(t, buildShard(t, &indextest.Corpus{Repos: repos}))})
		}
		for _, s := range []*search.Shard{openShard(t, buildShard(t, c)), mergedShard(t, c, rnd)} {
			for _, text := range []string{
				"c:foo c:x", "c:x c:foo c:food", "c:k c:x", "c:foo c:k c:x", "c:food c:go c:x", "case:yes c:Foo c:x", "c:foo c:foo", "c:fo c:x", "c:rare c:x",
				"c:foo c:x lang:go", "c:foo c:x f:tests", "c:foo c:x -c:go", `c:foo "c:x foo"`, "c:foo c:x r:r1", "c:foo (c:x or c:k)", "c:seafood c:snafoox c:foo", "f:foo c:x c:foo", "c:foo c:tests",
				"foo x", "x foo food", "k x", "foo k", "go food", "case:yes Foo x", "foo foo", "fo x", "foo c:x", "foo x c:k", "foo x -c:go", "seafood foo", "foo tests", "foo rare", "foo x c:food f:go",
			} {
				q := prepare(t, parse(t, text))
				opts := search.Options{MaxFiles: 1 + rnd.IntN(16), MaxMatchesPerFile: 1 + rnd.IntN(20), Explain: true}
				switch rnd.IntN(6) {
				case 0:
					opts.Repos = func(repo int) bool { return repo != numberOf(c, "r1") }
				case 1:
					opts.MaxBytes = int64(500 + rnd.IntN(5000))
				case 2:
					opts.After = somewhere(s, q, rnd)
				}
				want := run(t, s, q, opts)
				opts.Mode = search.TopK
				got := run(t, s, q, opts)
				if !sameFiles(got.Files, want.Files) || got.Cut != want.Cut {
					t.Fatalf("seed %d, %s, best %d after %v, cut %t, want %t:\n%+v\nwant\n%+v", seed, text, opts.MaxFiles, opts.After, got.Cut, want.Cut, got.Files, want.Files)
				}
				less := got.Stats.FilesMatched < want.Stats.FilesMatched || got.Stats.Matches < want.Stats.Matches
				if less && !got.Stats.CountsInexact || got.Stats.FilesMatched > want.Stats.FilesMatched || got.Stats.Matches > want.Stats.Matches {
					t.Fatalf("seed %d, %s: counts %+v of %+v", seed, text, got.Stats, want.Stats)
				}
				opts.Explain, opts.Mode = false, search.Exhaustive // the order of the words in an explanation depends on the shard
				want = run(t, s, q, opts)
				opts.Mode = search.TopK
				parts, err := searchParts(halves, q, opts)
				if err != nil || !sameFiles(parts.Files, want.Files) {
					t.Fatalf("seed %d, %s, best %d in two shards: %v\n%+v\nwant\n%+v", seed, text, opts.MaxFiles, err, parts.Files, want.Files)
				}
			}
		}
	}
}

// someNames names some of the files after common words, and joins several of these in some names.
func someNames(c *indextest.Corpus, rnd *rand.Rand) *indextest.Corpus {
	for _, r := range c.Repos {
		for i := range r.Documents {
			d := &r.Documents[i]
			switch rnd.IntN(12) {
			case 0:
				d.Path = fmt.Sprintf("%s/%d/foo_x.go", d.Path, i)
			case 1:
				d.Path = fmt.Sprintf("foo/%s/%d/x%d.go", d.Path, i, i)
			case 2:
				d.Content = append(slices.Clone(d.Content), "\nfoo_x and xfoo\n"...)
			}
		}
	}
	return c
}

// someDefinitions defines common words in some of the Go files.
func someDefinitions(c *indextest.Corpus, rnd *rand.Rand) *indextest.Corpus {
	for _, r := range c.Repos {
		for i := range r.Documents {
			if d := &r.Documents[i]; d.Language == "Go" && rnd.IntN(4) == 0 {
				d.Content = append(slices.Clone(d.Content), "\nfunc foo() {}\nfunc x() {}\n"...)
			}
		}
	}
	return c
}

// TestBestOfSeveralWordsReadsFewFiles searches for two words that hundreds of other words contain.
func TestBestOfSeveralWordsReadsFewFiles(t *testing.T) {
	c := &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}}}}
	for i := range 3000 {
		text := fmt.Sprintf("%04d target_%d final_%d ", i, i%700, i%900)
		if i%3 > 0 {
			text += strings.Repeat("Target target_flags ", 1+i%7) + strings.Repeat("final ", i%10)
		}
		r := &c.Repos[0]
		r.Documents = append(r.Documents, indextest.Document{Path: fmt.Sprintf("%04d", i), Content: []byte(text), Branches: r.Branches})
	}
	s := openShard(t, buildShard(t, c))
	for _, text := range []string{"c:target c:final", "case:yes c:Target c:final", "target final"} {
		q := prepare(t, parse(t, text))
		opts := search.Options{MaxFiles: 10, MaxMatchesPerFile: 3}
		want := run(t, s, q, opts)
		opts.Mode = search.TopK
		if got := run(t, s, q, opts); !sameFiles(got.Files, want.Files) {
			t.Errorf("%s: %+v\nwant %+v", text, got.Files, want.Files)
		}
		if f := find(t, s, q, opts).Stats; f.FilesConsidered > 100 || f.BytesDecoded > 64<<10 || want.Stats.FilesMatched < 1500 {
			t.Errorf("%s, of %d files: %+v", text, want.Stats.FilesMatched, f)
		}
	}
}

// TestBestOfSeveralWordsInOtherFiles has files with both words that are not the best, because other files score for something
// else.
func TestBestOfSeveralWordsInOtherFiles(t *testing.T) {
	var lexicon strings.Builder // it makes reading cheap in comparison
	for i := range 20000 {
		fmt.Fprintf(&lexicon, "w%04xneedle\nw%04xthread\n", i, i)
	}
	for name, tt := range map[string]struct{ folder, many, best string }{
		"better in tests":     {"tests/", strings.Repeat("needle thread\n", 9), "needle thread\n"},
		"short":               {"src/", "needle thread\n", strings.Repeat("needle thread\n", 9) + strings.Repeat("-\n", 10<<10)},
		"long":                {"src/", "needle thread\n" + strings.Repeat("-\n", 3<<10), strings.Repeat("needles threads\n", 9)},
		"one word":            {"src/", "needle thread\n", strings.Repeat("needle threads\n", 9)},
		"long ones, one word": {"src/", "needle thread\n" + strings.Repeat("-\n", 10<<10), strings.Repeat("needle threads\n", 9)},
		"opaque":              {"src/", "needle thread\n", strings.Repeat("long", 40) + strings.Repeat(" needle thread\n", 9)},
		"often, beside parts": {"src/", strings.Repeat("needle thread\n", 2), strings.Repeat("needle thread needles\n", 9)},
	} {
		c := &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}}}}
		add := func(path, text string) {
			r := &c.Repos[0]
			r.Documents = append(r.Documents, indextest.Document{Path: path, Content: []byte(text), Branches: r.Branches})
		}
		for i := range 20 {
			add(fmt.Sprintf("%s%02d", tt.folder, i), fmt.Sprint(tt.many, i))
		}
		for i := range 3 {
			add(fmt.Sprintf("x/%02d", i), fmt.Sprint(tt.best, i))
		}
		add("z", lexicon.String())
		for _, text := range []string{"c:needle c:thread", "needle thread"} {
			s, q := openShard(t, buildShard(t, c)), prepare(t, parse(t, text))
			opts := search.Options{MaxFiles: 3, MaxMatchesPerFile: 1}
			want := run(t, s, q, opts)
			opts.Mode = search.TopK
			got := run(t, s, q, opts)
			trapped := text == "needle thread" || strings.HasPrefix(string(want.Files[0].Path), "x/") // words in one line count more than the trap
			if !trapped || !sameFiles(got.Files, want.Files) {
				t.Errorf("%s, %s: the best are %s %v and %s %v, of all %s %v", name, text, got.Files[0].Path, got.Files[0].Score, got.Files[2].Path, got.Files[2].Score, want.Files[0].Path, want.Files[0].Score)
			}
		}
	}
}
