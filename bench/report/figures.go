package report

import (
	"fmt"
	"io"
	"math"
	"slices"
)

// The two kinds of aims.
const (
	atLeast = "≥"
	atMost  = "≤"
)

// Figure is a measurement of a corpus and its aim.
type Figure struct {
	Corpus string `json:"corpus,omitempty"`
	What   string `json:"what"`
	// Aim is "≥" or "≤", the relation to Needed. If it is empty, there is no aim.
	Aim      string  `json:"aim,omitempty"`
	Needed   float64 `json:"needed,omitempty"`
	Measured float64 `json:"measured"`
	// Unit of both, including a leading space if it needs one.
	Unit string `json:"unit,omitempty"`
	// Incomplete figures omit work that was too hard. They never reach an aim.
	Incomplete bool `json:"incomplete,omitempty"`
}

// AtLeast returns a figure that must not be below needed.
func AtLeast(what string, measured, needed float64, unit string) Figure {
	return Figure{What: what, Aim: atLeast, Needed: needed, Measured: measured, Unit: unit}
}

// AtMost returns a figure that must not be above needed.
func AtMost(what string, measured, needed float64, unit string) Figure {
	return Figure{What: what, Aim: atMost, Needed: needed, Measured: measured, Unit: unit}
}

// Plain returns a figure without an aim.
func Plain(what string, measured float64, unit string) Figure {
	return Figure{What: what, Measured: measured, Unit: unit}
}

// Missed reports whether the figure has an aim and does not reach it.
func (f *Figure) Missed() bool {
	switch f.Aim {
	case atLeast:
		return f.Incomplete || !(f.Measured >= f.Needed)
	case atMost:
		return f.Incomplete || !(f.Measured <= f.Needed)
	}
	return false
}

// Off returns the factor by which the figure misses its aim: 1 if it is just reached, less if it is
// exceeded, and infinite if no factor would do. Without an aim it is 0.
func (f *Figure) Off() float64 {
	have, want := f.Measured, f.Needed
	switch f.Aim {
	case "":
		return 0
	case atMost:
		have, want = want, have
	}
	switch {
	case want <= 0: // a difference below zero
		return 0
	case have <= 0:
		return math.Inf(1)
	}
	return want / have
}

// NeededText formats the aim.
func (f *Figure) NeededText() string {
	if f.Aim == "" {
		return "–"
	}
	return fmt.Sprintf("%s %g%s", f.Aim, f.Needed, f.Unit)
}

// MeasuredText formats the value.
func (f *Figure) MeasuredText() string {
	digits, more := "%.4g", ""
	if f.Aim == atLeast {
		digits = "%.2f"
	}
	if f.Incomplete {
		more = ", incomplete"
	}
	return fmt.Sprintf(digits, f.Measured) + f.Unit + more
}

// ReachedText returns yes, NO, or a dash if there is no aim.
func (f *Figure) ReachedText() string {
	switch {
	case f.Aim == "":
		return "–"
	case f.Missed():
		return "NO"
	}
	return "yes"
}

// Figures are the figures of several corpora.
type Figures []Figure

// Add adds the figures of a corpus.
func (all *Figures) Add(corpus string, of []Figure) {
	for _, f := range of {
		f.Corpus = corpus
		*all = append(*all, f)
	}
}

// Write writes the figures, missed ones first and those without an aim last.
func (all Figures) Write(w io.Writer) {
	var t Table
	t.Row("figure", "needed", "measured", "reached")
	for _, reached := range []string{"NO", "yes", "–"} {
		for i := range all {
			if f := &all[i]; f.ReachedText() == reached {
				t.Row(f.Corpus+": "+f.What, f.NeededText(), f.MeasuredText(), reached)
			}
		}
	}
	t.Write(w)
}

// finite returns the figures that JSON can represent.
func (all Figures) finite() Figures {
	return slices.DeleteFunc(slices.Clone(all), func(f Figure) bool { return math.IsNaN(f.Measured) || math.IsInf(f.Measured, 0) })
}
