package search_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/testrun"
)

// scatteredWords is a corpus of few words: scattered, in one line, in sequence, around the ends of superblocks, and in lines beyond
// the length that counts.
func scatteredWords(seed uint64) *indextest.Corpus {
	rng := rand.New(rand.NewPCG(seed, 7))
	words := []string{"read", "file", "header", "reader", "Files", "read_file", "x", "\u212Aelvin", strings.Repeat("w", 130)}
	seps := []string{" ", " ", " ", "\n", "\n", ", ", "_", strings.Repeat(".", 400), "\n" + strings.Repeat("-", 500)}
	c := &indextest.Corpus{Name: fmt.Sprintf("words %d", seed), Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}}}}
	for i := range 64 { // the only line with all words is around the ends of blocks and superblocks
		text := strings.Repeat("-", 500+i%16) + "\nread the file header\n"
		if i >= 32 {
			text = strings.Replace(text, "the ", "", 1)
		}
		if i%32 >= 16 {
			text = strings.Repeat("-\n", 2035) + text[500:]
		}
		c.Repos[0].Documents = append(c.Repos[0].Documents, indextest.Document{Path: fmt.Sprintf("edge/%d.go", i), Content: []byte(text), Branches: []string{"main"}, Language: "Go"})
	}
	for i := range 60 {
		var text strings.Builder
		common := 3 + rng.IntN(len(words)-2)
		for range rng.IntN(120) {
			text.WriteString(words[rng.IntN(common)] + seps[rng.IntN(len(seps))])
		}
		path := fmt.Sprintf("%d.go", i)
		if i%4 == 0 {
			path = "tests/" + path
		}
		c.Repos[0].Documents = append(c.Repos[0].Documents, indextest.Document{Path: path, Content: []byte(text.String()), Branches: []string{"main"}, Language: "Go"})
	}
	return c
}

// TestTogether compares the scores of words that stand together with the oracle, and the best files with the beginning of the whole
// answer: with a queue, in one goroutine and in several, and on later pages.
func TestTogether(t *testing.T) {
	var texts []indextest.Query
	for i, text := range []string{"read file", "file read", "read file header", "case:yes read file header", "header file x", "read Files", "read file or x", "read file -x", "x f:tests read header",
		"f:edge/1\\.go read file header", "f:edge/3 file read", "f:/\\d\\.go$ x read"} {
		texts = append(texts, indextest.Query{Text: text, Kind: "together", Number: i})
	}
	words := []string{"read", "file", "header", "er", "Files", "read_file", "x", "kelvin", "c:x", "le"}
	for n := 1; n <= rank.MaxCompound; n++ {
		rng := rand.New(rand.NewPCG(uint64(n), 9))
		rng.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
		texts = append(texts, indextest.Query{Text: strings.Join(words[:n], " "), Kind: "together", Number: len(texts)})
	}
	for seed := range testrun.Rounds[uint64](2, 6) {
		c := scatteredWords(seed)
		s := openShard(t, buildShard(t, c))
		indextest.CheckPages(t, c, texts, form{name: "fresh", parts: []part{{shard: s}}}.pager())
		rng := rand.New(rand.NewPCG(seed, 8))
		for _, q := range texts {
			ready := prepare(t, parse(t, q.Text))
			for helpers := range 3 {
				opts := search.Options{MaxFiles: 1 + rng.IntN(12), MaxMatchesPerFile: 5, After: somewhere(s, ready, rng)}
				whole := run(t, s, ready, opts)
				opts.Mode = search.TopK
				if n := len(whole.Files); n == opts.MaxFiles {
					key := whole.Files[n-1].Key()
					opts.Floor = &key // the last file is not after it
				}
				if got := run(t, s, ready, search.WithHelpers(opts, helpers)); !sameFiles(got.Files, whole.Files) {
					t.Fatalf("seed %d, %s, best %d after %v, %d helpers:\n%v\nwant\n%v", seed, q.Text, opts.MaxFiles, opts.After, helpers, got.Files, whole.Files)
				}
			}
		}
	}
}

// TestTogetherIsAmongTheBest: the search looks at the best file last, and only words in sequence make it the best. They are at the end
// of a block, and in a test file, which is looked at only because of them.
func TestTogetherIsAmongTheBest(t *testing.T) {
	for name, tt := range map[string]struct{ path, text, others string }{
		"end of a block": {"z.go", strings.Repeat("-", 510) + "\nread file header\n", "read a file header\n"},
		"test":           {"tests/z.go", strings.Repeat("read file header\n", 8), strings.Repeat("read\nfile\nheader\n", 2)},
	} {
		c := &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}}}}
		add := func(path, text string) {
			c.Repos[0].Documents = append(c.Repos[0].Documents, indextest.Document{Path: path, Content: []byte(text), Branches: []string{"main"}})
		}
		for i := range 20 {
			add(fmt.Sprintf("%02d.go", i), fmt.Sprint(tt.others, i))
		}
		add(tt.path, tt.text)
		s := openShard(t, buildShard(t, c))
		got := run(t, s, prepare(t, parse(t, "read file header")), search.Options{MaxFiles: 1, Mode: search.TopK, MaxMatchesPerFile: 1})
		if len(got.Files) != 1 || string(got.Files[0].Path) != tt.path {
			t.Errorf("%s: the best is %v", name, got.Files)
		}
	}
}

// TestTogetherReadsFew: text is read only where postings and masks allow the words in one line, and only for documents whose bound
// puts them among the best.
func TestTogetherReadsFew(t *testing.T) {
	c := &indextest.Corpus{Repos: []indextest.Repo{{Name: "r", Branches: []string{"main"}}}}
	for i := range 400 {
		text := "read\n" + strings.Repeat("- \n", 1000) + "file\n"
		if i%10 == 0 {
			text = strings.Repeat("read a file\n", 1+i%7)
		}
		c.Repos[0].Documents = append(c.Repos[0].Documents, indextest.Document{Path: fmt.Sprint(i), Content: fmt.Appendf([]byte(text), "%d", i), Branches: []string{"main"}})
	}
	s := openShard(t, buildShard(t, c))
	tree, err := query.Parse("read file", query.ParseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := s.Find(context.Background(), prepare(t, tree), search.Options{MaxFiles: 10, Mode: search.TopK, MaxMatchesPerFile: 1})
	if err != nil || len(found.Hits) != 10 {
		t.Fatalf("%d hits, %v", len(found.Hits), err)
	}
	if found.Stats.UnitsDecoded > 40 {
		t.Errorf("%d units decoded; 40 documents have both words in neighbouring blocks", found.Stats.UnitsDecoded)
	}
}
