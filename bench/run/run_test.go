package run

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/peer"
	"github.com/trawl-search/trawl/bench/querylog"
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
	q := querylog.Query{Patterns: []string{"x"}}
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

// sample is a corpus in which the peer is four times as fast in one mode, and
// Trawl's index three times as large.
func sample() *measured {
	own := [2][]time.Duration{{4 * time.Millisecond}, {time.Millisecond}}
	there := [2][]time.Duration{{time.Millisecond}, {2 * time.Millisecond}}
	b := bucket{name: querylog.Rare, queries: 1, engines: []timing{{name: "trawl"}, {name: "other"}}}
	b.engines[0].add(own, own)
	b.engines[1].add(there, own)
	m := &measured{corpus: corpus.Corpus{Name: "small"}, buckets: []bucket{b}}
	m.indexed.IndexBytes, m.cost = 30, peer.Cost{CPU: 1, Peak: 1}
	m.peers = []*opponent{{Peer: named("other"), indexes: true, cost: peer.Cost{CPU: 2, Peak: 2, IndexBytes: 10}}}
	return m
}

type fake struct {
	peer.Peer
	name string
}

func named(name string) peer.Peer { return fake{name: name} }
func (f fake) Name() string       { return f.name }

// TestLosingRows: those and only those where Trawl is behind, the worst first.
func TestLosingRows(t *testing.T) {
	var b bytes.Buffer
	losing(&b, []*measured{sample()})
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], "rare, exhaustive, other") || !strings.Contains(lines[0], "4.00x") ||
		!strings.Contains(lines[1], "index size") || !strings.Contains(lines[1], "3.00x") {
		t.Errorf("got\n%s", b.String())
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
