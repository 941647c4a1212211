package run

import (
	"fmt"
	"io"
	"time"

	"github.com/trawl-search/trawl/bench/querylog"
	"github.com/trawl-search/trawl/bench/report"
)

// Peers by name, as the figures to reach are told against them.
const (
	zoekt   = "zoekt"
	early   = "zoekt, stopping early"
	ripgrep = "ripgrep"
)

// Figures to reach that are no ratios.
const (
	neededIndexRatio   = 5.0
	neededThroughput   = 100.0 // MB per second of processor time
	neededSize         = 0.70  // index / source, before compaction
	neededHeap         = 5000  // bytes for each repo that has a shard of its own
	neededPackedHeap   = 2000  // bytes for each of many repos in a shard
	manyRepos          = 10_000
	neededOpenManyTime = time.Second
)

// timeTarget is how many times as fast as a peer a bucket shall be.
type timeTarget struct {
	bucket querylog.Bucket
	mode   int
	peer   string
	needed float64
}

var timeTargets = []timeTarget{
	{querylog.Rare, exhaustive, zoekt, 5},
	{querylog.Phrase, exhaustive, zoekt, 5},
	{querylog.NearMiss, exhaustive, zoekt, 5},
	{querylog.Mid, exhaustive, zoekt, 3},
	{querylog.Case, exhaustive, zoekt, 3},
	{querylog.Common, exhaustive, zoekt, 5},
	{querylog.Short, exhaustive, zoekt, 5},
	{querylog.RegexLiteral, exhaustive, zoekt, 20},
	{querylog.RegexOnly, exhaustive, ripgrep, 1},
	{querylog.Common, top50, zoekt, 10},
	{querylog.Common, top50, early, 10},
	{querylog.TwoWords, top50, zoekt, 10},
	{querylog.ThreeWords, top50, zoekt, 10},
	{querylog.FourWords, top50, zoekt, 10},
	{querylog.TwoWords, top50, early, 10},
	{querylog.ThreeWords, top50, early, 10},
	{querylog.FourWords, top50, early, 10},
}

// figures lists those of a corpus that the run has measured.
func (m *measured) figures() []report.Figure {
	read := float64(m.indexed.ReadBytes)
	var list []report.Figure
	if p := m.opponent(zoekt); p != nil {
		list = append(list, report.AtLeast("indexing, against zoekt", ratio(p.cost.CPU, m.cost.CPU), neededIndexRatio, "x"))
	}
	if read > 0 {
		list = append(list,
			report.AtLeast("indexing, MB per core-second", read/1e6/m.cost.CPU.Seconds(), neededThroughput, ""),
			report.AtMost("index / source", float64(m.indexed.IndexBytes)/read, neededSize, ""))
	}
	for _, o := range m.opened {
		list = append(list, o.figures()...)
	}
	for _, t := range timeTargets {
		if ratios := m.ratios(t); len(ratios) > 0 {
			list = append(list, report.AtLeast(fmt.Sprintf("%s, %s, against %s", t.bucket, modes[t.mode], t.peer), report.GeometricMean(ratios), t.needed, "x"))
		}
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

// figures of one way of holding shards: a shard for each repo, or many repos
// in one. Of a few repos it says nothing.
func (o *opening) figures() []report.Figure {
	if o.Repos < fewRepos {
		return nil
	}
	limit := neededHeap
	if o.Shards < o.Repos {
		limit = neededPackedHeap
	}
	list := []report.Figure{report.AtMost("heap per repo after a search, "+o.what, float64(o.HeapUsed)/float64(o.Repos), float64(limit), " B")}
	if o.Repos >= manyRepos {
		list = append(list, report.AtMost(fmt.Sprintf("opening %d repos, %s", o.Repos, o.what), o.Wall.Seconds(), neededOpenManyTime.Seconds(), " s"))
	}
	return list
}

// fewRepos is below which the heap of the process itself would count.
const fewRepos = 100

// ratios of the target's bucket to its peer, one for each query.
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

// writeFigures writes what is needed beside what was measured.
func writeFigures(w io.Writer, all []*measured) {
	var figures report.Figures
	for _, m := range all {
		figures.Add(m.corpus.Name, m.figures())
	}
	figures.Write(w)
}
