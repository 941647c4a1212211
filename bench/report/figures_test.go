package report

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestFiguresThatAreNotReachedComeFirst: readers see first what falls short.
func TestFiguresThatAreNotReachedComeFirst(t *testing.T) {
	var all Figures
	all.Add("a", []Figure{AtLeast("fast", 5, 5, "x"), Plain("plain", 1, " s"), AtLeast("slow", 4.99, 5, "x")})
	all.Add("b", []Figure{AtMost("small", 0.4, 0.4, " ms"), AtMost("large", 0.41, 0.4, " ms")})
	var out strings.Builder
	all.Write(&out)
	at := -1
	for _, want := range []string{"figure", "a: slow", "b: large", "a: fast", "b: small", "a: plain"} {
		next := strings.Index(out.String(), want)
		if next <= at {
			t.Fatalf("%q is not in its place:\n%s", want, out.String())
		}
		at = next
	}
	if n := strings.Count(out.String(), "NO"); n != 2 {
		t.Errorf("%d figures are not reached:\n%s", n, out.String())
	}
}

// TestOffAgreesWithMissed: a figure misses its aim exactly if the factor is above 1,
// whatever its aim and its numbers.
func TestOffAgreesWithMissed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		measured, needed := r.NormFloat64(), r.Float64()+.01
		for _, f := range []Figure{AtLeast("", measured, needed, ""), AtMost("", measured, needed, "")} {
			if f.Missed() != (f.Off() > 1) {
				t.Fatalf("%+v: missed %t, off by %g", f, f.Missed(), f.Off())
			}
		}
	}
	late := AtLeast("", 10, 5, "x")
	late.Incomplete = true
	if !late.Missed() || late.MeasuredText() != "10.00x, incomplete" {
		t.Errorf("who leaves out what is hard reaches an aim: %s", late.MeasuredText())
	}
	if plain := Plain("", 1, ""); plain.Missed() || plain.Off() != 0 || plain.ReachedText() != "–" {
		t.Errorf("a figure without an aim: %+v", plain)
	}
	if none := AtLeast("", math.NaN(), 5, "x"); !none.Missed() {
		t.Error("a value that is not a number reaches an aim")
	}
}

// TestRecords: saved records are read, the newest first, without values that are not
// numbers.
func TestRecords(t *testing.T) {
	dir := t.TempDir()
	old := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	figures := Figures{
		{Corpus: "c", What: "a", Aim: "≥", Needed: 2, Measured: 1.5, Unit: "x", Incomplete: true},
		Plain("b", 3, " s"), AtMost("c", -0.25, .3, " ms"),
	}
	for i, name := range []string{"2026-b", "2026-a"} {
		with := append(Figures{AtLeast("endless", math.Inf(1), 1, "x")}, figures...)
		if err := SaveRecord(t.Context(), filepath.Join(dir, name), name, old.Add(time.Duration(i)*time.Hour), with); err != nil {
			t.Fatal(err)
		}
	}
	got, err := Records(dir)
	if err != nil || len(got) != 2 || got[0].Run != "2026-a" || got[1].Stem != filepath.Join(dir, "2026-b") {
		t.Fatalf("got %+v (%v)", got, err)
	}
	if !reflect.DeepEqual(got[1].Figures, figures) || !got[1].Started.Equal(old.Truncate(time.Second)) || got[1].Load == "" || got[1].Commit == "" {
		t.Errorf("got %+v", got[1])
	}
	if err := os.WriteFile(filepath.Join(dir, "x.json"), []byte(`{"figure":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Records(dir); err == nil || !strings.Contains(err.Error(), "x.json") {
		t.Errorf("a record that says something else is read: %v", err)
	}
}
