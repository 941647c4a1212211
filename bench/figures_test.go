package main

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/bench/report"
)

// TestFiguresAreCurrent: the document has the tables for the current results.
func TestFiguresAreCurrent(t *testing.T) {
	const document = "../docs/figures.md"
	have, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	want, err := withFigures(have, "../bench/results", document)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Errorf("%s is not what the results say: go run ./bench figures", document)
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

// TestWriteFigures: the text around the tables stays, writing twice changes nothing more, and
// links lead to the results.
func TestWriteFigures(t *testing.T) {
	dir := t.TempDir()
	results, document := filepath.Join(dir, "bench", "results"), filepath.Join(dir, "docs", "figures.md")
	for _, folder := range []string{results, filepath.Dir(document)} {
		if err := os.MkdirAll(folder, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(document, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("no lines")
	if err := writeFigures(results, document); err == nil || !strings.Contains(err.Error(), figuresBegin) {
		t.Errorf("a document without the lines: %v", err)
	}
	write("before\n" + figuresBegin + "\nold\n" + figuresEnd + "\nafter\n")
	if err := writeFigures(results, document); err == nil {
		t.Error("no results are a table")
	}
	figure := report.AtLeast("speed", 1, 2, "x")
	figure.Corpus = "go"
	stem := filepath.Join(results, "2026-01-02-030405-go")
	if err := report.SaveRecord(t.Context(), stem, "served", time.Now(), report.Figures{figure}); err != nil {
		t.Fatal(err)
	}
	var last []byte
	for range 2 {
		if err := writeFigures(results, document); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		if last != nil && !bytes.Equal(text, last) {
			t.Errorf("again it is\n%s\nand was\n%s", text, last)
		}
		last = text
	}
	row := "| served: speed | ≥ 2x | go [1.00x](../bench/results/2026-01-02-030405-go.txt) | no |\n"
	if text := string(last); !strings.HasPrefix(text, "before\n") || !strings.HasSuffix(text, "\nafter\n") || !strings.Contains(text, row) || strings.Contains(text, "old") {
		t.Errorf("got\n%s", text)
	}
}
