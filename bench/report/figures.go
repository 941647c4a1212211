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

// Figure is what was measured of a corpus, beside what is needed.
type Figure struct {
	Corpus string `json:"corpus,omitempty"`
	What   string `json:"what"`
	// Aim is "≥" or "≤" and stands before Needed, or is empty: then nothing is needed.
	Aim      string  `json:"aim,omitempty"`
	Needed   float64 `json:"needed,omitempty"`
	Measured float64 `json:"measured"`
	// Unit of both, with the space that may stand before it.
	Unit string `json:"unit,omitempty"`
	// Incomplete figures leave out what was too hard. They reach no aim.
	Incomplete bool `json:"incomplete,omitempty"`
}

// AtLeast is a figure that must not be below what is needed.
func AtLeast(what string, measured, needed float64, unit string) Figure {
	return Figure{What: what, Aim: atLeast, Needed: needed, Measured: measured, Unit: unit}
}

// AtMost is a figure that must not be above what is needed.
func AtMost(what string, measured, needed float64, unit string) Figure {
	return Figure{What: what, Aim: atMost, Needed: needed, Measured: measured, Unit: unit}
}

// Plain is a figure without an aim.
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

// Off is by which factor the figure misses its aim: 1 where it is just reached, less
// beyond it, and infinite where no factor would do. It is 0 without an aim.
func (f *Figure) Off() float64 {
	have, want := f.Measured, f.Needed
	switch f.Aim {
	case "":
		return 0
	case atMost:
		have, want = want, have
	}
	switch {
	case want <= 0: // a difference that is below zero
		return 0
	case have <= 0:
		return math.Inf(1)
	}
	return want / have
}

// NeededText is the aim as people read it.
func (f *Figure) NeededText() string {
	if f.Aim == "" {
		return "–"
	}
	return fmt.Sprintf("%s %g%s", f.Aim, f.Needed, f.Unit)
}

// MeasuredText is the value as people read it.
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

// ReachedText is yes, NO, or a dash where nothing is needed.
func (f *Figure) ReachedText() string {
	switch {
	case f.Aim == "":
		return "–"
	case f.Missed():
		return "NO"
	}
	return "yes"
}

// Figures are those of several corpora.
type Figures []Figure

// Add adds the figures of a corpus.
func (all *Figures) Add(corpus string, of []Figure) {
	for _, f := range of {
		f.Corpus = corpus
		*all = append(*all, f)
	}
}

// Write writes the figures, those that are missed first and those without an aim last.
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

// finite are the figures that JSON has numbers for.
func (all Figures) finite() Figures {
	return slices.DeleteFunc(slices.Clone(all), func(f Figure) bool { return math.IsNaN(f.Measured) || math.IsInf(f.Measured, 0) })
}
