package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/report"
	"github.com/trawl-search/trawl/index/build"
)

// Names of peers, as the engines report them.
const (
	zoekt   = "zoekt"
	early   = "zoekt, stopping early"
	ripgrep = "ripgrep"
)

// Aims other than ratios of query times.
const (
	neededIndexRatio   = 4.0 // against zoekt without ctags
	neededCtagsRatio   = 10.0
	neededThroughput   = 80  // MB per second of processor time
	neededSize         = .65 // index / source, before compaction
	neededPackedSize   = .50 // the same after compaction
	neededHeap         = 3000.0
	neededPackedHeap   = 1.0 // bytes per repo, with many repos in a shard
	manyRepos          = 10_000
	neededOpenManyTime = time.Second
	// neededPeak is the peak memory in MB of building shards of the default size. With less content
	// than fills one, the peak says nothing.
	neededPeak = 500
)

// wordLike are the buckets whose queries are words or parts of words.
var wordLike = []corpus.Bucket{
	corpus.Rare, corpus.Mid, corpus.Common, corpus.Case, corpus.Alternation,
	corpus.TwoWords, corpus.ThreeWords, corpus.FourWords, corpus.PathWord,
}

const (
	neededWordLike = 50.0 // geometric mean of all queries of wordLike
	neededWorst    = 5.0  // of each query
)

// timeTarget is how many times as fast as a peer the queries of a bucket must be, as a geometric mean.
type timeTarget struct {
	bucket corpus.Bucket
	mode   int
	peer   string
	needed float64
}

var timeTargets = []timeTarget{
	{corpus.Phrase, exhaustive, zoekt, 3},
	{corpus.NonASCII, exhaustive, zoekt, 1},
	{corpus.RegexWord, exhaustive, zoekt, 100},
	{corpus.RegexLiteral, exhaustive, zoekt, 30},
	{corpus.RegexOnly, exhaustive, zoekt, 30},
	{corpus.RegexOnly, exhaustive, ripgrep, 1},
	{corpus.Common, top50, early, 3},
}

// figures returns the figures of the run for a corpus.
func (m *measured) figures() []report.Figure {
	read := float64(m.indexed.ReadBytes)
	var list []report.Figure
	if p := m.opponent(zoekt); p != nil {
		list = append(list, report.AtLeast("indexing, against zoekt", ratio(p.cost.CPU, m.cost.CPU), neededIndexRatio, "x"))
	}
	if m.ctags.CPU > 0 {
		list = append(list, report.AtLeast("indexing, against zoekt with ctags", ratio(m.ctags.CPU, m.cost.CPU), neededCtagsRatio, "x"))
	}
	if read > 0 {
		list = append(list,
			report.AtLeast("indexing, MB per core-second", read/1e6/m.cost.CPU.Seconds(), neededThroughput, ""),
			report.AtMost("index / source", float64(m.indexed.IndexBytes)/read, neededSize, ""))
		list = append(list, m.buildFigures()...)
		if m.indexed.ContentBytes >= build.DefaultMaxSourceBytes {
			list = append(list, report.AtMost("peak memory of indexing, MB", float64(m.cost.Peak)/1e6, neededPeak, ""))
		}
		if m.packs != nil {
			list = append(list, report.AtMost("index / source, merged", float64(m.packs.PackBytes)/read, neededPackedSize, ""))
		}
	}
	for _, o := range m.opened {
		list = append(list, o.figures()...)
	}
	var words []float64
	for _, b := range wordLike {
		words = append(words, m.ratios(timeTarget{bucket: b, mode: exhaustive, peer: zoekt})...)
	}
	if len(words) > 0 {
		list = append(list,
			report.AtLeast("word-like queries, exhaustive, against "+zoekt, report.GeometricMean(words), neededWordLike, "x"),
			report.AtLeast("worst word-like query, exhaustive, against "+zoekt, slices.Min(words), neededWorst, "x"))
	}
	for _, t := range timeTargets {
		if ratios := m.ratios(t); len(ratios) > 0 {
			list = append(list, report.AtLeast(fmt.Sprintf("%s, %s, against %s", t.bucket, modes[t.mode], t.peer), report.GeometricMean(ratios), t.needed, "x"))
		}
	}
	return list
}

// buildFigures returns the figures of builds from cold files and of one shard per repo.
func (m *measured) buildFigures() []report.Figure {
	megabytes := float64(m.indexed.ReadBytes) / 1e6
	p := m.opponent(zoekt)
	list := []report.Figure{report.Plain("indexing, cold files, MB per second", megabytes/m.cold.Wall.Seconds(), "")}
	if p != nil {
		list = append(list, report.AtLeast("indexing, cold files, time against zoekt", ratio(p.cold.Wall, m.cold.Wall), 1, "x"))
	}
	if m.single == nil {
		return list
	}
	list = append(list,
		report.Plain("indexing, a shard for each repo, MB per core-second", megabytes/m.single.cost.CPU.Seconds(), ""),
		report.Plain("indexing, a shard for each repo, built in the memory of an earlier one", 100*float64(m.single.Reused)/float64(len(m.single.Shards)), " %"))
	if p != nil {
		list = append(list, report.AtLeast("indexing, a shard for each repo, against zoekt", ratio(p.cost.CPU, m.single.cost.CPU), neededIndexRatio, "x"))
	}
	return list
}

func (m *measured) opponent(name string) *opponent {
	for _, p := range m.peers {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

// figures returns the figures of one way of keeping shards open: one shard per repo, or many repos in
// one. There are none for few repos.
func (o *opening) figures() []report.Figure {
	if o.Repos < fewRepos {
		return nil
	}
	limit := neededHeap
	if o.Shards < o.Repos {
		limit = neededPackedHeap
	}
	list := []report.Figure{report.AtMost("heap per repo after a search, "+o.what, float64(o.HeapUsed)/float64(o.Repos), limit, " B")}
	if o.Repos >= manyRepos {
		list = append(list, report.AtMost(fmt.Sprintf("opening %d repos or more, %s", manyRepos, o.what), o.Wall.Seconds(), neededOpenManyTime.Seconds(), " s"))
	}
	return list
}

// fewRepos is the number of repos below which the heap of the process itself would matter.
const fewRepos = 100

// ratios returns the ratios of the target's bucket to its peer, one per query.
func (m *measured) ratios(t timeTarget) []float64 {
	for _, b := range m.buckets {
		for _, e := range b.engines {
			if b.name == t.bucket && e.name == t.peer {
				return e.ratios[t.mode]
			}
		}
	}
	return nil
}

// figuresOf returns the figures of all corpora.
func figuresOf(all []*measured) (figures report.Figures) {
	for _, m := range all {
		figures.Add(m.corpus.Label(), m.figures())
	}
	return figures
}
