package run

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/trawl-search/trawl/bench/engine"
	"github.com/trawl-search/trawl/bench/report"
	"github.com/trawl-search/trawl/index/build"
)

// report writes everything: the machine, the losing rows, then the corpora.
func (r *runner) report(ctx context.Context, w io.Writer, started time.Time, all []*measured) {
	fmt.Fprintf(w, "Trawl bench, %s, took %s\n\n", started.UTC().Format("2006-01-02 15:04:05 UTC"), time.Since(started).Round(time.Second))
	report.Host(ctx, w, r.cfg.Args)
	fmt.Fprintf(w, "  seed      %d, %d queries in a bucket\n", r.cfg.Seed, r.cfg.Queries)
	for _, p := range all[0].peers {
		fmt.Fprintf(w, "  peer      %s\n", p.version)
	}
	if len(all[0].peers) == 0 {
		fmt.Fprintf(w, "\nNo peer took part: nothing here is compared.\n")
	} else {
		fmt.Fprintf(w, "\nLOSING ROWS: a peer is better here\n\n")
		losing(w, all)
	}
	fmt.Fprintf(w, "\nFIGURES TO REACH; times are geometric means over queries, of the peer's time by Trawl's\n\n")
	figuresOf(all).Write(w)
	for _, m := range all {
		fmt.Fprintf(w, "\n%s\n%s: %d repos, %d documents (%d by name only), %s MB read, %s MB distinct content\n",
			strings.Repeat("=", 80), strings.ToUpper(m.corpus.Name), len(m.corpus.Repos), m.indexed.Documents, m.indexed.Skipped,
			report.Megabytes(m.indexed.ReadBytes), report.Megabytes(m.indexed.ContentBytes))
		for _, a := range m.absent {
			fmt.Fprintf(w, "  %s\n", a)
		}
		m.writeIndex(w)
		m.writePacks(w)
		m.writeOpen(w)
		m.writeSets(w)
		for mode := range modes {
			m.writeTimes(w, mode)
		}
		m.writeBars(w)
	}
}

// losing lists the figures by which Trawl is behind, the worst first. Ratios are geometric means over queries.
func losing(w io.Writer, all []*measured) {
	var losses report.Losses
	for _, m := range all {
		for _, p := range m.peers {
			if p.indexes {
				losses.Addf(ratio(p.cost.CPU, m.cost.CPU), "%s: processor time of indexing, %s", m.corpus.Name, p.Name())
				losses.Addf(ratio(p.cost.Peak, m.cost.Peak), "%s: peak memory of indexing, %s", m.corpus.Name, p.Name())
				losses.Addf(ratio(p.cost.IndexBytes, m.indexed.IndexBytes), "%s: index size, %s", m.corpus.Name, p.Name())
			}
		}
		for _, b := range m.buckets {
			for _, t := range b.engines[1:] {
				for mode := range modes {
					losses.Addf(report.GeometricMean(t.ratios[mode]), "%s: %s, %s, %s", m.corpus.Name, b.name, modes[mode], t.name)
				}
			}
		}
	}
	losses.Write(w)
}

func ratio[T ~int64](a, b T) float64 { return float64(a) / float64(max(b, 1)) }

func (m *measured) writeIndex(w io.Writer) {
	fmt.Fprintf(w, "\nIndexing; MB/core-s is content read for each second of processor time. The first build of each reads files that were dropped from the page\n"+
		"cache; of all builds the one with the least processor time counts\n\n")
	read := float64(m.indexed.ReadBytes)
	var t report.Table
	t.Row("", "core-s", "MB/core-s", "wall s", "peak MB", "index MB", "index/source")
	row := func(name string, cpu, wall time.Duration, peak, size int64) {
		t.Row(name, fmt.Sprintf("%.2f", cpu.Seconds()), fmt.Sprintf("%.1f", read/1e6/cpu.Seconds()), fmt.Sprintf("%.2f", wall.Seconds()),
			report.Megabytes(peak), report.Megabytes(size), fmt.Sprintf("%.3f", float64(size)/read))
	}
	row("trawl", m.cost.CPU, m.cost.Wall, m.cost.Peak, m.indexed.IndexBytes)
	for _, p := range m.peers {
		if p.indexes {
			row(p.Name(), p.cost.CPU, p.cost.Wall, p.cost.Peak, p.cost.IndexBytes)
		}
	}
	if m.ctags.CPU > 0 {
		row("zoekt, with ctags", m.ctags.CPU, m.ctags.Wall, m.ctags.Peak, m.ctags.IndexBytes)
	}
	row("trawl, cold files", m.cold.CPU, m.cold.Wall, m.cold.Peak, m.indexed.IndexBytes)
	for _, p := range m.peers {
		if p.indexes {
			row(p.Name()+", cold files", p.cold.CPU, p.cold.Wall, p.cold.Peak, p.cold.IndexBytes)
		}
	}
	if m.single != nil {
		row("trawl, a shard for each repo", m.single.cost.CPU, m.single.cost.Wall, m.single.cost.Peak, m.single.IndexBytes)
	}
	t.Write(w)
	fmt.Fprintln(w)
	writeAllocs(w, "trawl", &m.indexed)
	if m.single != nil {
		writeAllocs(w, "a shard for each repo", &m.single.Indexed)
	}
	fmt.Fprintf(w, "\nSections of the shards\n\n")
	var s report.Table
	s.Row("", "MB", "of source")
	for _, section := range m.section {
		s.Row(section.Tag, fmt.Sprintf("%.3f", float64(section.Bytes)/1e6), fmt.Sprintf("%.4f", float64(section.Bytes)/read))
	}
	s.Write(w)
}

// writeAllocs writes what a build allocated, and in how many shards it reused memory.
func writeAllocs(w io.Writer, what string, x *engine.Indexed) {
	fmt.Fprintf(w, "  %s: allocated %s MB in %d pieces, in %d shards; %d of them reused the memory of an earlier one\n",
		what, report.Megabytes(x.AllocBytes), x.Allocs, len(x.Shards), x.Reused)
}

func (m *measured) writeOpen(w io.Writer) {
	fmt.Fprintf(w, "\nHolding shards open; heap is what is live, resident also holds mapped pages; \"searched\" is after one search of each shard\n\n")
	var t report.Table
	t.Row("", "shards", "repos", "maps", "open ms", "search ms", "heap B/repo", "searched B/repo", "heap B/shard", "resident kB/repo", "searched kB/repo")
	for _, o := range m.opened {
		repos := int64(max(o.Repos, 1))
		t.Row(o.what, fmt.Sprint(o.Shards), fmt.Sprint(o.Repos), fmt.Sprint(o.Maps), report.Milliseconds(o.Wall), report.Milliseconds(o.SearchWall),
			fmt.Sprint(o.Heap/repos), fmt.Sprint(o.HeapUsed/repos), fmt.Sprint(o.HeapUsed/int64(max(o.Shards, 1))), kilobytes(o.Resident/repos), kilobytes(o.ResidentUsed/repos))
	}
	t.Write(w)
	if repos := int64(len(m.corpus.Repos)); repos > 1 {
		average := int64(m.indexed.ReadBytes) / repos
		fmt.Fprintf(w, "\n  100,000 repos of the average size here, %s kB, are %d memory maps when packed\n",
			kilobytes(average), engine.MapsFor(100_000, average, build.DefaultMaxSourceBytes))
	}
}

func kilobytes(n int64) string { return fmt.Sprintf("%.1f", float64(n)/1e3) }

func (m *measured) writeSets(w io.Writer) {
	if len(m.peers) == 0 {
		return
	}
	fmt.Fprintf(w, "\nResult sets (files) against trawl's; \"by name\" are files that trawl indexes by name only\n\n")
	var t report.Table
	var examples []string
	t.Row("", "peer", "same", "different", "only trawl", "only peer", "of those by name")
	for _, b := range m.buckets {
		for _, a := range b.agreements {
			t.Row(string(b.name), a.peer, fmt.Sprint(a.same), fmt.Sprint(a.different), fmt.Sprint(a.onlyHere), fmt.Sprint(a.onlyIt), fmt.Sprint(a.skipped))
			for _, e := range a.examples {
				if e != "" {
					examples = append(examples, e)
				}
			}
		}
	}
	t.Write(w)
	for _, e := range examples {
		fmt.Fprintf(w, "  e.g. %s\n", e)
	}
}

func (m *measured) writeTimes(w io.Writer, mode int) {
	fmt.Fprintf(w, "\nQueries, %s, ms; \"ratio\" is the geometric mean of peer/trawl over queries (below 1: the peer is faster), \"worst\" the worst query's\n\n", modes[mode])
	var t report.Table
	t.Row("", "engine", "p50", "p99", "ratio", "worst", "allocs", "alloc kB", "")
	for _, b := range m.buckets {
		for i, e := range b.engines {
			if len(e.times[mode])+e.failed == 0 {
				continue
			}
			row := []string{string(b.name), e.name, "-", "-", "", "", "", "", ""}
			if len(e.times[mode]) > 0 {
				row[2], row[3] = report.Milliseconds(report.Percentile(e.times[mode], 50)), report.Milliseconds(report.Percentile(e.times[mode], 99))
			}
			if i == 0 {
				row[6], row[7] = fmt.Sprint(b.allocs[mode]), fmt.Sprintf("%.1f", float64(b.bytes[mode])/1e3)
			} else if len(e.ratios[mode]) > 0 {
				row[4], row[5] = fmt.Sprintf("%.2f", report.GeometricMean(e.ratios[mode])), fmt.Sprintf("%.2f", slices.Min(e.ratios[mode]))
			}
			if e.failed > 0 {
				row[8] = fmt.Sprintf("%d of %d: %s", e.failed, b.queries, e.reason)
			}
			t.Row(row...)
		}
	}
	t.Write(w)
}

func (m *measured) writeBars(w io.Writer) {
	fmt.Fprintf(w, "\np50, exhaustive; two characters are a factor of two\n\n")
	for _, b := range m.buckets {
		for _, e := range b.engines {
			if times := e.times[exhaustive]; len(times) > 0 {
				p50 := report.Percentile(times, 50)
				fmt.Fprintf(w, "  %-14s %-11s %s %s\n", b.name, e.name, report.Bar(p50), report.Milliseconds(p50))
			}
		}
	}
}
