package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/bench/report"
)

// The lines of the document around the tables.
const (
	figuresBegin = "<!-- figures: written by `go run ./bench figures` -->"
	figuresEnd   = "<!-- figures: end -->"
)

// writeFigures writes the tables of the newest figures into a document, with links to the results relative
// to it.
func writeFigures(results, document string) error {
	old, err := os.ReadFile(filepath.Clean(document))
	if err != nil {
		return fmt.Errorf("reading the document: %w", err)
	}
	text, err := withFigures(old, results, document)
	if err != nil {
		return err
	}
	if err := os.WriteFile(document, text, 0o644); err != nil { //nolint:gosec // for everybody to read
		return fmt.Errorf("writing the document: %w", err)
	}
	return nil
}

// withFigures returns the text of a document with tables from the current results.
func withFigures(old []byte, results, document string) ([]byte, error) {
	before, rest, begins := bytes.Cut(old, []byte(figuresBegin))
	_, after, ends := bytes.Cut(rest, []byte(figuresEnd))
	if !begins || !ends {
		return nil, fmt.Errorf("%s has no lines %q and %q", document, figuresBegin, figuresEnd)
	}
	records, err := report.Records(results)
	if err != nil {
		return nil, err
	}
	if len(records) == 0 {
		return nil, errors.New("there are no results with figures in " + results)
	}
	folder, err := filepath.Rel(filepath.Dir(document), results)
	if err != nil {
		return nil, fmt.Errorf("linking to %s: %w", results, err)
	}
	tables := tablesOf(records, filepath.ToSlash(folder))
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
