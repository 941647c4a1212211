package run

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/engine"
	"github.com/trawl-search/trawl/bench/peer"
	"github.com/trawl-search/trawl/bench/report"
	"github.com/trawl-search/trawl/index/build"
)

func set(files ...string) map[string]bool {
	m := map[string]bool{}
	for _, f := range files {
		m[f] = true
	}
	return m
}

func TestAgreement(t *testing.T) {
	a := agreement{peer: "other"}
	q := corpus.Query{Patterns: []string{"x"}}
	a.add(q, set("1", "2"), set("1", "2"), nil)
	a.add(q, set("1", "2"), set("2", "3", "4"), map[string]string{"4": "binary"})
	if a.same != 1 || a.different != 1 || a.onlyHere != 1 || a.onlyIt != 2 || a.skipped != 1 {
		t.Errorf("got %+v", a)
	}
	for kind, want := range []string{"not found by other: 1", "found by other only: 3", "4 (binary)"} {
		if !strings.Contains(a.examples[kind], want) {
			t.Errorf("example %q does not say %q", a.examples[kind], want)
		}
	}
}

// sample is a corpus in which the peer is four times as fast in one mode, and Trawl's index three
// times as large.
func sample() *measured {
	own := [2][]time.Duration{{4 * time.Millisecond}, {time.Millisecond}}
	there := [2][]time.Duration{{time.Millisecond}, {2 * time.Millisecond}}
	b := bucket{name: corpus.Rare, queries: 1, engines: []timing{{name: "trawl"}, {name: "other"}}}
	b.engines[0].add(own, own)
	b.engines[1].add(there, own)
	m := &measured{corpus: corpus.Corpus{Name: "small"}, buckets: []bucket{b}}
	m.indexed.IndexBytes, m.cost = 30, peer.Cost{CPU: 1, Peak: 1}
	m.peers = []*opponent{{Peer: named("other"), indexes: true, cost: peer.Cost{CPU: 2, Peak: 2, IndexBytes: 10}}}
	return m
}

// fake is a peer that finds two files in a millisecond.
type fake struct {
	peer.Peer
	name  string
	early bool
	asked *[]bool
}

func named(name string) peer.Peer { return fake{name: name} }
func (f fake) Name() string       { return f.name }
func (f fake) CountsAll() bool    { return !f.early }

func (f fake) Files(context.Context, corpus.Query) (map[string]bool, error) {
	return set("1", "2"), nil
}

func (f fake) Time(_ context.Context, _ corpus.Query, exhaustive bool) (time.Duration, error) {
	*f.asked = append(*f.asked, exhaustive)
	return time.Millisecond, nil
}

// TestEarlyPeersAreAskedForTheBestOnly also checks that such a peer is compared only by the files
// that it lists.
func TestEarlyPeersAreAskedForTheBestOnly(t *testing.T) {
	r := &runner{cfg: Config{Repeat: 2, Timeout: time.Minute}}
	for _, early := range []bool{false, true} {
		var asked []bool
		a := agreement{peer: "other"}
		p := &opponent{Peer: fake{name: "other", early: early, asked: &asked}}
		times, err := r.ask(t.Context(), p, &a, corpus.Query{Patterns: []string{"x"}}, set("2", "3"), nil)
		if err != nil {
			t.Fatal(err)
		}
		want := map[bool][]bool{false: {true, false}, true: {false, false}}[early]
		if !slices.Equal(asked, want) || len(times[exhaustive]) != map[bool]int{false: 1}[early] || len(times[top50]) == 0 {
			t.Errorf("early %t: asked %v, times %v", early, asked, times)
		}
		if a.onlyIt != 1 || a.onlyHere != map[bool]int{false: 1}[early] {
			t.Errorf("early %t: %+v", early, a)
		}
		var timing timing
		timing.add(times, [2][]time.Duration{{time.Millisecond}, {time.Millisecond}})
		if got := len(timing.ratios[exhaustive]); got != map[bool]int{false: 1}[early] {
			t.Errorf("early %t: %d ratios of all matches", early, got)
		}
	}
}

// TestFigures: each figure is listed with its aim and whether it is reached.
func TestFigures(t *testing.T) {
	m := sample()
	m.peers[0].Peer, m.buckets[0].engines[1].name = named(zoekt), zoekt
	m.indexed.ReadBytes, m.cost.CPU, m.peers[0].cost.CPU = 40e6, time.Second, 6*time.Second
	m.indexed.IndexBytes, m.indexed.ContentBytes, m.cost.Peak = 30e6, build.DefaultMaxSourceBytes, 400e6
	m.cold, m.ctags = peer.Cost{Wall: 2 * time.Second}, peer.Cost{CPU: 9 * time.Second}
	m.peers[0].cold = peer.Cost{Wall: 3 * time.Second}
	m.single = &single{engine.Indexed{Shards: make([]string, 4), Reused: 3}, peer.Cost{CPU: 2 * time.Second}}
	m.opened = []opening{
		{"one each", engine.Opened{Shards: 200, Repos: 200, HeapUsed: 200 * 6000}},
		{"packed", engine.Opened{Shards: 2, Repos: 10_000, HeapUsed: 10_000 * 300, Wall: time.Millisecond}},
		{"few", engine.Opened{Shards: 1, Repos: 1, HeapUsed: 50_000}},
	}
	want := []string{
		"indexing, MB per core-second | ≥ 80 | 40.00 | NO",
		"index / source | ≤ 0.65 | 0.75 | NO",
		"peak memory of indexing, MB | ≤ 500 | 400 | yes",
		"heap per repo after a search, one each | ≤ 3000 B | 6000 B | NO",
		"heap per repo after a search, packed | ≤ 1 B | 300 B | NO",
		"opening 10000 repos or more, packed | ≤ 1 s | 0.001 s | yes",
	}
	var got []string
	for _, f := range m.figures() {
		got = append(got, strings.Join([]string{f.What, f.NeededText(), f.MeasuredText(), f.ReachedText()}, " | "))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	m.indexed.ContentBytes--
	if slices.ContainsFunc(m.figures(), func(f report.Figure) bool { return strings.HasPrefix(f.What, "peak memory") }) {
		t.Error("a peak of a shard that is not full counts")
	}
}

// TestPlotHoldsAllEngines: the plot has the measurements of every engine.
func TestPlotHoldsAllEngines(t *testing.T) {
	m := sample()
	m.indexed.ReadBytes = 100
	var b bytes.Buffer
	if err := (&runner{}).plot(&b, time.Now(), []*measured{m}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"trawl: p50 4 ms", "other: p50 1 ms", "other: p50 2 ms", "small: index size", "small: time of a query, top 50"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

// TestLosingRows: exactly the rows in which Trawl is behind, the worst first.
func TestLosingRows(t *testing.T) {
	var b bytes.Buffer
	losing(&b, []*measured{sample()})
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "rare, exhaustive, other") || !strings.Contains(lines[0], "4.00x") ||
		!strings.Contains(lines[1], "index size") || !strings.Contains(lines[1], "3.00x") {
		t.Errorf("got\n%s", b.String())
	}
}

// TestReportHoldsAllBuilds: builds of cold files, of Trawl and of a peer, and of one shard per
// repo.
func TestReportHoldsAllBuilds(t *testing.T) {
	m := sample()
	m.indexed.ReadBytes, m.cold, m.peers[0].cold = 40e6, peer.Cost{CPU: 4 * time.Second, Wall: 5 * time.Second}, peer.Cost{CPU: 8 * time.Second}
	m.ctags = peer.Cost{CPU: 10 * time.Second}
	m.single = &single{engine.Indexed{Shards: make([]string, 4), Reused: 3, Allocs: 7, AllocBytes: 2e6}, peer.Cost{CPU: 2 * time.Second}}
	var b bytes.Buffer
	m.writeIndex(&b)
	squeezed := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{
		"trawl, cold files 4.00 10.0 5.00", "other, cold files 8.00 5.0", "zoekt, with ctags 10.00 4.0", "trawl, a shard for each repo 2.00 20.0",
		"a shard for each repo: allocated 2.0 MB in 7 pieces, in 4 shards; 3 of them reused the memory of an earlier one",
	} {
		if !strings.Contains(squeezed, want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestReportHoldsLosingRowsFirst(t *testing.T) {
	r := &runner{}
	var b bytes.Buffer
	r.report(t.Context(), &b, time.Now(), []*measured{sample()})
	losses, indexing := strings.Index(b.String(), "LOSING"), strings.Index(b.String(), "Indexing")
	if losses < 0 || indexing < losses {
		t.Errorf("got\n%s", b.String())
	}
}

func TestChild(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), []byte("text"), 0o666); err != nil {
		t.Fatal(err)
	}
	ask, err := json.Marshal(order{Repos: []corpus.Repo{{Name: "r", Dir: dir}}, Out: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Child(t.Context(), bytes.NewReader(ask), &out); err != nil {
		t.Fatal(err)
	}
	var a answer
	if err := json.Unmarshal(out.Bytes(), &a); err != nil || a.Indexed.Documents != 1 || len(a.Indexed.Shards) != 1 {
		t.Fatalf("answer %+v (%v)", a, err)
	}
	ask, _ = json.Marshal(order{Shards: a.Indexed.Shards, Opens: 3})
	out.Reset()
	if err := Child(t.Context(), bytes.NewReader(ask), &out); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &a); err != nil || a.Opened.Shards != 3 {
		t.Errorf("answer %+v (%v)", a, err)
	}
	if err := Child(t.Context(), strings.NewReader("?"), &out); err == nil {
		t.Error("a child took nonsense for an order")
	}
}
