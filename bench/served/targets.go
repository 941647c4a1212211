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

// Figures to reach, by the caller's clock.
const (
	neededAll     = 10.0 // geometric mean of all queries
	neededWorst   = 2.0  // of each query, but rare ones and near misses
	neededPhrase  = 3.0
	neededTop     = 3.0 // top 50 of a common word, against stopping early
	neededRate    = 5.0 // queries per core-second
	neededNothing = 400 * time.Microsecond
	neededBeyond  = 300 * time.Microsecond // rare ones and near misses, beyond zoekt's time
	neededCost    = 0.3                    // ms of processor time of a query that finds nothing
)

// figures are those of a corpus that the run has measured.
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
	if ratios := m.bucketOf(exhaustive, corpus.Phrase).against(zoekt, trawl); len(ratios) > 0 {
		client, _ := means(ratios)
		add("phrase, exhaustive", client, neededPhrase)
	}
	for _, name := range []corpus.Bucket{corpus.Rare, corpus.NearMiss} {
		if own, other := m.bucketOf(exhaustive, name).timingOf(trawl), m.bucketOf(exhaustive, name).timingOf(zoekt); own != nil && other != nil {
			more := report.Percentile(own.client, 50) - report.Percentile(other.client, 50)
			within(string(name)+", exhaustive, beyond zoekt's p50", milliseconds(more), milliseconds(neededBeyond))
		}
	}
	if own := m.bucketOf(exhaustive, corpus.NearMiss).timingOf(trawl); own != nil {
		within("a query that finds nothing, p50", milliseconds(report.Percentile(own.client, 50)), milliseconds(neededNothing))
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
	most := levels[len(levels)-1]
	for _, set := range []string{mixed, quick} {
		if own, other := m.loadOf(set, trawl, most), m.loadOf(set, zoekt, most); own != nil && other != nil && len(other.times) > 0 {
			add(fmt.Sprintf("queries per core-second, %d clients, %s", most, set), own.rate()/other.rate(), neededRate)
			// A server that leaves the hard ones out has a rate of the easy ones.
			last := &list[len(list)-1]
			last.Reached = last.Reached && own.late == 0 && !own.cut
		}
	}
	return list
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

// writeFigures writes what is needed beside what was measured.
func writeFigures(w io.Writer, all []*measured) {
	var figures report.Figures
	for _, m := range all {
		figures.Add(m.corpus.Name, m.figures())
	}
	figures.Write(w)
}

// loss is a figure by which Trawl is behind.
type loss struct {
	text   string
	factor float64
}

// losing lists them, the worst first.
func losing(w io.Writer, all []*measured) {
	var list []loss
	add := func(ratio float64, format string, args ...any) {
		if ratio > 0 && ratio < 1 {
			list = append(list, loss{fmt.Sprintf(format, args...), 1 / ratio})
		}
	}
	for _, m := range all {
		for mode := range modes {
			for i := range m.buckets[mode] {
				b := &m.buckets[mode][i]
				for _, x := range b.timings[1:] {
					if ratios := x.ratios(&b.timings[0]); x.name != topK && len(ratios) > 0 {
						client, _ := means(ratios)
						add(client, "%s: %s, %s, %s", m.corpus.Name, b.name, modes[mode], x.name)
					}
				}
			}
		}
		for i := range m.loads {
			l := &m.loads[i]
			if own := m.loadOf(l.set, trawl, l.clients); l.name != trawl && own != nil && len(l.times) > 0 {
				add(own.rate()/l.rate(), "%s: %s, queries per core-second, %s, %s", m.corpus.Name, l.set, clientsText(l.clients), l.name)
			}
		}
		for i := 0; i+1 < len(m.cold); i += 2 {
			own, other := &m.cold[i], &m.cold[i+1]
			if len(own.times) > 0 {
				add(float64(report.Percentile(other.times, 50))/float64(report.Percentile(own.times, 50)), "%s: cold disk, %d at once, p50", m.corpus.Name, own.users)
			}
		}
		m.losingMemory(add)
	}
	slices.SortFunc(list, func(a, b loss) int { return cmp.Compare(b.factor, a.factor) })
	var t report.Table
	for _, l := range list {
		t.Row(l.text, fmt.Sprintf("%.2fx better", l.factor))
	}
	t.Write(w)
	if len(list) == 0 {
		fmt.Fprintln(w, "  none")
	}
	for _, m := range all {
		slower, compared := m.slower()
		fmt.Fprintf(w, "\n  %s: Trawl is slower in %d of %d queries, exhaustive\n", m.corpus.Name, slower, compared)
	}
}

// losingMemory compares what both hold after all queries.
func (m *measured) losingMemory(add func(ratio float64, format string, args ...any)) {
	last := map[string]memory{}
	for _, one := range m.memory {
		last[one.server] = one
	}
	own, other := last[trawl], last[zoekt]
	if own.Anon > 0 && own.Heap > 0 {
		add(float64(other.Anon)/float64(own.Anon), "%s: RssAnon after all queries", m.corpus.Name)
		add(float64(other.Heap)/float64(own.Heap), "%s: heap after all queries", m.corpus.Name)
	}
}

// slower counts the queries that zoekt answers faster.
func (m *measured) slower() (slower, compared int) {
	for i := range m.buckets[exhaustive] {
		for _, r := range m.buckets[exhaustive][i].against(zoekt, trawl) {
			compared++
			if r.client < 1 {
				slower++
			}
		}
	}
	return slower, compared
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
