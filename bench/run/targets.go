package run

import (
	"fmt"
	"time"

	"github.com/trawl-search/trawl/bench/report"
	"github.com/trawl-search/trawl/index/build"
)

// Names of peers, as the engines report them.
const (
	zoekt   = "zoekt"
	early   = "zoekt, stopping early"
	ripgrep = "ripgrep"
)

// Aims. Those of queries are of the service (bench/served).
const (
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

// figures returns the figures of the run for a corpus.
func (m *measured) figures() []report.Figure {
	read := float64(m.indexed.ReadBytes)
	var list []report.Figure
	if read > 0 {
		list = append(list,
			report.AtLeast("indexing, MB per core-second", read/1e6/m.cost.CPU.Seconds(), neededThroughput, ""),
			report.AtMost("index / source", float64(m.indexed.IndexBytes)/read, neededSize, ""))
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

// figuresOf returns the figures of all corpora.
func figuresOf(all []*measured) (figures report.Figures) {
	for _, m := range all {
		figures.Add(m.corpus.Label(), m.figures())
	}
	return figures
}
