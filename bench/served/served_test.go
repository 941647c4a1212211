package served

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/peer"
	objects "github.com/trawl-search/trawl/internal/bucket"
)

const ms = time.Millisecond

// asked returns a contestant that always gives the same answer.
func asked(a answer, err error) *contestant {
	return &contestant{name: "x", all: true, ask: func(context.Context, string) (answer, error) { return a, err }}
}

func testHost() *host {
	return &host{runner: &runner{cfg: Config{Timeout: time.Second, Repeat: 3, Log: io.Discard}}, measured: &measured{}}
}

// TestOnce covers late and failed queries.
func TestOnce(t *testing.T) {
	for name, c := range map[string]struct {
		*contestant

		want run
	}{
		"answered":    {asked(answer{2 * ms, peer.Stats{Duration: ms, FileCount: 7}}, nil), run{client: 2 * ms, own: ms, counts: peer.Stats{Duration: ms, FileCount: 7}}},
		"late":        {asked(answer{took: time.Second}, nil), run{client: time.Second, own: time.Second, late: true}},
		"late, error": {asked(answer{}, context.DeadlineExceeded), run{client: time.Second, own: time.Second, late: true}},
		"incomplete":  {asked(answer{ms, peer.Stats{ShardsSkipped: 1}}, nil), run{client: time.Second, own: time.Second, late: true}},
		"crashed":     {asked(answer{ms, peer.Stats{Crashes: 2}}, nil), run{failed: "2 shards failed"}},
		"refused":     {asked(answer{took: ms}, errors.New("no")), run{failed: "no"}},
	} {
		if got, err := testHost().once(t.Context(), c.contestant, "q"); err != nil || got != c.want {
			t.Errorf("%s: %+v, not %+v (%v)", name, got, c.want, err)
		}
	}
	early := asked(answer{ms, peer.Stats{ShardsSkipped: 1}}, nil)
	early.all = false
	if got, err := testHost().once(t.Context(), early, "q"); err != nil || got.late {
		t.Errorf("who may stop early is late: %+v (%v)", got, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := testHost().once(ended, early, "q"); err == nil {
		t.Error("asked after the end")
	}
}

// TestTurn: contestants take turns, only those that take part run, and one that has used up its
// time does not run again.
func TestTurn(t *testing.T) {
	var order []string
	c := func(name string, took time.Duration) contestant {
		return contestant{name: name, ask: func(_ context.Context, q string) (answer, error) {
			order = append(order, name)
			return answer{took, peer.Stats{Duration: took / 2}}, nil
		}}
	}
	list := []contestant{c(trawl, ms), c(zoekt, 600*ms), c(re2, ms)}
	list[2].buckets = corpus.Bucket.Regex
	b := bucket{name: corpus.Rare, timings: []timing{{name: trawl}, {name: zoekt}}}
	if err := testHost().turn(t.Context(), &b, list, corpus.Query{Patterns: []string{"x"}}); err != nil {
		t.Fatal(err)
	}
	if want := []string{trawl, zoekt, trawl, zoekt, trawl}; !slices.Equal(order, want) {
		t.Errorf("asked %v, not %v", order, want)
	}
	if got := b.timings[1]; !slices.Equal(got.queries, []outcome{took(600*ms, 300*ms)}) {
		t.Errorf("zoekt: %+v", got)
	}
}

// TestLeastOfRuns: of the runs of a query the fastest counts, and those that failed do not.
func TestLeastOfRuns(t *testing.T) {
	var x timing
	x.add([]run{{client: 3 * ms, own: ms}, {failed: "refused it"}, {client: 2 * ms, own: 2 * ms, counts: peer.Stats{FileCount: 4, MatchCount: 5}}, {client: 9 * ms, own: 9 * ms, late: true}})
	x.add([]run{{failed: "refused it"}})
	if want := []outcome{{2 * ms, 2 * ms, false, 4, 5}, {}}; !slices.Equal(x.queries, want) || x.late != 1 || x.failed != 2 {
		t.Errorf("got %+v, want the queries %+v", x, want)
	}
	if client, own := x.times(); len(client) != 1 || len(own) != 1 {
		t.Errorf("times of %v and %v, want one of each", client, own)
	}
}

func took(client, own time.Duration) outcome { return outcome{client: client, own: own} }

func late(client, own time.Duration) outcome { return outcome{client: client, own: own, late: true} }

func timingOf(name string, outcomes ...outcome) timing { return timing{name: name, queries: outcomes} }

// TestRatios: ratios are per query, with bounds if one side was late, and without queries that have
// no answer.
func TestRatios(t *testing.T) {
	own := timingOf(trawl, took(2*ms, ms), took(4*ms, 2*ms), outcome{}, late(9*ms, 9*ms), late(9*ms, 9*ms))
	other := timingOf(zoekt, took(8*ms, 8*ms), late(ms, ms), took(ms, ms), late(9*ms, 9*ms), took(18*ms, 18*ms))
	got := other.ratios(&own)
	want := []ratio{{4, 8, 0, false, false}, {.25, .5, 1, true, false}, {2, 2, 4, false, true}}
	if !slices.Equal(got, want) {
		t.Errorf("got %+v, not %+v", got, want)
	}
	if bad := worst(got); bad.query != 1 {
		t.Errorf("the worst is %+v", bad)
	}
	if client, servers := means(got[:2]); math.Abs(client-1) > 1e-9 || math.Abs(servers-2) > 1e-9 {
		t.Errorf("means %g and %g, not 1 and 2", client, servers)
	}
	for want, list := range map[string][]ratio{"1.50": got[:1], ">1.50": got[:2], "<1.50": got[2:], "~1.50": got} {
		if text := factor(1.5, list); text != want {
			t.Errorf("%q, not %q", text, want)
		}
	}
}

func TestOddity(t *testing.T) {
	for want, text := range map[string]string{
		"": "plain text", "under 3 bytes": "ab", "binary": "a\x00bc", "over 32 MiB": strings.Repeat("x", 32<<20+1),
		"not UTF-8": "caf\xe9",
	} {
		if got := oddity([]byte(text)); got != want {
			t.Errorf("%.20q is %q, not %q", text, got, want)
		}
	}
}

// TestSets: each file that only one server finds has a reason, or is an example.
func TestSets(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"odd": "a\x00bc", "plain": "text"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	h := testHost()
	h.corpus = corpus.Corpus{Repos: []corpus.Repo{{Name: "r", Dir: dir}}}
	s := sets{reasons: map[string]int{}}
	q := corpus.Query{Patterns: []string{"x"}}
	s.add(h, q, map[string]bool{"r/a": true}, map[string]bool{"r/a": true})
	s.add(h, q, map[string]bool{"r/a": true, "r/plain": true}, map[string]bool{"r/a": true, "r/odd": true, "r/gone": true})
	if s.same != 1 || s.different != 1 || s.onlyTrawl != 1 || s.onlyZoekt != 2 {
		t.Errorf("got %+v", s)
	}
	if want := "1 binary, 1 not found on the disk, 1 unexplained"; s.why() != want {
		t.Errorf("got %q, not %q", s.why(), want)
	}
	if len(s.examples) != 1 || !strings.Contains(s.examples[0], "only trawl finds r/plain") {
		t.Errorf("examples %q", s.examples)
	}
}

// TestColdQueries takes one query of each chosen bucket in turn.
func TestColdQueries(t *testing.T) {
	q := func(b corpus.Bucket, text string) corpus.Query {
		return corpus.Query{Bucket: b, Patterns: []string{text}}
	}
	all := []corpus.Query{q(corpus.Rare, "r1"), q(corpus.Rare, "r2"), q(corpus.Common, "c1"), q(corpus.Phrase, "p1")}
	got := interleaved(all)
	if want := []string{all[0].Text(), all[3].Text(), all[1].Text()}; !slices.Equal(got, want) {
		t.Errorf("got %q, not %q", got, want)
	}
}

func TestNoZoekt(t *testing.T) {
	if err := Main(t.Context(), Config{Corpus: "go", ZoektBin: t.TempDir()}); !errors.Is(err, ErrNoZoekt) {
		t.Errorf("without zoekt: %v", err)
	}
}

func TestCopyObject(t *testing.T) {
	from, to := objects.NewMemory(1<<20), objects.NewMemory(1<<20)
	if err := from.Put(t.Context(), "a/b", strings.NewReader("text"), objects.PutOptions{Size: 4}); err != nil {
		t.Fatal(err)
	}
	if err := copyObject(t.Context(), from, to, "a/b"); err != nil {
		t.Fatal(err)
	}
	r, info, err := to.Get(t.Context(), "a/b")
	if err != nil || info.Size != 4 {
		t.Fatal(info, err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != "text" {
		t.Errorf("copied %q (%v)", text, err)
	}
	if err := copyObject(t.Context(), from, to, "a/none"); !errors.Is(err, objects.ErrNotFound) {
		t.Errorf("copied what is not there: %v", err)
	}
}
