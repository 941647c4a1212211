package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/engine"
	"github.com/trawl-search/trawl/bench/peer"
	"github.com/trawl-search/trawl/bench/report"
)

// bucket has the times of the queries of one bucket, Trawl's before the peers'.
type bucket struct {
	name    corpus.Bucket
	queries int
	// allocs and bytes are the allocations of one search, as medians over the
	// queries.
	allocs, bytes [2]uint64
	engines       []timing
	agreements    []agreement
}

// The two modes.
const (
	exhaustive = iota
	top50
)

var modes = [2]string{"exhaustive", "top 50"}

// timing has one engine's times in one bucket.
type timing struct {
	name string
	// times of all runs of all queries, by mode.
	times [2][]time.Duration
	// ratios to Trawl's time, one for each query: above 1, Trawl is faster.
	ratios [2][]float64
	// failed counts the queries that ran out of time or were refused.
	failed int
	reason string
}

// agreement compares a peer's result sets with Trawl's.
type agreement struct {
	peer             string
	same, different  int
	onlyHere, onlyIt int
	// skipped counts the files among onlyIt that Trawl indexes by name only.
	skipped int
	// examples by kind: onlyTrawl, onlyPeer, byName.
	examples [3]string
}

// timer has the methods common to Trawl and the peers.
type timer interface {
	Files(ctx context.Context, q corpus.Query) (map[string]bool, error)
	Time(ctx context.Context, q corpus.Query, exhaustive bool) (time.Duration, error)
}

func (r *runner) search(ctx context.Context, m *measured, queries []corpus.Query) (err error) {
	e, err := engine.OpenEngine(m.indexed.Shards)
	if err != nil {
		return fmt.Errorf("opening the shards: %w", err)
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	skipped, err := e.Skipped(ctx)
	if err != nil {
		return err
	}
	bar := report.NewProgress(r.cfg.Log, m.corpus.Name+": queries", len(queries))
	for _, name := range corpus.Buckets() {
		some := slices.DeleteFunc(slices.Clone(queries), func(q corpus.Query) bool { return q.Bucket != name })
		if len(some) == 0 {
			continue
		}
		b := bucket{name: name, queries: len(some), engines: []timing{{name: "trawl"}}}
		for _, p := range m.peers {
			b.engines = append(b.engines, timing{name: p.Name()})
			b.agreements = append(b.agreements, agreement{peer: p.Name()})
		}
		for _, q := range some {
			if err := r.query(ctx, m, e, &b, q, skipped); err != nil {
				return fmt.Errorf("query %s: %w", q.Text(), err)
			}
			bar.Step(string(name))
		}
		if err := r.allocs(ctx, e, &b, some); err != nil {
			return err
		}
		m.buckets = append(m.buckets, b)
	}
	return nil
}

// query compares the result sets first. That run also warms up every engine.
func (r *runner) query(ctx context.Context, m *measured, e *engine.Engine, b *bucket, q corpus.Query, skipped map[string]string) error {
	here, err := e.Files(ctx, q)
	if err != nil {
		return err
	}
	own, err := r.times(ctx, e, q, r.cfg.Repeat, exhaustive, top50)
	if err != nil {
		return err
	}
	b.engines[0].add(own, own)
	for i, p := range m.peers {
		t := &b.engines[i+1]
		times, err := r.ask(ctx, p, &b.agreements[i], q, here, skipped)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			t.failed++
			t.reason = reason(err)
			continue
		}
		t.add(times, own)
	}
	return nil
}

// ask runs the query on a peer, first for the result set.
func (r *runner) ask(ctx context.Context, p *opponent, a *agreement, q corpus.Query, here map[string]bool, skipped map[string]string) (times [2][]time.Duration, err error) {
	there, err := r.files(ctx, p, q)
	if err != nil {
		return times, err
	}
	repeat := 1
	if p.indexes || !p.CountsAll() {
		repeat = r.cfg.Repeat
	}
	if p.CountsAll() {
		a.add(q, here, there, skipped)
		return r.times(ctx, p, q, repeat, exhaustive, top50)
	}
	a.add(q, among(here, there), there, skipped)
	return r.times(ctx, p, q, repeat, top50)
}

// among returns the files of all that are in some. A peer that lists only the
// files it shows can be compared only by these.
func among(all, some map[string]bool) map[string]bool {
	both := make(map[string]bool, len(some))
	for f := range some {
		if all[f] {
			both[f] = true
		}
	}
	return both
}

func reason(err error) string {
	switch {
	case errors.Is(err, peer.ErrUnsupported):
		return "cannot express it"
	case errors.Is(err, context.DeadlineExceeded):
		return "out of time"
	}
	return err.Error()
}

func (r *runner) files(ctx context.Context, t timer, q corpus.Query) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
	defer cancel()
	return t.Files(ctx, q)
}

func (r *runner) times(ctx context.Context, t timer, q corpus.Query, repeat int, modes ...int) (times [2][]time.Duration, err error) {
	for _, mode := range modes {
		for range repeat {
			ctx, cancel := context.WithTimeout(ctx, r.cfg.Timeout)
			took, err := t.Time(ctx, q, mode == exhaustive)
			if err == nil {
				err = ctx.Err() // a killed program may have written a part of its answer
			}
			cancel()
			if err != nil {
				return times, err
			}
			times[mode] = append(times[mode], took)
		}
	}
	return times, nil
}

func (t *timing) add(times, own [2][]time.Duration) {
	for mode := range times {
		if len(times[mode]) == 0 {
			continue
		}
		t.times[mode] = append(t.times[mode], times[mode]...)
		ratio := float64(max(report.Percentile(times[mode], 50), 1)) / float64(max(report.Percentile(own[mode], 50), 1))
		t.ratios[mode] = append(t.ratios[mode], ratio)
	}
}

func (a *agreement) add(q corpus.Query, here, there map[string]bool, skipped map[string]string) {
	alike := true
	for _, f := range slices.Sorted(maps.Keys(here)) {
		if !there[f] {
			alike = false
			a.onlyHere++
			a.example(onlyTrawl, q, f)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(there)) {
		if here[f] {
			continue
		}
		alike = false
		a.onlyIt++
		if why, ok := skipped[f]; ok {
			a.skipped++
			a.example(byName, q, f+" ("+why+")")
		} else {
			a.example(onlyPeer, q, f)
		}
	}
	if alike {
		a.same++
	} else {
		a.different++
	}
}

// Ways in which a file may be in only one result set.
const (
	onlyTrawl = iota
	onlyPeer
	byName
)

// example keeps the first example of each kind.
func (a *agreement) example(kind int, q corpus.Query, file string) {
	said := [...]string{"not found by " + a.peer, "found by " + a.peer + " only", "found by " + a.peer + ", by name only in trawl"}
	if a.examples[kind] == "" {
		a.examples[kind] = fmt.Sprintf("%s: %s: %s", q.Text(), said[kind], file)
	}
}

func (r *runner) allocs(ctx context.Context, e *engine.Engine, b *bucket, queries []corpus.Query) error {
	for mode := range modes {
		var counts, sizes []uint64
		for _, q := range queries {
			n, bytes, err := e.Allocs(ctx, q, mode == exhaustive)
			if err != nil {
				return fmt.Errorf("counting allocations: %w", err)
			}
			counts, sizes = append(counts, n), append(sizes, bytes)
		}
		b.allocs[mode], b.bytes[mode] = report.Percentile(counts, 50), report.Percentile(sizes, 50)
	}
	return nil
}
