package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/bench/report"
)

var update = flag.Bool("update", false, "write the tables of docs/figures.md")

// TestFiguresAreCurrent: the document has the tables for the current results.
func TestFiguresAreCurrent(t *testing.T) {
	const document = "../docs/figures.md"
	have, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	want, err := withFigures(have, "results", "../bench/results")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(have, want) {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the results say: make figures", document)
	}
	if err := os.WriteFile(document, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestTableRows: for random runs, each row has the newest value of each corpus under one aim,
// and rows and values are ordered by how far they miss it.
func TestTableRows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var records []report.Record
		newest := map[string]report.Figure{}
		for i := range 5 {
			record := report.Record{Run: []string{"served", "in process"}[r.IntN(2)], Started: time.Unix(int64(100-i), 0)}
			for what := range 4 {
				f := report.AtLeast(fmt.Sprint(what), r.Float64()*4, 2+float64(i), "x")
				switch what {
				case 0:
					f = report.Plain("0", r.Float64(), "")
				case 1:
					f = report.AtMost("1", r.NormFloat64(), 1, "")
				}
				f.Corpus, f.Incomplete = []string{"go", "linux"}[r.IntN(2)], r.IntN(9) == 0
				record.Figures = append(record.Figures, f)
				if key := record.Run + f.What + f.Corpus; newest[key].What == "" {
					newest[key] = f
				}
			}
			records = append(records, record)
		}
		rows, values := tableRows(records), 0
		for _, row := range rows {
			values += len(row.values)
			furthest := 0.0
			for _, v := range row.values {
				if v.Missed() {
					furthest = max(furthest, v.Off())
				}
				if want := newest[row.run+row.what+v.Corpus]; v.Measured != want.Measured || v.Aim != row.values[0].Aim || v.Needed != row.values[0].Needed {
					t.Fatalf("%+v is not the newest, %+v", v.Figure, want)
				}
			}
			if off, missed := row.off(); off != furthest || missed != slices.ContainsFunc(row.values, func(v tableValue) bool { return v.Missed() }) {
				t.Fatalf("off by %g, want %g: %+v", off, furthest, row.values)
			}
			if !slices.IsSortedFunc(row.values, func(a, b tableValue) int { return cmp.Compare(b.Off(), a.Off()) }) {
				t.Fatalf("values out of order: %+v", row.values)
			}
		}
		if values != len(newest) {
			t.Fatalf("%d values of %d", values, len(newest))
		}
		for i := range rows[1:] {
			a, missedA := rows[i].off()
			b, missedB := rows[i+1].off()
			if missedB && (!missedA || a < b) || rows[i].values[0].Aim == "" && rows[i+1].values[0].Aim != "" {
				t.Fatalf("%+v stands before %+v", rows[i], rows[i+1])
			}
		}
	}
}

// The lines of the document around the tables.
const (
	figuresBegin = "<!-- figures: written by `make figures` -->"
	figuresEnd   = "<!-- figures: end -->"
)

// withFigures returns the text of a document with tables from the results of a folder, which it links as links.
func withFigures(old []byte, results, links string) ([]byte, error) {
	before, rest, begins := bytes.Cut(old, []byte(figuresBegin))
	_, after, ends := bytes.Cut(rest, []byte(figuresEnd))
	if !begins || !ends {
		return nil, fmt.Errorf("the document has no lines %q and %q", figuresBegin, figuresEnd)
	}
	records, err := report.Records(results)
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, errors.New("there are no results with figures in " + results)
	}
	tables := tablesOf(records, links)
	return slices.Concat(before, []byte(figuresBegin+"\n\n"+tables+"\n"+figuresEnd), after), nil
}

// tableRow is a figure of one kind of run, with the newest value of each corpus.
type tableRow struct {
	run, what string
	values    []tableValue
}

// tableValue is a figure and its result.
type tableValue struct {
	report.Figure

	from *report.Record
}

// off returns the factor by which the row's worst value misses the aim; missed says whether any value
// misses it.
func (r *tableRow) off() (factor float64, missed bool) {
	for i := range r.values {
		if v := &r.values[i]; v.Missed() {
			factor, missed = max(factor, v.Off()), true
		}
	}
	return factor, missed
}

// tableRows takes the newest value of each figure and corpus. Missed figures come first, those furthest
// from the aim on top, then reached ones, then those without an aim. A row has one aim, the newest.
func tableRows(records []report.Record) []*tableRow {
	var rows []*tableRow
	byName, known := map[[2]string]*tableRow{}, map[[3]string]bool{}
	for i := range records {
		r := &records[i]
		for _, f := range r.Figures {
			name := [2]string{r.Run, f.What}
			if byName[name] == nil {
				byName[name] = &tableRow{run: r.Run, what: f.What}
				rows = append(rows, byName[name])
			}
			if key := [3]string{r.Run, f.What, f.Corpus}; !known[key] {
				known[key] = true
				row := byName[name]
				if len(row.values) > 0 {
					f.Aim, f.Needed = row.values[0].Aim, row.values[0].Needed
				}
				row.values = append(row.values, tableValue{f, r})
			}
		}
	}
	for _, row := range rows {
		slices.SortStableFunc(row.values, func(a, b tableValue) int {
			return cmp.Or(cmp.Compare(b.Off(), a.Off()), cmp.Compare(a.Corpus, b.Corpus))
		})
	}
	slices.SortStableFunc(rows, func(a, b *tableRow) int {
		offA, missedA := a.off()
		offB, missedB := b.off()
		order := func(r *tableRow, missed bool) int {
			switch {
			case missed:
				return 0
			case r.values[0].Aim != "":
				return 1
			}
			return 2
		}
		return cmp.Or(cmp.Compare(order(a, missedA), order(b, missedB)), cmp.Compare(offB, offA), cmp.Compare(a.run, b.run), cmp.Compare(a.what, b.what))
	})
	return rows
}

// tablesOf returns the table of figures, and the table of their results.
func tablesOf(records []report.Record, folder string) string {
	var b strings.Builder
	b.WriteString("| figure | needed | measured | reached |\n|---|--:|---|---|\n")
	used := map[*report.Record]bool{}
	for _, row := range tableRows(records) {
		var cells []string
		for i := range row.values {
			v := &row.values[i]
			used[v.from] = true
			cells = append(cells, fmt.Sprintf("%s [%s](%s.txt)", v.Corpus, v.MeasuredText(), path.Join(folder, filepath.Base(v.from.Stem))))
		}
		_, missed := row.off()
		reached := "yes"
		switch {
		case missed:
			reached = "no"
		case row.values[0].Aim == "":
			reached = "–"
		}
		fmt.Fprintf(&b, "| %s: %s | %s | %s | %s |\n", row.run, row.what, row.values[0].NeededText(), strings.Join(cells, "; "), reached)
	}
	b.WriteString("\n| result | commit | load of the machine |\n|---|---|---|\n")
	for _, r := range slices.SortedFunc(maps.Keys(used), func(a, b *report.Record) int { return cmp.Compare(b.Stem, a.Stem) }) {
		name := filepath.Base(r.Stem)
		fmt.Fprintf(&b, "| [%s](%s.txt) | %s | %s |\n", name, path.Join(folder, name), r.Commit, r.Load)
	}
	return b.String()
}
