package served

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/trawl-search/trawl/bench/report"
)

// series are the contestants of both modes. Each has a colour.
var series = []string{trawl, zoekt, re2, early, topK, limited}

// draw draws the times of both modes and the rates of the mixtures.
func draw(w io.Writer, started time.Time, m *measured) error {
	page := &report.Page{Title: "Trawl bench, served, " + started.UTC().Format("2006-01-02 15:04 UTC") + ": dots are p50, lines reach to p99", Series: series}
	for mode := range modes {
		page.Panels = append(page.Panels, m.latency(mode))
	}
	for _, set := range []string{mixed, quick} {
		bars := &report.Bars{Caption: fmt.Sprintf("%s: queries per core-second, %d clients, %s", m.corpus.Name, mostClients, set)}
		for _, name := range []string{trawl, zoekt} {
			if l := m.loadOf(set, name, mostClients); l != nil {
				bars.Values = append(bars.Values, report.Value{Series: slices.Index(series, name), Value: l.rate()})
			}
		}
		if len(bars.Values) > 0 {
			page.Panels = append(page.Panels, bars)
		}
	}
	return page.Write(w)
}

func (m *measured) latency(mode int) *report.Latency {
	panel := &report.Latency{Caption: fmt.Sprintf("%s: one query at a time, %s, by the caller's clock", m.corpus.Name, modes[mode])}
	for _, b := range m.buckets[mode] {
		row := report.Row{Label: string(b.name)}
		for _, t := range b.timings {
			client, _ := t.times()
			row.Spans = append(row.Spans, report.Span{
				Series: slices.Index(series, t.name),
				P50:    milliseconds(report.Percentile(client, 50)), P99: milliseconds(report.Percentile(client, 99)),
			})
		}
		panel.Rows = append(panel.Rows, row)
	}
	return panel
}
