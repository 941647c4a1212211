package report

import (
	"fmt"
	"io"
)

// Figure is a row of what is needed beside what was measured.
type Figure struct {
	What, Needed, Measured string
	Reached                bool
}

// AtLeast is a figure that must not be below what is needed.
func AtLeast(what string, measured, needed float64, unit string) Figure {
	return Figure{what, fmt.Sprintf("≥ %g%s", needed, unit), fmt.Sprintf("%.2f%s", measured, unit), measured >= needed}
}

// AtMost is a figure that must not be above what is needed.
func AtMost(what string, measured, needed float64, unit string) Figure {
	return Figure{what, fmt.Sprintf("≤ %g%s", needed, unit), fmt.Sprintf("%.4g%s", measured, unit), measured <= needed}
}

// Figures are those of several corpora.
type Figures []Figure

// Add adds the figures of a corpus.
func (all *Figures) Add(corpus string, of []Figure) {
	for _, f := range of {
		f.What = corpus + ": " + f.What
		*all = append(*all, f)
	}
}

// Write writes the figures, those that are not reached first.
func (all Figures) Write(w io.Writer) {
	var t Table
	t.Row("figure", "needed", "measured", "reached")
	for _, reached := range []bool{false, true} {
		for _, f := range all {
			if f.Reached == reached {
				t.Row(f.What, f.Needed, f.Measured, map[bool]string{false: "NO", true: "yes"}[reached])
			}
		}
	}
	t.Write(w)
}
