package run

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/engine"
	"github.com/trawl-search/trawl/bench/peer"
	"github.com/trawl-search/trawl/bench/report"
)

// packLimit is the content of a full pack.
const packLimit = 1 << 30

// packing has one shard per repo, and the packs that they are merged into.
type packing struct {
	single []string
	engine.Packed
	cost peer.Cost
	// times of all queries over the single shards and over the packs, by mode.
	times [2][2][]time.Duration
	// failed counts the queries that ran out of time.
	failed [2]int
}

// pack merges the shards of single repos into packs, and opens the packs.
func (r *runner) pack(ctx context.Context, m *measured, dir string, single []string) error {
	r.logf("%s: merging %d shards", m.corpus.Name, len(single))
	out := filepath.Join(dir, "packs")
	if err := os.Mkdir(out, 0o777); err != nil {
		return fmt.Errorf("making a folder for packs: %w", err)
	}
	a, cost, err := delegate(ctx, order{Pack: single, Out: out})
	if err != nil {
		return fmt.Errorf("merging: %w", err)
	}
	m.packs = &packing{single: single, Packed: a.Packed, cost: cost}
	return r.open(ctx, m, "these, merged", m.packs.Shards, 0)
}

// searchPacks runs the queries over the shards of single repos and over the packs, and checks that
// they find the same.
func (r *runner) searchPacks(ctx context.Context, m *measured, queries []corpus.Query) (err error) {
	if m.packs == nil {
		return nil
	}
	var engines [2]*engine.Engine
	defer func() {
		for _, e := range engines {
			if e != nil {
				err = errors.Join(err, e.Close())
			}
		}
	}()
	for i, shards := range [2][]string{m.packs.single, m.packs.Shards} {
		if engines[i], err = engine.OpenEngine(shards); err != nil {
			return fmt.Errorf("opening the shards: %w", err)
		}
	}
	bar := report.NewProgress(r.cfg.Log, m.corpus.Name+": queries over single shards and packs", len(queries))
	for _, q := range queries {
		var found [2]map[string]bool
		for i, e := range engines {
			if found[i], err = e.Files(ctx, q); err != nil {
				return fmt.Errorf("query %s: %w", q.Text(), err)
			}
			times, err := r.times(ctx, e, q, r.cfg.Repeat, exhaustive, top50)
			if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
				m.packs.failed[i]++
				continue
			}
			if err != nil {
				return fmt.Errorf("query %s: %w", q.Text(), err)
			}
			for mode := range modes {
				m.packs.times[i][mode] = append(m.packs.times[i][mode], times[mode]...)
			}
		}
		if !maps.Equal(found[0], found[1]) {
			return fmt.Errorf("query %s: packs find %d files, single shards %d, and not the same", q.Text(), len(found[1]), len(found[0]))
		}
		bar.Step(string(q.Bucket))
	}
	return nil
}

// writePacks writes the cost and the result of merging.
func (m *measured) writePacks(w io.Writer) {
	p := m.packs
	if p == nil {
		return
	}
	read := float64(m.indexed.ReadBytes)
	fmt.Fprintf(w, "\nMerging the shards of single repos into packs of at most %s MB of content, with compact units; MB/core-s is as above\n\n", report.Megabytes(uint64(packLimit)))
	var t report.Table
	t.Row("", "shards", "MB", "of source", "core-s", "MB/core-s", "wall s", "peak MB")
	t.Row("a shard for each repo", fmt.Sprint(p.FromShards), report.Megabytes(p.FromBytes), fmt.Sprintf("%.3f", float64(p.FromBytes)/read))
	t.Row("these, merged", fmt.Sprint(len(p.Shards)), report.Megabytes(p.PackBytes), fmt.Sprintf("%.3f", float64(p.PackBytes)/read),
		fmt.Sprintf("%.2f", p.cost.CPU.Seconds()), fmt.Sprintf("%.1f", read/1e6/p.cost.CPU.Seconds()), fmt.Sprintf("%.2f", p.cost.Wall.Seconds()), report.Megabytes(p.cost.Peak))
	t.Write(w)
	fmt.Fprintf(w, "\nAll queries, ms: they find the same in both\n\n")
	var q report.Table
	q.Row("", modes[exhaustive]+", p50", "p99", modes[top50]+", p50", "p99", "out of time")
	for i, what := range []string{"a shard for each repo", "these, merged"} {
		row := []string{what}
		for mode := range modes {
			row = append(row, report.Milliseconds(report.Percentile(p.times[i][mode], 50)), report.Milliseconds(report.Percentile(p.times[i][mode], 99)))
		}
		q.Row(append(row, fmt.Sprint(p.failed[i]))...)
	}
	q.Write(w)
}
