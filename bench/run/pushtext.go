package run

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/trawl-search/trawl/bench/report"
)

// Aims for the time until a push is searchable.
const (
	aimMedian = time.Second
	aimP99    = 2 * time.Second
)

// write writes the results as text and as a picture.
func (p *pusher) write(ctx context.Context, started time.Time) error {
	var text, picture bytes.Buffer
	p.report(ctx, &text, started)
	if err := p.plot(&picture, started); err != nil {
		return err
	}
	stem, err := report.Save(p.cfg.Results, "push", started, map[string][]byte{".txt": text.Bytes(), ".svg": picture.Bytes()})
	if err != nil {
		return err
	}
	fmt.Fprintf(p.cfg.Log, "%s\nwritten to %s.txt and .svg\n", text.String(), stem)
	return nil
}

// times returns the two times of all pushes.
func (p *pusher) times() (published, searchable []time.Duration) {
	for _, one := range p.pushes {
		published, searchable = append(published, one.published), append(searchable, one.searchable)
	}
	return published, searchable
}

func (p *pusher) report(ctx context.Context, w io.Writer, started time.Time) {
	fmt.Fprintf(w, "Trawl bench of pushes, %s, took %s\n\n", started.UTC().Format("2006-01-02 15:04:05 UTC"), time.Since(started).Round(time.Second))
	report.Host(ctx, w, []string{fmt.Sprintf("-commits %d -seed %d", p.cfg.Commits, p.cfg.Seed)})
	fmt.Fprintf(w, "  repo      %s, %d files\n\n", filepath.Base(p.cfg.Repo), len(p.repo.files))
	fmt.Fprintf(w, "All roles in one process, etcd and NATS embedded, the bucket a folder, the repository on the same disk. The whole repository\n"+
		"took %s until it could be searched. Then %d commits of one random file each, one after the other: from PutRepo, after the commit,\n"+
		"until it is published, and until a search finds the new line.\n\n", p.first.Round(100*time.Millisecond), len(p.pushes))
	published, searchable := p.times()
	var t report.Table
	t.Row("ms", "p50", "p90", "p99", "max")
	for _, row := range []struct {
		label string
		times []time.Duration
	}{{"published", published}, {"searchable", searchable}} {
		cells := []string{row.label}
		for _, at := range []float64{50, 90, 99, 100} {
			cells = append(cells, report.Milliseconds(report.Percentile(row.times, at)))
		}
		t.Row(cells...)
	}
	t.Row("aim", report.Milliseconds(aimMedian), "", report.Milliseconds(aimP99), "")
	t.Write(w)
	p.reportCost(w)
}

// reportCost writes how much was indexed for the pushes.
func (p *pusher) reportCost(w io.Writer) {
	var files, wrote int64
	ways := make(map[string]int)
	for _, one := range p.pushes {
		files += one.fileBytes
		wrote += one.wroteBytes
		ways[one.built]++
	}
	content, stored := p.after.content-p.before.content, p.after.stored-p.before.stored
	fmt.Fprintf(w, "\n  changed files        %s MB, of which %d bytes were added\n", report.Megabytes(files), wrote)
	fmt.Fprintf(w, "  content indexed      %s MB: %.2f for each byte of a changed file\n", report.Megabytes(int64(content)), content/float64(max(files, 1)))
	fmt.Fprintf(w, "  shards written       %s MB: %.2f for each byte of a changed file\n", report.Megabytes(int64(stored)), stored/float64(max(files, 1)))
	fmt.Fprintf(w, "  documents indexed    %.0f, in %.0f shards\n", p.after.documents-p.before.documents, p.after.shards-p.before.shards)
	for _, way := range slices.Sorted(maps.Keys(ways)) {
		fmt.Fprintf(w, "  %-20s %d\n", way, ways[way])
	}
	fmt.Fprintf(w, "\n  each push, in order: ms until it was searchable\n")
	for line := range slices.Chunk(p.pushes, 20) {
		for _, one := range line {
			fmt.Fprintf(w, " %5d", one.searchable.Milliseconds())
		}
		fmt.Fprintln(w)
	}
}

func (p *pusher) plot(w io.Writer, started time.Time) error {
	published, searchable := p.times()
	span := func(times []time.Duration) []report.Span {
		return []report.Span{{P50: milliseconds(report.Percentile(times, 50)), P99: milliseconds(report.Percentile(times, 99))}}
	}
	page := &report.Page{
		Title:  "Trawl bench of pushes, " + started.UTC().Format("2006-01-02 15:04 UTC") + ": dots are p50, lines reach to p99",
		Series: []string{"trawl"},
		Panels: []report.Panel{&report.Latency{
			Caption: fmt.Sprintf("%s, %d files: time from a push of one file", filepath.Base(p.cfg.Repo), len(p.repo.files)),
			Rows:    []report.Row{{Label: "published", Spans: span(published)}, {Label: "searchable", Spans: span(searchable)}},
		}},
	}
	return page.Write(w)
}
