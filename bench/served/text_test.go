package served

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/peer"
	"github.com/trawl-search/trawl/bench/report"
	"github.com/trawl-search/trawl/index/build"
)

// sample is a corpus in which zoekt is twice as fast for a phrase and Trawl 40 times for a near
// miss. With 64 clients Trawl needs a third more processor time.
func sample() *measured {
	b := func(name corpus.Bucket, own, other time.Duration) bucket {
		return bucket{name: name, queries: []corpus.Query{{Patterns: []string{"w" + string(name)}}}, timings: []timing{
			timingOf(trawl, took(own, own)), timingOf(zoekt, took(other, other)),
		}}
	}
	m := &measured{corpus: corpus.Corpus{Name: "small", Repos: make([]corpus.Repo, 2)}}
	m.buckets[exhaustive] = []bucket{b(corpus.Phrase, 4*ms, 2*ms), b(corpus.NearMiss, ms/5, 8*ms)}
	top := b(corpus.Common, 4*ms, 4*ms)
	top.timings[1].name = early
	top.timings = append(top.timings, timingOf(topK, took(ms, ms)))
	m.buckets[top50] = []bucket{top}
	m.loads = []load{
		{set: mixed, name: trawl, clients: 64, times: make([]time.Duration, 30), cpu: time.Second, wall: time.Second},
		{set: mixed, name: zoekt, clients: 64, times: make([]time.Duration, 40), cpu: time.Second, wall: time.Second, late: 3},
		{set: "near-miss", name: trawl, clients: 1, times: make([]time.Duration, 10), cpu: 20 * ms, wall: time.Second, refused: 1, reason: "refused it"},
	}
	m.memory = []memory{
		{trawl, "without a repo", peer.Memory{Anon: 10e6, File: 1e6, Heap: 5e6}}, {zoekt, "without a repo", peer.Memory{Anon: 8e6, File: 1e6, Heap: 4e6}},
		{trawl, "after all queries", peer.Memory{Anon: 30e6, File: 5e6, Heap: 6e6}}, {zoekt, "after all queries", peer.Memory{Anon: 60e6, File: 5e6, Heap: 3e6}},
	}
	m.cold = []cold{
		{name: trawl, users: 1, times: []time.Duration{30 * ms}, ready: []time.Duration{ms, ms}, used: peer.Usage{ReadBytes: 4e6, MajorFaults: 6}},
		{name: zoekt, users: 1, times: []time.Duration{10 * ms}, ready: []time.Duration{ms, ms}},
	}
	m.ranged = []ranged{{cold: cold{name: trawl, users: 2, times: []time.Duration{5 * ms}, late: 1, failed: 1, reason: "no room"}, fetched: 12e6, requests: 8}}
	m.bytes, m.prepared = 100e6, []prepared{{trawl, peer.Cost{CPU: 2 * time.Second, Peak: 300e6, IndexBytes: 60e6}, 7 * time.Second}}
	m.sets = []sets{{bucket: corpus.Phrase, same: 1, reasons: map[string]int{"binary": 2}, examples: []string{"an example"}}}
	return m
}

// TestLosingRows: exactly the rows in which Trawl is behind, the worst first.
func TestLosingRows(t *testing.T) {
	var b bytes.Buffer
	sample().losing(&b)
	var got []string
	for line := range strings.Lines(b.String()) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"cold disk, 1 at once, p50 3.00x better", "phrase, exhaustive, zoekt 2.00x better", "heap after all queries 2.00x better",
		"all buckets, queries per core-second, 64 clients, zoekt 1.33x better", "", "Trawl is slower in 1 of 2 queries, exhaustive",
		"", "ratio trawl ms zoekt ms own ratio own trawl own zoekt files matches query",
		`phrase 0.50 4.00 2.00 0.50 4.00 2.00 0 0 content:"wphrase" case:no`, "", "Trawl is slower in 0 of 1 queries, top 50", "",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", b.String())
	}
}

// TestFigures: each figure is listed with its aim and whether it is reached.
func TestFigures(t *testing.T) {
	want := []string{
		"all queries, exhaustive | ≥ 3x | 4.47x | yes",
		"worst query, unless it takes at most .15 ms longer, exhaustive | ≥ 0.8x | 0.50x | NO",
		"a query that finds nothing, beyond zoekt's p50, by the servers' clocks | ≤ 0.06 ms | -7.8 ms | yes",
		"common, top 50, against zoekt, stopping early | ≥ 5x | 1.00x | NO",
		"building, MB per core-second | ≥ 80 | 50.00 | NO",
		"index / content | ≤ 0.68 | 0.6 | yes",
		"resident memory of a repo after all queries, zoekt's by trawl's | ≥ 1x | 2.33x | yes",
		"cold disk, p50, 1 user | ≥ 1x | 0.33x | NO",
		"shards in S3, p50, 2 users | – | 5 ms, incomplete | –",
		"shards in S3, read by a query, 2 users | – | 4 MB, incomplete | –",
		"shards in S3, requests of a query, 2 users | – | 2.667, incomplete | –",
	}
	m := sample()
	check := func(want ...string) {
		t.Helper()
		var got []string
		for _, f := range m.figures() {
			got = append(got, strings.Join([]string{f.What, f.NeededText(), f.MeasuredText(), f.ReachedText()}, " | "))
		}
		if !slices.Equal(got[:min(len(got), len(want))], want) {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	check(want...)
	// On one big tree each kind of query counts.
	m.corpus.Repos, m.bytes = m.corpus.Repos[:1], build.DefaultMaxSourceBytes
	check(want[0], "worst kind of queries of words, exhaustive | ≥ 1.2x | 0.50x | NO", want[1], want[2], want[3],
		"building, MB per core-second | ≥ 80 | 134.22 | yes", "index / content | ≤ 0.57 | 0.2235 | yes", "peak memory of building, MB | ≤ 500 | 300 | yes")
	// What people write is compared by both clocks, and for the best files, too.
	m.corpus.Queries = make([]corpus.Query, 1)
	if got := m.topFigures()[0]; got.What != "all queries as people write them, top 50, against zoekt, stopping early" || got.Measured != 1 {
		t.Errorf("got %+v", got)
	}
	check("all queries as people write them, exhaustive | ≥ 1.5x | 4.47x | yes",
		"all queries as people write them, by the servers' clocks, exhaustive | ≥ 2x | 4.47x | yes")
	// A query that takes little longer may be several times as slow.
	m.buckets[exhaustive][0].timings[0] = timingOf(trawl, took(ms/10, ms/10))
	m.buckets[exhaustive][0].timings[1] = timingOf(zoekt, took(ms/50, ms/50))
	if f := m.exhaustiveFigures()[3]; f.Measured != .8 || f.Missed() {
		t.Errorf("a query that is close behind counts: %+v", f)
	}
	m.buckets[exhaustive][1].timings[0] = timingOf(trawl, took(16*ms, 16*ms))
	if f := m.exhaustiveFigures()[3]; f.Measured != .5 || !f.Missed() {
		t.Errorf("a query that is far behind does not count: %+v", f)
	}
	// The heap of few repos drowns in that of the process.
	m.memory[3].Heap = 8e6
	for repos, listed := range map[int]bool{2: false, manyRepos: true} {
		m.corpus.Repos = make([]corpus.Repo, repos)
		if got := slices.ContainsFunc(m.memoryFigures(), func(f report.Figure) bool {
			return strings.HasPrefix(f.What, "heap of a repo ") && f.Measured == 4
		}); got != listed {
			t.Errorf("%d repos: %+v", repos, m.memoryFigures())
		}
	}
	// If queries of a cold disk fail, the others do not reach the aim.
	m.cold[1].times, m.cold[0].late = []time.Duration{time.Second}, 1
	if f := m.coldFigures()[0]; !f.Missed() {
		t.Errorf("one was late: %+v", f)
	}
	// A late query is not part of a rate, so it must not improve it.
	for late, reached := range map[int]bool{0: true, 1: false} {
		m.loads[0].times, m.loads[0].late, m.loads[0].set, m.loads[1].set = make([]time.Duration, 600), late, quick, quick
		for _, f := range m.rateFigures() {
			if f.Measured != 15 || f.Missed() == reached {
				t.Errorf("%d late: %+v", late, f)
			}
		}
	}
}

func TestReport(t *testing.T) {
	r := &runner{cfg: Config{Cold: 2, Ranged: 2}, webserver: "no-such-program"}
	var b bytes.Buffer
	r.report(t.Context(), &b, time.Now(), sample())
	text := b.String()
	if losses, times := strings.Index(text, "LOSING"), strings.Index(text, "one at a time"); losses < 0 || times < losses {
		t.Errorf("the losing rows are not first in\n%s", text)
	}
	squeezed := strings.Join(strings.Fields(text), " ")
	for _, want := range []string{
		"phrase zoekt 2.00 2.00 2.00 2.00 0.50 0.50 0.50",                     // its times and ratios
		`phrase, zoekt content:"wphrase" case:no: 0.50, 4.00 against 2.00 ms`, // its worst query
		`phrase 0.50 4.00 2.00 0.50 4.00 2.00 0 0 content:"wphrase" case:no`, "all zoekt 4.47 4.47 0.50",
		"trawl 2.0 50.0 300.0 60.0 0.600 7.0", // its index
		"all buckets 64 zoekt 40 0.000 0.000 40.0 40.0 25.00 0.75 3",
		"near-miss, 1 client, trawl refused it",
		"trawl after all queries 30.0 5.0 6.0 0 10000.0 2000.0 500.0", // per repo: what is beyond none
		"trawl 1 30.00 30.00 2.00 3.0 1.00 0.0 0 0",
		"trawl 2 5.00 5.00 3.00 2.0 1 1",
		"trawl, 2 users no room",
		"phrase 1 0 0 0 0 0 0 2 binary", "e.g. an example",
	} {
		if !strings.Contains(squeezed, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
}

func TestPicture(t *testing.T) {
	var b bytes.Buffer
	if err := draw(&b, time.Now(), sample()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"small: one query at a time, exhaustive", "zoekt: p50 2 ms", "zoekt, stopping early: p50 4 ms", "64 clients, all buckets"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}
