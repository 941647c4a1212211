package served

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/peer"
)

// drain takes everything that a dispenser hands out.
func drain(d *dispenser) (list []string) {
	for q, ok := d.next(); ok && len(list) < 100; q, ok = d.next() {
		list = append(list, q)
	}
	return list
}

// TestDispenser: all queries come equally often, unless the limit has passed.
func TestDispenser(t *testing.T) {
	past, future := time.Now().Add(-time.Minute), time.Now().Add(time.Hour)
	set := []string{"a", "b", "c"}
	if d := (&dispenser{set: set, enough: past, limit: future}); !slices.Equal(drain(d), set) || d.cut {
		t.Errorf("not one round: %+v", d)
	}
	if d := (&dispenser{set: set, enough: future, limit: future}); len(drain(d)) != 100 || d.cut {
		t.Errorf("ended before the time is up: %+v", d)
	}
	d := &dispenser{set: set, enough: past, limit: future}
	d.next()
	d.limit = past
	if more := drain(d); len(more) > 0 || !d.cut {
		t.Errorf("went on after the limit: %q, %+v", more, d)
	}
}

func TestQuerySets(t *testing.T) {
	var queries []corpus.Query
	for _, b := range []corpus.Bucket{corpus.Rare, corpus.Rare, corpus.Short, corpus.RegexOnly, corpus.Mid} {
		queries = append(queries, corpus.Query{Bucket: b, Patterns: []string{string(b)}})
	}
	count := map[string]int{}
	for _, s := range querySets(queries, 1) {
		count[s.name] = len(s.queries)
	}
	want := map[string]int{"rare": 2, "mid": 1, "1-2 chars": 1, "regex only": 1, mixed: 5, quick: 3}
	for name, n := range want {
		if count[name] != n {
			t.Errorf("%s has %d queries, not %d", name, count[name], n)
		}
	}
	if len(count) != len(want) {
		t.Errorf("sets %v", count)
	}
}

// TestLoop: that many clients query concurrently, and each answer is counted.
func TestLoop(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho ready: gRPC a, HTTP b\nexec sleep 60\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := peer.Trawl(t.Context(), io.Discard, program, "folder")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	// No client gets an answer before all have sent a query.
	const clients = 4
	var together sync.WaitGroup
	together.Add(clients)
	var once [clients]sync.Once
	var refusals atomic.Int64
	c := &contestant{name: "x", Server: s, ask: func(_ context.Context, q string) (answer, error) {
		once[int(q[0]-'0')].Do(func() { together.Done(); together.Wait() })
		switch q {
		case "1":
			return answer{took: time.Minute}, nil
		case "2":
			if refusals.Add(1) == 1 {
				return answer{}, errors.New("refused")
			}
		}
		return answer{took: ms}, nil
	}}
	h := testHost()
	h.cfg.Timeout = 30 * time.Second
	l, err := h.loop(t.Context(), c, querySet{"rare", []string{"0", "1", "2", "3"}}, clients)
	if err != nil || l.set != "rare" || l.clients != clients || l.cut {
		t.Fatal(l, err)
	}
	if len(l.times) != 3 || l.late != 1 || l.refused != 1 || l.reason != "refused" {
		t.Errorf("%d answered, %d late, %d refused (%s)", len(l.times), l.late, l.refused, l.reason)
	}
	if slices.Max(l.times) < pause {
		t.Errorf("what was refused took %s, less than the pause", slices.Max(l.times))
	}
	if l.rate() != 3/max(l.cpu, peer.Tick).Seconds() {
		t.Errorf("rate %g", l.rate())
	}
}

// TestInsist does not repeat for longer than a query may take.
func TestInsist(t *testing.T) {
	h := testHost()
	h.cfg.Timeout = pause / 2
	r, refused, err := h.insist(t.Context(), asked(answer{}, errors.New("no")), "q")
	if err != nil || !r.late || !slices.Equal(refused, []string{"no"}) {
		t.Errorf("%+v, %q, %v", r, refused, err)
	}
	r, refused, err = h.insist(t.Context(), asked(answer{took: ms}, nil), "q")
	if err != nil || r.client != ms || len(refused) > 0 {
		t.Errorf("%+v, %q, %v", r, refused, err)
	}
}
