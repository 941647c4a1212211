package search_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
)

// searchParts searches shards in turn, each with the results of the earlier ones as its floor, and
// then shows the best files of all.
func searchParts(parts []part, q *search.Query, opts search.Options) (*search.Result, error) {
	ctx := context.Background()
	ranking := search.NewRanking(opts.MaxFiles, opts.MaxBytes)
	readable := opts.Repos
	var all []*search.Found
	for _, p := range parts {
		opts.Overlays, opts.Floor = p.overlays, ranking.Floor()
		if readable != nil {
			opts.Repos = func(repo int) bool { return readable(p.first + repo) }
		}
		opts.FloorNow = nil
		if p.late > 0 {
			var calls atomic.Int64
			floor := opts.Floor
			opts.Floor = nil
			opts.FloorNow = func() *search.Key {
				if calls.Add(1) < int64(p.late) {
					return nil
				}
				return floor
			}
		}
		found, err := p.shard.Find(ctx, q, opts)
		if err == nil {
			err = found.Incomplete
		}
		if err != nil {
			return nil, err
		}
		ranking.Add(found)
		all = append(all, found)
	}
	for i, found := range all {
		n := ranking.Count(i)
		if n == 0 {
			continue
		}
		shown, err := parts[i].shard.Show(ctx, found, n)
		if err == nil {
			err = shown.Incomplete
		}
		if err != nil {
			return nil, err
		}
		ranking.Shown(i, shown)
	}
	return ranking.Result(), nil
}

func find(t fataler, s *search.Shard, q *search.Query, opts search.Options) *search.Found {
	t.Helper()
	found, err := s.Find(context.Background(), q, opts)
	if err != nil || found.Incomplete != nil {
		t.Fatalf("find %s: %v, %v", q, err, found)
	}
	return found
}

// spread is a corpus as one shard, and dealt over several shards.
type spread struct {
	whole *search.Shard
	parts []part
}

// TestPartsShowWhatTheWholeShows: for all shards and limits, ranking the hits of all shards and
// showing the best gives the files of one shard with everything. Merging the answers that each
// shard shows gives the same.
func TestPartsShowWhatTheWholeShows(t *testing.T) {
	corpora := map[uint64]spread{}
	cuts := 0
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64Range(0, 30).Draw(rt, "corpus")
		s, made := corpora[seed]
		c := someTests(indextest.Random(seed))
		if !made {
			s.whole = openShard(t, buildShard(t, c))
			for _, piece := range deal(c, rand.New(rand.NewPCG(seed, 2))) {
				for _, smaller := range deal(piece, rand.New(rand.NewPCG(seed, 3))) {
					s.parts = append(s.parts, part{shard: openShard(t, buildShard(t, smaller))})
				}
			}
			corpora[seed] = s
		}
		texts := indextest.Queries(c, rapid.Uint64Range(0, 1000).Draw(rt, "queries"), 8)
		tree, err := query.Parse(texts[rapid.IntRange(0, 7).Draw(rt, "query")].Text, query.ParseOptions{})
		if err != nil {
			rt.Fatal(err)
		}
		q, err := search.Prepare(tree)
		if err != nil {
			return // the oracle's tests cover this
		}
		opts := search.Options{
			MaxFiles: rapid.IntRange(0, 30).Draw(rt, "files"), MaxMatchesPerFile: rapid.IntRange(0, 20).Draw(rt, "matches"),
			ContextLines: rapid.IntRange(0, 2).Draw(rt, "context"), Explain: rapid.Bool().Draw(rt, "explain"),
		}
		opts.After = somewhere(s.whole, q, rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "after"), 0)))
		whole := run(t, s.whole, q, opts)
		checkMerge(rt, s.parts, q, opts, whole)
		if rapid.Bool().Draw(rt, "bounded") {
			size := int64(1)
			for i := range whole.Files {
				size += whole.Files[i].Size()
			}
			opts.MaxBytes = rapid.Int64Range(1, size).Draw(rt, "bytes")
		}
		for _, opts.Mode = range []search.Mode{search.Exhaustive, search.TopK} {
			parts := slices.Clone(s.parts)
			rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "order"), 0)).Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
			got, err := searchParts(parts, q, opts)
			if err != nil {
				rt.Fatal(err)
			}
			if opts.MaxBytes == 0 {
				if !sameFiles(got.Files, whole.Files) || got.Cut {
					rt.Fatalf("%s: %v, cut %v\nwant %v", q, got.Files, got.Cut, whole.Files)
				}
				continue
			}
			checkBeginning(rt, got, whole, opts)
			if one := run(t, s.whole, q, opts); !sameFiles(got.Files, one.Files) {
				rt.Fatalf("%s: %v\nin one shard %v", q, got.Files, one.Files)
			}
			if got.Cut {
				cuts++
			}
		}
	})
	if cuts == 0 {
		t.Error("no answer was cut")
	}
}

// shardOf is a shard of a single file that has a word some times.
func shardOf(t *testing.T, path string, words int) part {
	t.Helper()
	return part{shard: openShard(t, buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{{
		Name: "r", Branches: []string{"main"}, Documents: []indextest.Document{{
			Path: path, Branches: []string{"main"}, Content: []byte(strings.Repeat("word ", words)),
		}},
	}}}))}
}

// TestALaterShardFillsTheRoom: of three files of three shards, the last one is found before the
// second one and has no room after the first. The second one still takes its place.
func TestALaterShardFillsTheRoom(t *testing.T) {
	first, second, last := shardOf(t, "a", 1), shardOf(t, "b", 1), shardOf(t, "vendor/c", 20)
	q := prepare(t, parse(t, "word"))
	opts := search.Options{MaxFiles: 2, MaxMatchesPerFile: 100}
	whole, err := searchParts([]part{first, second, last}, q, opts)
	if err != nil || len(whole.Files) != 2 || string(whole.Files[1].Path) != "b" {
		t.Fatalf("%v, %v", whole, err)
	}
	for i := range whole.Files {
		opts.MaxBytes += whole.Files[i].Size()
	}
	for _, order := range [][]part{{first, last, second}, {last, first, second}, {last, second, first}} {
		if got, err := searchParts(order, q, opts); err != nil || got.Cut || !sameFiles(got.Files, whole.Files) {
			t.Errorf("%v, %v\nwant %v", got, err, whole.Files)
		}
	}
}

// TestALostFileEndsTheAnswer: a file that the limit left out may belong in the place of one that turns
// out to be unreadable. It is gone, so the answer ends there, and takes no file that comes later.
func TestALostFileEndsTheAnswer(t *testing.T) {
	q := prepare(t, parse(t, "word"))
	ranking := search.NewRanking(2, 0)
	add := func(path string) int {
		return ranking.Add(find(t, shardOf(t, path, 1).shard, q, search.Options{MaxFiles: 2, MaxMatchesPerFile: 1}))
	}
	first, second, _ := add("a"), add("b"), add("c")
	ranking.Drop(second)
	later := add("d")
	if n, m := ranking.Count(first), ranking.Count(later); n != 1 || m != 0 || !ranking.Result().Cut {
		t.Errorf("%d and %d files, cut %v, want 1 and 0, cut", n, m, ranking.Result().Cut)
	}
}

// checkMerge compares the whole answer with what each shard shows on its own.
func checkMerge(t *rapid.T, parts []part, q *search.Query, opts search.Options, whole *search.Result) {
	t.Helper()
	var all []search.FileMatch
	var stats search.Stats
	for _, p := range parts {
		res, err := p.shard.Search(context.Background(), q, opts)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, res.Files...)
		stats.Add(res.Stats)
	}
	slices.SortFunc(all, func(a, b search.FileMatch) int { return search.Compare(a.Key(), b.Key()) })
	if all = all[:min(len(all), opts.MaxFiles)]; !sameFiles(all, whole.Files) {
		t.Fatalf("%s: merged %v\nwant %v", q, all, whole.Files)
	}
	if stats.FilesMatched != whole.Stats.FilesMatched || stats.Matches != whole.Stats.Matches {
		t.Fatalf("%s: counts %+v, want %+v", q, stats, whole.Stats)
	}
}

// eighths returns n files of one unit each, in eight shards.
func eighths(t *testing.T, n int) []part {
	t.Helper()
	all := manyFiles(n)
	var parts []part
	for i := range 8 {
		c := &indextest.Corpus{Repos: []indextest.Repo{all.Repos[0]}}
		c.Repos[0].Documents = nil
		for j := i; j < n; j += 8 {
			c.Repos[0].Documents = append(c.Repos[0].Documents, all.Repos[0].Documents[j])
		}
		parts = append(parts, part{shard: openShard(t, buildShard(t, c))})
	}
	return parts
}

// TestOnlyTheBestAreDecoded searches for a word, which needs no text: only the files that are shown
// are decoded.
func TestOnlyTheBestAreDecoded(t *testing.T) {
	const shown = 50
	for _, text := range []string{"common", "c:common", "(word|nowhere)", "a word", "-nowhere common"} {
		opts := search.Options{MaxFiles: shown, MaxMatchesPerFile: 100}
		res, err := searchParts(eighths(t, 800), prepare(t, parse(t, text)), opts)
		if err != nil || len(res.Files) != shown {
			t.Fatalf("%s: %d files, %v", text, len(res.Files), err)
		}
		if text == "a word" { // finding a phrase reads text
			continue
		}
		if res.Stats.UnitsDecoded > shown {
			t.Errorf("%s: %d units decoded for %d files", text, res.Stats.UnitsDecoded, shown)
		}
	}
}

// TestShownAgainIsTheSame: showing does not change what was found.
func TestShownAgainIsTheSame(t *testing.T) {
	s := openShard(t, buildShard(t, manyFiles(30)))
	for _, text := range []string{"common", "a common", "(common|word)", "f:1"} {
		found := find(t, s, prepare(t, parse(t, text)), search.Options{MaxFiles: 10, MaxMatchesPerFile: 7, ContextLines: 1})
		var first []search.FileMatch
		for n := range len(found.Hits) + 1 {
			res, err := s.Show(context.Background(), found, n)
			if err != nil || res.Incomplete != nil || len(res.Files) != n {
				t.Fatalf("%s: show %d: %v, %v", text, n, res, err)
			}
			if !sameFiles(res.Files[:len(first)], first) {
				t.Fatalf("%s: shown again %v, before %v", text, res.Files, first)
			}
			first = res.Files
		}
	}
}

// TestEndedContextShowsNothing: files that were not shown in time are missing, and the result says
// so. The ranking continues with the others.
func TestEndedContextShowsNothing(t *testing.T) {
	parts := eighths(t, 80)
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	q, ranking := prepare(t, parse(t, "common")), search.NewRanking(20, 0)
	var all []*search.Found
	for _, p := range parts {
		found := find(t, p.shard, q, search.Options{MaxFiles: 20, MaxMatchesPerFile: 3})
		ranking.Add(found)
		all = append(all, found)
	}
	want := 0
	for i, found := range all {
		ctx, n := context.Background(), ranking.Count(i)
		if i%2 == 0 {
			ctx = ended
		} else {
			want += n
		}
		res, err := parts[i].shard.Show(ctx, found, n)
		if err != nil || (ctx == ended) != errors.Is(res.Incomplete, context.Canceled) {
			t.Fatalf("show with context %v: %v, %v", ctx, res, err)
		}
		ranking.Shown(i, res)
	}
	// The limit had left out others, which would now have room.
	if res := ranking.Result(); len(res.Files) != want || want == 0 || !res.Cut || res.Stats.FilesMatched != 80 {
		t.Errorf("%d of %d files, cut %v; want %d", len(res.Files), res.Stats.FilesMatched, res.Cut, want)
	}
	ranking.Drop(0)
	if res := ranking.Result(); len(res.Files) != want || res.Stats.FilesMatched != 70 {
		t.Errorf("without one part %d files of %d, want %d", len(res.Files), res.Stats.FilesMatched, want)
	}
}

// TestDamageIsFoundWhileShowing: words are found without the text. Showing damaged text then gives
// an error that names it.
func TestDamageIsFoundWhileShowing(t *testing.T) {
	data := buildShard(t, manyFiles(30))
	f, err := format.NewFile("f", data)
	if err != nil {
		t.Fatal(err)
	}
	units, err := f.Need(format.TagUnits)
	if err != nil {
		t.Fatal(err)
	}
	bytes, err := units.Bytes(12, units.Len()-12)
	if err != nil {
		t.Fatal(err)
	}
	s := openShard(t, data)
	found := find(t, s, prepare(t, parse(t, "common")), search.Options{MaxFiles: 10, MaxMatchesPerFile: 3})
	for i := range bytes {
		bytes[i] = 0xFF
	}
	if _, err := s.Show(context.Background(), found, 10); !errors.Is(err, format.ErrCorrupt) {
		t.Errorf("show of a damaged shard: %v", err)
	}
}

// TestRankingIsASortOfAll: the best hits of all are the first hits of each part.
func TestRankingIsASortOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(0, 20).Draw(t, "limit")
		ranking := search.NewRanking(limit, 0)
		var all []string
		lists := make([][]search.Hit, rapid.IntRange(0, 4).Draw(t, "parts"))
		for i := range lists {
			for range rapid.IntRange(0, 6).Draw(t, "hits") {
				lists[i] = append(lists[i], search.Hit{Key: search.Key{
					Score: float64(rapid.IntRange(0, 2).Draw(t, "score")), Repo: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "repo"),
					Path: []byte(rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "path")), Blob: []byte{rapid.Byte().Draw(t, "blob")},
				}})
			}
			slices.SortFunc(lists[i], func(a, b search.Hit) int { return search.Compare(a.Key, b.Key) })
			ranking.Add(&search.Found{Hits: lists[i]})
		}
		var keys []search.Key
		for _, list := range lists {
			for _, h := range list {
				keys = append(keys, h.Key)
			}
		}
		slices.SortStableFunc(keys, search.Compare)
		for _, k := range keys[:min(limit, len(keys))] {
			all = append(all, fmt.Sprint(k))
		}
		var got []string
		for i, list := range lists {
			n := ranking.Count(i)
			shown := &search.Result{}
			for _, h := range list[:n] {
				shown.Files = append(shown.Files, search.FileMatch{Score: h.Key.Score, Repo: h.Key.Repo, Path: h.Key.Path, Blob: h.Key.Blob})
			}
			ranking.Shown(i, shown)
		}
		for _, f := range ranking.Result().Files {
			got = append(got, fmt.Sprint(f.Key()))
		}
		if !slices.Equal(got, all) {
			t.Fatalf("ranked %v, want %v", got, all)
		}
	})
}
