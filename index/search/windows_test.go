package search_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/testrun"
)

// expressions have literals. Their matches stay in a line or cross lines, and
// have a longest length or none.
var expressions = []string{
	`needle`, `(needle|thread)`, `(needles?|thread|nee)`, `(need|needle)`, `nee(dle|d)`, `needle\b`, `\bneedle`, `^needle`, `needle$`, `^needle$`,
	`\w+needle`, `needle\w*`, `\w+\.thread\b`, `[a-z]+_?needle[0-9A-Z]`, `needle.{1,20}thread`, `needle.*thread`, `(needle|thread)\w`, `\w(needle|thread)`,
	`needle\s+thread`, `needle\s?thread`, `thread\n`, `\nthread`, `needle(?s:.{0,9})thread`, `needle[^x]{0,40}thread`, `(?s)needle.*thread`, `needle\s*$`,
	`\Aneedle`, `needle\z`, `\Bthread\B`, `^.*needle.*$`, `\bneedle\W+thread\b`, `[nt](eedle|hread)+`, `needle|thread\n`, `task(s|_)`, `(kelvin|needle)`, `sk.n`,
	`nee\w+[\s]+thread\b`, `(needle|x)\s+\w+\s+thread`, `thread[^t]*needle`, `(thread\s*){2,}`, `(?:\s*needle\s*)+`, `needle(\n|x)*thread`, `\s+needle\s+`, `(needle\W+thread|thread\W+nee)`,
	`needle\x{FFFD}`, `\x{FFFD}thread`, `(?:needle)+`, `[^\n]needle`, `[^a]thread`, `needle|`, `threads{1}`, `(?i:needle)Thread`,
	`(?P<word>needle)`, `(?P<word>need|needle)`, `(?P<word>needle\s+thread)`, `(?P<word>\bthread\b)`, `(?P<word>\w+needle)`, `(?P<word>日)`, `(?P<word>[^x]needle)`, `(?P<word>(needle|thread)s?)`,
}

// pieces are placed at and across the borders of blocks, units and superblocks.
var pieces = []string{
	"needle", "thread", "needles", "Needle", "THREAD", "needle thread", "needle\n\nthread", "needle\r\n", "x_needle9", "a.thread ", "needleneedle", "nee\ndle",
	"needle\xff", "\xe2\x84thread", "\u212aelvin", "Kelvin", "ta\u017fk\u017f", "TASK_", "s\u212ain", "\nneedle\n", "日needle本", "threads", "needleThread", "need", "nee", "\n\n\n", " \n\t\n", "thread\nneedle", "needle x thread", "threa", "hread", "thr",
}

// longText returns several superblocks with pieces near their borders,
// sometimes in lines longer than a superblock.
func longText(rng *rand.Rand) []byte {
	filler := []string{"abc def\n", "\n", " ", "日本 ", "x", "lorem ipsum dolor\r\n", "\xff"}[rng.IntN(7)]
	text := bytes.Repeat([]byte(filler), (2+rng.IntN(4))*docstore.SuperblockSize/len(filler))
	for range 1 + rng.IntN(24) {
		piece := pieces[rng.IntN(len(pieces))]
		border := rng.IntN(len(text)/docstore.BlockSize) * docstore.BlockSize
		at := min(max(0, border-rng.IntN(2*len(piece)+8)+4), len(text))
		if rng.IntN(3) == 0 {
			text = slices.Insert(text, at, []byte(piece)...)
		} else {
			copy(text[at:], piece)
		}
	}
	if rng.IntN(2) == 0 {
		text = append(text, pieces[rng.IntN(len(pieces))]...)
	}
	return text
}

func TestWindowsAreTheWholeText(t *testing.T) {
	found := map[string]bool{}
	for seed := range testrun.Rounds[uint64](3, 8) {
		checkWindows(t, seed, found)
	}
	for _, e := range expressions {
		if !found[e] && testrun.All() {
			t.Errorf("%s never matched: the test says little", e)
		}
	}
}

// checkWindows compares matches in long texts with those that the standard
// library finds.
func checkWindows(t *testing.T, seed uint64, found map[string]bool) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 2))
	var buf bytes.Buffer
	b, err := build.NewBuilder(&buf, build.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.AddRepo(docstore.Repo{Name: "r", Branches: []docstore.Branch{{Name: "main"}}}); err != nil {
		t.Fatal(err)
	}
	texts := map[string][]byte{}
	for i := range 8 {
		path := fmt.Sprintf("file%d", i)
		texts[path] = longText(rng)
		if err := b.Add(build.Document{Path: []byte(path), Content: texts[path], Branches: []uint32{0}, OID: gitID(texts[path])}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Close(); err != nil {
		t.Fatal(err)
	}
	s := openShard(t, buf.Bytes())
	checkExpressions(t, seed, s, texts, found)
}

func checkExpressions(t *testing.T, seed uint64, s *search.Shard, texts map[string][]byte, found map[string]bool) {
	t.Helper()
	for _, e := range expressions {
		for _, fold := range []string{"yes", "no"} {
			flags := map[string]string{"yes": "(?m)", "no": "(?mi)"}[fold]
			q := prepare(t, parse(t, "content:"+e+" case:"+fold))
			got, files := searchRanges(t, s, q, 1<<20)
			few, counted := searchRanges(t, s, q, 2)
			for path, text := range texts {
				want := wanted(t, flags, e, text)
				if !slices.Equal(got[path], want) {
					t.Fatalf("seed %d: %s case:%s in %s: %v, want %v", seed, e, fold, path, got[path], want)
				}
				if !indextest.Shows(want, few[path], 2) || counted[path] != files[path] || counted[path].MatchCount != len(want) {
					t.Fatalf("seed %d: %s case:%s in %s: some of %v: %v, %+v", seed, e, fold, path, want, few[path], counted[path])
				}
				found[e] = found[e] || len(want) > 0
			}
		}
	}
}

// wanted are the matches that the standard library finds, or of whole words the engine itself in the whole text.
func wanted(t *testing.T, flags, e string, text []byte) (ranges []indextest.Range) {
	t.Helper()
	if !strings.HasPrefix(e, "(?P<word>") {
		return nonEmpty(regexp.MustCompile(flags+e).FindAllIndex(text, -1))
	}
	tree, err := syntax.Parse(e, query.Flags)
	if err != nil {
		t.Fatal(err)
	}
	m, err := regex.NewMatcher(tree, flags == "(?m)")
	if err != nil {
		t.Fatal(err)
	}
	for start, end := range regex.Ranges(m, text) {
		ranges = append(ranges, indextest.Range{Start: start, End: end})
	}
	return ranges
}

// rated has the fields that do not depend on how many matches of a file are
// shown.
type rated struct {
	MatchCount int
	Score      float64
}

func searchRanges(t *testing.T, s *search.Shard, q *search.Query, most int) (ranges map[string][]indextest.Range, files map[string]rated) {
	t.Helper()
	res, err := s.Search(context.Background(), q, search.Options{MaxFiles: 100, MaxMatchesPerFile: most})
	if err != nil {
		t.Fatal(err)
	}
	ranges, files = map[string][]indextest.Range{}, map[string]rated{}
	for _, r := range toResults(res) {
		ranges[r.Path] = r.Content
	}
	for _, f := range res.Files {
		files[string(f.Path)] = rated{f.MatchCount, f.Score}
	}
	return ranges, files
}

func nonEmpty(locs [][]int) (ranges []indextest.Range) {
	for _, l := range locs {
		if l[0] < l[1] {
			ranges = append(ranges, indextest.Range{Start: l[0], End: l[1]})
		}
	}
	return ranges
}

// TestWindowsDecodeNearMatchesOnly has lines of 60 bytes across the borders of superblocks, in each of some places of a large text. What
// is decoded for a line must not grow with the text before or after it.
func TestWindowsDecodeNearMatchesOnly(t *testing.T) {
	const line = 60
	text := bytes.Repeat(append(bytes.Repeat([]byte("lorem "), line/6-1), "ipsu.\n"...), 3<<20/line)
	borders := []int{40, 300, 301, 500, 700}
	for i, border := range borders {
		copy(text[border*docstore.SuperblockSize+10*i-20:], "needle thread")
	}
	s := oneFile(t, text)
	for _, e := range []string{
		`needle`, `needle thread`, `(needle|thread)`, `needle.`, `\w+\s+thread`, `needle\s+thread`, `.needle`, `needle.*`, `^.*needle`, `lorem.*needle`, `needle\b`, `[a-z]needle`,
		`needle(?s:.{0,9})thread`, `needle[^x]{0,40}thread`, `\bneedle\W+thread\b`, `^.*needle.*$`, `needle\s*$`, `needle[\n ]*thread`, `needle thread\s*[a-z]*`,
	} {
		q := prepare(t, parse(t, "content:"+strconv.Quote(e)))
		for _, mode := range []search.Mode{search.Exhaustive, search.TopK} {
			res, err := s.Search(t.Context(), q, search.Options{MaxFiles: 10, MaxMatchesPerFile: 1, Mode: mode})
			if err != nil {
				t.Fatal(err)
			}
			if most := uint64(len(borders) * 6 * docstore.SuperblockSize); res.Stats.BytesDecoded > most {
				t.Errorf("%s, mode %v: %d bytes were decoded for %d lines, %d are enough", e, mode, res.Stats.BytesDecoded, len(borders), most)
			}
		}
	}
}
