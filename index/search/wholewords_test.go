package search_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/testrun"
)

// commonWords is a corpus with a few common words. Documents have them up to and beyond rank.Enough times: as whole words,
// in other spellings, in parts of words, next to words that make a superblock opaque, and in paths of either priority. One
// document has thousands of words that contain them, so that adding up all words takes longer than a few documents. Repos have
// ranks if the seed is odd.
func commonWords(seed uint64) *indextest.Corpus {
	rnd := rand.New(rand.NewPCG(seed, 7))
	pick := func(from ...string) string { return from[rnd.IntN(len(from))] }
	c := &indextest.Corpus{}
	for r := range 3 {
		repo := indextest.Repo{Name: fmt.Sprintf("r%d", r), Branches: []string{"main", "next"}, Rank: uint8(seed % 2 * uint64(r) * 50)}
		for i := range 80 + rnd.IntN(80) {
			var text bytes.Buffer
			switch rnd.IntN(40) {
			case 0: // a word across the end of the part read first
				text.WriteString(strings.Repeat(".", 16<<10-rnd.IntN(6)) + pick("foo", "seafood"))
			case 1: // worse matches first
				text.WriteString(strings.Repeat("snafoox ", rank.Enough) + strings.Repeat(".", 17<<10) + pick("food ", "\u212Ax foo", strings.Repeat("long", 40)+" foo "))
			}
			for _, whole := range []bool{true, false} {
				for range rnd.IntN(2 * rank.Enough) {
					word := pick("food", "seafood", "afoot", "snafoox", "go", "gopher", "rarely")
					if whole {
						word = pick("foo", "foo", "foo", "Foo", "FOO", "x", "x", "\u212A", "k", "foo", "x", "foo", "foo")
					}
					text.WriteString(word + pick(" ", ".", "\n", "é"))
				}
				if rnd.IntN(12) == 0 {
					text.WriteString(strings.Repeat("long", 40) + pick("", "foo", "x") + " \u212Afoo ")
				}
				if rnd.IntN(12) == 0 {
					text.WriteString(strings.Repeat(" . ", 4096/3+rnd.IntN(40)))
				}
			}
			d := indextest.Document{
				Path:     pick("", "", "", "tests/", "vendor/") + pick("a", "b", "foo", "seafoods") + fmt.Sprintf("/%03d", i) + pick("", "", "foo", "x") + pick(".go", ".txt"),
				Content:  text.Bytes(),
				Branches: []string{pick("main", "next")},
			}
			if strings.HasSuffix(d.Path, ".go") {
				d.Language = "Go"
			}
			if rank.LowPriority([]byte(d.Path)) && rnd.IntN(3) == 0 {
				d.Content = append(d.Content, " rare"...)
			}
			if n := len(repo.Documents); n > 0 && rnd.IntN(8) == 0 {
				d.Content = repo.Documents[rnd.IntN(n)].Content
			}
			repo.Documents = append(repo.Documents, d)
		}
		slices.SortFunc(repo.Documents, func(a, b indextest.Document) int { return strings.Compare(a.Path, b.Path) })
		c.Repos = append(c.Repos, repo)
	}
	var lexicon bytes.Buffer
	for i := range testrun.Rounds(8_000, 20_000) {
		fmt.Fprintf(&lexicon, "w%04xFoo%04x_foodRare\n", i, i)
	}
	last := &c.Repos[len(c.Repos)-1]
	last.Documents = append(last.Documents, indextest.Document{Path: "z/lexicon", Content: lexicon.Bytes(), Branches: []string{"main"}})
	return c
}

// TestBestOfCommonWords searches for common words: in one shard, in one merged from several, and in two with a floor. The
// files are those of the exhaustive search, and the counts are no higher.
func TestBestOfCommonWords(t *testing.T) {
	for seed := range testrun.Rounds[uint64](2, 15) {
		rnd := rand.New(rand.NewPCG(seed, 8))
		c := commonWords(seed)
		half := 1 + rnd.IntN(2)
		var halves []part
		for _, repos := range [][]indextest.Repo{c.Repos[:half], c.Repos[half:]} {
			halves = append(halves, part{first: numberOf(c, repos[0].Name), shard: openShard(t, buildShard(t, &indextest.Corpus{Repos: repos}))})
		}
		for _, s := range []*search.Shard{openShard(t, buildShard(t, c)), mergedShard(t, c, rnd)} {
			for _, text := range []string{
				"foo", "case:yes foo", "case:yes Foo", "c:foo", "x", "c:x", "k", "go", "food", "seafood",
				"foo lang:go", "foo f:tests", "foo -f:tests", "foo b:next", "x r:r1", "foo or lang:go", "-foo", "foo x", "f:foo", "rare", "c:rare", "foo f:tests f:seafoods lang:go",
				"(foo|go)", "c:(food|rare)", "case:yes (Foo|go)", "(fo|foo)", "c:(foo|fo|FOO)", "(k|x) lang:go", "foo(d|ts)?", "(foo|nowhere) f:tests",
			} {
				q := prepare(t, parse(t, text))
				opts := search.Options{MaxFiles: 1 + rnd.IntN(16), MaxMatchesPerFile: 1 + rnd.IntN(20), Explain: true, After: somewhere(s, q, rnd)}
				switch rnd.IntN(4) {
				case 0:
					opts.Repos = func(repo int) bool { return repo != numberOf(c, "r1") }
				case 1:
					opts.MaxBytes = int64(500 + rnd.IntN(5000))
				}
				want := run(t, s, q, opts)
				opts.Mode = search.TopK
				got := run(t, s, q, opts)
				if !sameFiles(got.Files, want.Files) {
					t.Fatalf("seed %d, %s, best %d after %v:\n%+v\nwant\n%+v", seed, text, opts.MaxFiles, opts.After, got.Files, want.Files)
				}
				less := got.Stats.FilesMatched < want.Stats.FilesMatched || got.Stats.Matches < want.Stats.Matches
				if less && !got.Stats.CountsInexact || got.Stats.FilesMatched > want.Stats.FilesMatched || got.Stats.Matches > want.Stats.Matches {
					t.Fatalf("seed %d, %s: counts %+v of %+v", seed, text, got.Stats, want.Stats)
				}
				parts, err := searchParts(halves, q, opts)
				if err != nil || !sameFiles(parts.Files, want.Files) {
					t.Fatalf("seed %d, %s, best %d in two shards: %v\n%+v\nwant\n%+v", seed, text, opts.MaxFiles, err, parts.Files, want.Files)
				}
			}
		}
	}
}

// TestWholeWordsAreNotTheBest has a word as a whole only in tests, which score less than other documents with it in parts
// of words.
func TestWholeWordsAreNotTheBest(t *testing.T) {
	c := &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}}}}
	add := func(path, content string) {
		r := &c.Repos[0]
		r.Documents = append(r.Documents, indextest.Document{Path: path, Content: []byte(content), Branches: r.Branches})
	}
	var lexicon strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&lexicon, "rare%04x\n", i)
	}
	for i := range 20 {
		add(fmt.Sprintf("src/%02d", i), strings.Repeat("rarely\n", i+1))
	}
	for i := range 20 {
		add(fmt.Sprintf("tests/%02d", i), fmt.Sprint("rare\n", i))
	}
	add("z", lexicon.String())
	s, q := openShard(t, buildShard(t, c)), prepare(t, parse(t, "rare"))
	opts := search.Options{MaxFiles: 5, MaxMatchesPerFile: 5}
	want := run(t, s, q, opts)
	opts.Mode = search.TopK
	if got := run(t, s, q, opts); !sameFiles(got.Files, want.Files) {
		t.Errorf("%+v\nwant %+v", got.Files, want.Files)
	}
}

// TestBestOfSharedContents: the best files are the first of all files even if several documents share a content and a
// filter excludes some of them.
func TestBestOfSharedContents(t *testing.T) {
	for seed := range testrun.Rounds[uint64](2, 8) {
		s := openShard(t, buildShard(t, commonWords(seed)))
		for _, text := range []string{"foo f:tests", "foo -f:tests", "foo go f:foo", "foo lang:go", "foo b:next f:txt", "foo r:r1"} {
			q := prepare(t, parse(t, text))
			all := run(t, s, q, search.Options{MaxFiles: 1000, MaxMatchesPerFile: 1})
			for n := range min(30, len(all.Files)) {
				best := run(t, s, q, search.Options{MaxFiles: n, MaxMatchesPerFile: 1})
				if !sameFiles(best.Files, all.Files[:n]) || best.Stats.FilesMatched != all.Stats.FilesMatched || best.Stats.Matches != all.Stats.Matches {
					t.Fatalf("seed %d, %s, best %d:\n%+v\nwant\n%+v", seed, text, n, best, all.Files[:n])
				}
			}
		}
	}
}

// TestBestOfAWordByItsSpellings searches for a word that hundreds of other words contain. The search opens the posting
// lists of its own spellings, looks at few documents, and reads little text except to count the matches of the files that
// are shown.
func TestBestOfAWordByItsSpellings(t *testing.T) {
	c := &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}}}}
	add := func(path, content string) {
		r := &c.Repos[0]
		r.Documents = append(r.Documents, indextest.Document{Path: path, Content: []byte(content), Branches: r.Branches, Language: "Go"})
	}
	for i := range 3000 {
		text := fmt.Sprintf("%04d target_%d ", i, i%700)
		if i%3 > 0 {
			text += strings.Repeat("Target target_flags ", 1+i%7)
		}
		add(fmt.Sprintf("%04d", i), text)
	}
	// It defines the word, so it is among the best, and it is too long for all of its matches to be counted.
	add("long.go", "package long\n\nfunc target() {}\n"+strings.Repeat("// a retargeted target_flag\n", 40_000))
	s := openShard(t, buildShard(t, c))
	for _, text := range []string{"c:target", "target", "case:yes c:Target", "c:target lang:Go"} {
		q := prepare(t, parse(t, text))
		opts := search.Options{MaxFiles: 10, MaxMatchesPerFile: 3, Explain: true}
		want := run(t, s, q, opts)
		opts.Mode = search.TopK
		if got := run(t, s, q, opts); !sameFiles(got.Files, want.Files) {
			t.Errorf("%s: %+v\nwant %+v", text, got.Files, want.Files)
		}
		found := find(t, s, q, opts)
		if f := found.Stats; f.ListsRead > 12 || f.FilesConsidered > 200 || f.BytesDecoded > 64<<10 || want.Stats.FilesMatched < 2000 {
			t.Errorf("%s, of %d files: %+v", text, want.Stats.FilesMatched, f)
		}
	}
}

// TestShardsOfARepoLoseTies: documents of one repo are in the order of their paths, also over several shards.
func TestShardsOfARepoLoseTies(t *testing.T) {
	halves := []*indextest.Corpus{manyFiles(200), manyFiles(200)}
	for i := range halves[1].Repos[0].Documents {
		halves[1].Repos[0].Documents[i].Path = "z" + halves[1].Repos[0].Documents[i].Path
	}
	first, second := openShard(t, buildShard(t, halves[0])), openShard(t, buildShard(t, halves[1]))
	q, opts := prepare(t, parse(t, "c:common")), search.Options{Mode: search.TopK, MaxFiles: 10}
	for _, c := range []struct {
		from, in *search.Shard
		hits     int
	}{{first, second, 0}, {second, first, 10}} {
		ranking := search.NewRanking(opts.MaxFiles, 0)
		ranking.Add(find(t, c.from, q, opts))
		opts.Floor = ranking.Floor()
		if found := find(t, c.in, q, opts); len(found.Hits) != c.hits || c.hits == 0 && found.Stats.FilesConsidered > 0 {
			t.Errorf("%d hits, want %d: %+v", len(found.Hits), c.hits, found.Stats)
		}
	}
}

// TestWholeWordsOfAllSuperblocks: the search looks at the best file last, and only the words of all its superblocks
// together make it the best.
func TestWholeWordsOfAllSuperblocks(t *testing.T) {
	block := func(words int) string { // fills a superblock of 4 KiB
		text := strings.Repeat("needle\n", words)
		return text + strings.Repeat("-\n", (4096-len(text))/2) + strings.Repeat("-", len(text)%2)
	}
	for name, tt := range map[string]struct{ others, last string }{
		"two superblocks":   {"needle\n--\n", block(1) + block(1)},
		"three superblocks": {block(2) + block(0), block(1) + block(1) + block(1)},
	} {
		c := &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}}}}
		for i := range 50 {
			path, text := fmt.Sprintf("%02d.go", i), tt.others
			if i == 49 {
				text = tt.last
			}
			c.Repos[0].Documents = append(c.Repos[0].Documents, indextest.Document{Path: path, Content: fmt.Append([]byte(text[:len(text)-1]), i%10), Branches: []string{"main"}})
		}
		s := openShard(t, buildShard(t, c))
		ready := prepare(t, parse(t, "needle"))
		opts := search.Options{MaxFiles: 1, MaxMatchesPerFile: 1}
		whole := run(t, s, ready, opts)
		opts.Mode = search.TopK
		got := run(t, s, ready, opts)
		if len(got.Files) != 1 || string(got.Files[0].Path) != "49.go" || !sameFiles(got.Files, whole.Files) {
			t.Errorf("%s: the best is %v, of all %v", name, got.Files, whole.Files)
		}
	}
}
