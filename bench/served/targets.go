package served

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/report"
	"github.com/trawl-search/trawl/index/build"
)

// Aims. Ratios are zoekt's time, or processor time, by Trawl's, by the caller's clock unless another one is named.
const (
	neededAll       = 3.0 // geometric mean of all queries: of one big tree, and of many repos
	neededKind      = 1.2 // geometric mean of each kind of query that consists of words, on one big tree
	neededWritten   = 1.5 // geometric mean of all queries that people wrote
	neededOwn       = 2.0 // the same, by the servers' clocks
	neededWorst     = .8  // each query, unless Trawl takes at most closeEnough longer
	closeEnough     = 150 * time.Microsecond
	neededNothing   = 60 * time.Microsecond // of a query that finds nothing, by the servers' clocks, beyond zoekt's
	neededCommon    = 5.0                   // top 50 of a common word
	neededSeveral   = 2.0                   // top 50 of two to four words
	neededPhrases   = 1.5                   // queries per core-second, phrases
	neededRate      = 12.0                  // queries per core-second, all but those that are slow by nature
	neededMemory    = 1.0                   // zoekt's divided by Trawl's
	neededCold      = 1.0                   // as fast as zoekt's first queries
	neededBuilding  = 80.0                  // MB per core-second
	neededPeak      = 500.0                 // MB, of building shards that are full
	neededSize      = .57                   // index by content, of one big tree
	neededSmallSize = .68                   // index by content, of smaller repos
)

// inWords are the kinds of sampled queries that consist of words.
var inWords = []corpus.Bucket{
	corpus.Rare, corpus.Mid, corpus.Common, corpus.Case, corpus.NearMiss, corpus.Alternation, corpus.Phrase,
	corpus.TwoWords, corpus.ThreeWords, corpus.FourWords, corpus.PathWord,
}

// figures returns the figures of the run for a corpus.
func (m *measured) figures() []report.Figure {
	return slices.Concat(m.exhaustiveFigures(), m.topFigures(), m.rateFigures(), m.indexFigures(), m.memoryFigures(), m.coldFigures(), m.rangedFigures())
}

// exhaustiveFigures compares queries that count all matches and show the best files.
func (m *measured) exhaustiveFigures() (list []report.Figure) {
	add := func(what string, measured, needed float64) {
		list = append(list, report.AtLeast(what+", exhaustive", measured, needed, "x"))
	}
	var all []ratio
	var kinds, each []float64
	for i := range m.buckets[exhaustive] {
		b := &m.buckets[exhaustive][i]
		ratios := b.against(zoekt)
		all = append(all, ratios...)
		own, other := b.timingOf(trawl), b.timingOf(zoekt)
		for _, r := range ratios {
			counts := r.client
			if own.queries[r.query].client-other.queries[r.query].client <= closeEnough {
				counts = max(counts, neededWorst)
			}
			each = append(each, counts)
		}
		if len(ratios) > 0 && len(m.corpus.Repos) == 1 && slices.Contains(inWords, b.name) {
			client, _ := means(ratios)
			kinds = append(kinds, client)
		}
	}
	if len(all) == 0 {
		return nil
	}
	client, own := means(all)
	if m.written() {
		add("all queries as people write them", client, neededWritten)
		add("all queries as people write them, by the servers' clocks", own, neededOwn)
	} else {
		add("all queries", client, neededAll)
	}
	if len(kinds) > 0 {
		add("worst kind of queries of words", slices.Min(kinds), neededKind)
	}
	add("worst query, unless it takes at most .15 ms longer", slices.Min(each), neededWorst)
	if own, other := m.bucketOf(exhaustive, corpus.NearMiss).timingOf(trawl), m.bucketOf(exhaustive, corpus.NearMiss).timingOf(zoekt); own != nil && other != nil {
		_, ours := own.times()
		_, theirs := other.times()
		more := report.Percentile(ours, 50) - report.Percentile(theirs, 50)
		list = append(list, report.AtMost("a query that finds nothing, beyond zoekt's p50, by the servers' clocks", milliseconds(more), milliseconds(neededNothing), " ms"))
	}
	return list
}

// written reports whether people wrote the queries of the corpus.
func (m *measured) written() bool { return len(m.corpus.Queries) > 0 }

// topFigures compares queries for the best 50 files with a zoekt that stops at the first ones.
func (m *measured) topFigures() (list []report.Figure) {
	add := func(what string, needed float64, ratios []ratio) {
		if len(ratios) > 0 {
			client, _ := means(ratios)
			list = append(list, report.AtLeast(what+", top 50, against "+early, client, needed, "x"))
		}
	}
	if m.written() {
		var all []ratio
		for i := range m.buckets[top50] {
			all = append(all, m.buckets[top50][i].against(early)...)
		}
		add("all queries as people write them", neededWritten, all)
	}
	add("common", neededCommon, m.bucketOf(top50, corpus.Common).against(early))
	add("2-4 words", neededSeveral, slices.Concat(m.bucketOf(top50, corpus.TwoWords).against(early),
		m.bucketOf(top50, corpus.ThreeWords).against(early), m.bucketOf(top50, corpus.FourWords).against(early)))
	return list
}

// rateFigures compares how many queries a processor answers.
func (m *measured) rateFigures() (list []report.Figure) {
	for _, t := range []struct {
		set    string
		needed float64
	}{{quick, neededRate}, {string(corpus.Phrase), neededPhrases}} {
		own, other := m.loadOf(t.set, trawl, mostClients), m.loadOf(t.set, zoekt, mostClients)
		if own == nil || other == nil || len(other.times) == 0 {
			continue
		}
		f := report.AtLeast(fmt.Sprintf("queries per core-second, %d clients, %s", mostClients, t.set), own.rate()/other.rate(), t.needed, "x")
		// The rate of a server that skips hard queries covers only the easy ones.
		f.Incomplete = own.late > 0 || own.cut
		list = append(list, f)
	}
	return list
}

// indexFigures returns what building the shards cost.
func (m *measured) indexFigures() (list []report.Figure) {
	i := slices.IndexFunc(m.prepared, func(p prepared) bool { return p.name == trawl })
	if i < 0 || m.bytes == 0 {
		return nil
	}
	size, cost := neededSmallSize, m.prepared[i].Cost
	if len(m.corpus.Repos) == 1 {
		size = neededSize
	}
	list = []report.Figure{
		report.AtLeast("building, MB per core-second", float64(m.bytes)/1e6/cost.CPU.Seconds(), neededBuilding, ""),
		report.AtMost("index / content", float64(cost.IndexBytes)/float64(m.bytes), size, ""),
	}
	// With less content than fills a shard, the peak says nothing.
	if len(m.corpus.Repos) == 1 && m.bytes >= build.DefaultMaxSourceBytes {
		list = append(list, report.AtMost("peak memory of building, MB", float64(cost.Peak)/1e6, neededPeak, ""))
	}
	return list
}

// memoryFigures compares the servers' memory after all queries: the whole, and what the repos add
// to a server without one.
func (m *measured) memoryFigures() (list []report.Figure) {
	last, empty := m.memoryOfBoth()
	own, other := last[trawl], last[zoekt]
	add := func(what string, own, other int64) {
		if own > 0 && other > 0 {
			list = append(list, report.AtLeast(what+" after all queries, zoekt's by trawl's", float64(other)/float64(own), neededMemory, "x"))
		}
	}
	add("resident memory of a repo", own.Anon+own.File-empty[trawl].Anon-empty[trawl].File, other.Anon+other.File-empty[zoekt].Anon-empty[zoekt].File)
	if len(m.corpus.Repos) >= manyRepos {
		add("heap of a repo", own.Heap-empty[trawl].Heap, other.Heap-empty[zoekt].Heap)
	}
	return list
}

// manyRepos is how many repos add more to the heap of a process than it varies by, which is a few MB.
const manyRepos = 100

// memoryOfBoth returns the memory of each server at the end, and at the start without a repo.
func (m *measured) memoryOfBoth() (last, empty map[string]memory) {
	last, empty = map[string]memory{}, map[string]memory{}
	for _, one := range m.memory {
		last[one.server] = one
		if _, ok := empty[one.server]; !ok {
			empty[one.server] = one
		}
	}
	return last, empty
}

// coldFigures compares first queries from a cold disk. A late query has no time: that favours zoekt
// if it is zoekt's, and makes the figure incomplete if it is Trawl's.
func (m *measured) coldFigures() (list []report.Figure) {
	for i := 0; i+1 < len(m.cold); i += 2 {
		own, other := &m.cold[i], &m.cold[i+1]
		if len(own.times) == 0 || len(other.times) == 0 {
			continue
		}
		f := report.AtLeast("cold disk, p50, "+usersText(own.users), float64(report.Percentile(other.times, 50))/float64(report.Percentile(own.times, 50)), neededCold, "x")
		f.Incomplete = own.late+own.failed > 0
		list = append(list, f)
	}
	return list
}

// rangedFigures returns figures of first queries on shards in S3, for which zoekt has no
// counterpart.
func (m *measured) rangedFigures() (list []report.Figure) {
	for i := range m.ranged {
		r := &m.ranged[i]
		if len(r.times) == 0 {
			continue
		}
		asked := float64(len(r.times) + r.late + r.failed)
		for _, f := range []report.Figure{
			report.Plain("p50", milliseconds(report.Percentile(r.times, 50)), " ms"),
			report.Plain("read by a query", float64(r.fetched)/1e6/asked, " MB"),
			report.Plain("requests of a query", float64(r.requests)/asked, ""),
		} {
			f.What, f.Incomplete = "shards in S3, "+f.What+", "+usersText(r.users), r.late+r.failed > 0
			list = append(list, f)
		}
	}
	return list
}

func usersText(n int) string {
	if n == 1 {
		return "1 user"
	}
	return fmt.Sprintf("%d users", n)
}

func (m *measured) bucketOf(mode int, name corpus.Bucket) *bucket {
	for i := range m.buckets[mode] {
		if b := &m.buckets[mode][i]; b.name == name {
			return b
		}
	}
	return &bucket{}
}

func (b *bucket) timingOf(name string) *timing {
	for i := range b.timings {
		if b.timings[i].name == name {
			return &b.timings[i]
		}
	}
	return nil
}

// against compares a contestant of a bucket with Trawl.
func (b *bucket) against(other string) []ratio {
	x, y := b.timingOf(other), b.timingOf(trawl)
	if x == nil || y == nil {
		return nil
	}
	return x.ratios(y)
}

// losing lists the figures by which Trawl is behind, the worst first.
func (m *measured) losing(w io.Writer) {
	var losses report.Losses
	for mode := range modes {
		for i := range m.buckets[mode] {
			b := &m.buckets[mode][i]
			for _, x := range b.timings[1:] {
				if ratios := x.ratios(&b.timings[0]); x.name != topK && len(ratios) > 0 {
					client, _ := means(ratios)
					losses.Addf(client, "%s, %s, %s", b.name, modes[mode], x.name)
				}
			}
		}
	}
	for i := range m.loads {
		l := &m.loads[i]
		if own := m.loadOf(l.set, trawl, l.clients); l.name != trawl && own != nil && len(l.times) > 0 {
			losses.Addf(own.rate()/l.rate(), "%s, queries per core-second, %s, %s", l.set, clientsText(l.clients), l.name)
		}
	}
	for i := 0; i+1 < len(m.cold); i += 2 {
		own, other := &m.cold[i], &m.cold[i+1]
		if len(own.times) > 0 {
			losses.Addf(float64(report.Percentile(other.times, 50))/float64(report.Percentile(own.times, 50)), "cold disk, %d at once, p50", own.users)
		}
	}
	m.losingMemory(&losses)
	losses.Write(w)
	for mode := range modes {
		m.losingQueries(w, mode)
	}
}

// mostLosing bounds the list of queries that zoekt answers faster.
const mostLosing = 25

// losingQueries lists the queries that zoekt answers faster, the worst first.
func (m *measured) losingQueries(w io.Writer, mode int) {
	type lost struct {
		bucket *bucket
		ratio
	}
	var list []lost
	peerName := m.peerOf(mode)
	slower, compared := 0, 0
	for i := range m.buckets[mode] {
		b := &m.buckets[mode][i]
		for _, r := range b.against(peerName) {
			if compared++; r.client < 1 {
				slower++
				list = append(list, lost{b, r})
			}
		}
	}
	fmt.Fprintf(w, "\n  Trawl is slower in %d of %d queries, %s\n\n", slower, compared, modes[mode])
	if slower == 0 {
		return
	}
	slices.SortStableFunc(list, func(a, b lost) int { return cmp.Compare(a.client, b.client) })
	var t report.Table
	t.Row("", "ratio", "trawl ms", "zoekt ms", "own ratio", "own trawl", "own zoekt", "files", "matches", "query")
	for _, l := range list[:min(len(list), mostLosing)] {
		own, other := l.bucket.timingOf(trawl).queries[l.query], l.bucket.timingOf(peerName).queries[l.query]
		t.Row(string(l.bucket.name), factor(l.client, []ratio{l.ratio}), report.Milliseconds(own.client), report.Milliseconds(other.client),
			factor(l.own, []ratio{l.ratio}), report.Milliseconds(own.own), report.Milliseconds(other.own),
			fmt.Sprint(own.files), fmt.Sprint(own.matches), l.bucket.queries[l.query].Text())
	}
	t.Write(w)
}

// peerOf is the contestant that Trawl is compared with in a mode.
func (*measured) peerOf(mode int) string {
	if mode == top50 {
		return early
	}
	return zoekt
}

// losingMemory compares what both hold after all queries.
func (m *measured) losingMemory(losses *report.Losses) {
	last, _ := m.memoryOfBoth()
	own, other := last[trawl], last[zoekt]
	if own.Anon > 0 && own.Heap > 0 {
		losses.Addf(float64(other.Anon)/float64(own.Anon), "RssAnon after all queries")
		losses.Addf(float64(other.Heap)/float64(own.Heap), "heap after all queries")
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
