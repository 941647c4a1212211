package served

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/report"
)

// Aims, by the caller's clock.
const (
	neededAll     = 10.0 // geometric mean of all queries
	neededWorst   = 2.0  // of each query, except rare ones and near misses
	neededPhrase  = 3.0
	neededOther   = 1.0 // words that are not ASCII
	neededTop     = 3.0 // top 50 of a common word, compared with stopping early
	neededRate    = 5.0 // queries per core-second
	neededNothing = 400 * time.Microsecond
	neededBeyond  = 300 * time.Microsecond // of rare ones and near misses, in addition to zoekt's time
	neededCost    = 0.3                    // ms of processor time of a query that finds nothing
	neededMemory  = 1.0                    // zoekt's divided by Trawl's
	neededCold    = 1.0                    // as fast as zoekt's first queries
)

// figures returns the figures of the run for a corpus.
func (m *measured) figures() []report.Figure {
	var list []report.Figure
	add := func(what string, measured, needed float64) {
		list = append(list, report.AtLeast(what, measured, needed, "x"))
	}
	within := func(what string, measured, needed float64) {
		list = append(list, report.AtMost(what, measured, needed, " ms"))
	}
	var all, others []ratio
	for i := range m.buckets[exhaustive] {
		b := &m.buckets[exhaustive][i]
		ratios := b.against(zoekt, trawl)
		all = append(all, ratios...)
		if b.name != corpus.Rare && b.name != corpus.NearMiss {
			others = append(others, ratios...)
		}
	}
	if len(all) > 0 {
		client, _ := means(all)
		add("all queries, exhaustive", client, neededAll)
	}
	if len(others) > 0 {
		add("worst query but rare and near-miss, exhaustive", worst(others).client, neededWorst)
	}
	for _, t := range []struct {
		bucket corpus.Bucket
		needed float64
	}{{corpus.Phrase, neededPhrase}, {corpus.NonASCII, neededOther}} {
		if ratios := m.bucketOf(exhaustive, t.bucket).against(zoekt, trawl); len(ratios) > 0 {
			client, _ := means(ratios)
			add(string(t.bucket)+", exhaustive", client, t.needed)
		}
	}
	for _, name := range []corpus.Bucket{corpus.Rare, corpus.NearMiss} {
		if own, other := m.bucketOf(exhaustive, name).timingOf(trawl), m.bucketOf(exhaustive, name).timingOf(zoekt); own != nil && other != nil {
			more := own.median() - other.median()
			within(string(name)+", exhaustive, beyond zoekt's p50", milliseconds(more), milliseconds(neededBeyond))
		}
	}
	if own := m.bucketOf(exhaustive, corpus.NearMiss).timingOf(trawl); own != nil {
		within("a query that finds nothing, p50", milliseconds(own.median()), milliseconds(neededNothing))
	}
	if l := m.loadOf(string(corpus.NearMiss), trawl, 1); l != nil && len(l.times) > 0 {
		within("a query that finds nothing, processor time", milliseconds(l.cpu)/float64(len(l.times)), neededCost)
	}
	for _, own := range []string{trawl, topK} {
		if ratios := m.bucketOf(top50, corpus.Common).against(early, own); len(ratios) > 0 {
			client, _ := means(ratios)
			add("common, top 50, "+own+" against "+early, client, neededTop)
		}
	}
	for _, set := range []string{mixed, quick, string(corpus.Phrase)} {
		if own, other := m.loadOf(set, trawl, mostClients), m.loadOf(set, zoekt, mostClients); own != nil && other != nil && len(other.times) > 0 {
			add(fmt.Sprintf("queries per core-second, %d clients, %s", mostClients, set), own.rate()/other.rate(), neededRate)
			// The rate of a server that skips hard queries covers only the easy ones.
			last := &list[len(list)-1]
			last.Incomplete = own.late > 0 || own.cut
		}
	}
	return slices.Concat(list, m.memoryFigures(), m.coldFigures(), m.rangedFigures())
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
	add("RssAnon", own.Anon, other.Anon)
	add("heap", own.Heap, other.Heap)
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

// against compares two contestants of a bucket.
func (b *bucket) against(other, own string) []ratio {
	x, y := b.timingOf(other), b.timingOf(own)
	if x == nil || y == nil {
		return nil
	}
	return x.ratios(y)
}

// median returns the median of the queries' times, by the caller's clock.
func (t *timing) median() time.Duration {
	client, _ := t.times()
	return report.Percentile(client, 50)
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
		for _, r := range b.against(peerName, trawl) {
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
