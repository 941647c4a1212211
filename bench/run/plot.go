package run

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/trawl-search/trawl/bench/report"
)

// plot draws the corpora: times in both modes, then size and throughput.
func (r *runner) plot(w io.Writer, started time.Time, all []*measured) error {
	page := &report.Page{Title: "Trawl bench, " + started.UTC().Format("2006-01-02 15:04 UTC") + ": dots are p50, lines reach to p99", Series: series(all)}
	for _, m := range all {
		for mode := range modes {
			if panel := m.latency(page.Series, mode); len(panel.Rows) > 0 {
				page.Panels = append(page.Panels, panel)
			}
		}
		page.Panels = append(page.Panels, m.bars(page.Series)...)
	}
	return page.Write(w)
}

// series returns all engines that took part in any corpus, Trawl first.
func series(all []*measured) []string {
	names := []string{"trawl"}
	for _, m := range all {
		for _, p := range m.peers {
			if !slices.Contains(names, p.Name()) {
				names = append(names, p.Name())
			}
		}
	}
	return names
}

func (m *measured) latency(names []string, mode int) *report.Latency {
	panel := &report.Latency{Caption: fmt.Sprintf("%s: time of a query, %s", m.corpus.Name, modes[mode])}
	for _, b := range m.buckets {
		row := report.Row{Label: string(b.name)}
		for _, e := range b.engines {
			if times := e.times[mode]; len(times) > 0 {
				row.Spans = append(row.Spans, report.Span{
					Series: slices.Index(names, e.name),
					P50:    milliseconds(report.Percentile(times, 50)), P99: milliseconds(report.Percentile(times, 99)),
				})
			}
		}
		panel.Rows = append(panel.Rows, row)
	}
	return panel
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// bars returns panels for Trawl and the peers that have an index.
func (m *measured) bars(names []string) []report.Panel {
	read := float64(m.indexed.ReadBytes)
	if read == 0 {
		return nil
	}
	size := &report.Bars{Caption: m.corpus.Name + ": index size / source size (less is better)"}
	speed := &report.Bars{Caption: m.corpus.Name + ": indexing, MB per core-second (more is better)"}
	add := func(name string, bytes int64, cpu time.Duration) {
		i := slices.Index(names, name)
		size.Values = append(size.Values, report.Value{Series: i, Value: float64(bytes) / read})
		speed.Values = append(speed.Values, report.Value{Series: i, Value: read / 1e6 / cpu.Seconds()})
	}
	add("trawl", m.indexed.IndexBytes, m.cost.CPU)
	for _, p := range m.peers {
		if p.indexes {
			add(p.Name(), p.cost.IndexBytes, p.cost.CPU)
		}
	}
	return []report.Panel{size, speed}
}
