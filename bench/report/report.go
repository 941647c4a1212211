// Package report presents measurements: percentiles, ratios and tables as text, with the machine
// and the progress of a run, and latencies and bars as one SVG that needs no script and no font and
// works in light and dark mode.
package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Percentile returns the nearest-rank percentile p, 0 < p ≤ 100: the smallest value that is at
// least as great as p percent of all values. Without values it is zero.
func Percentile[T cmp.Ordered](values []T, p float64) T {
	if len(values) == 0 {
		var zero T
		return zero
	}
	sorted := slices.Sorted(slices.Values(values))
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// GeometricMean returns the geometric mean of positive values, 0 without values.
func GeometricMean(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range values {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(values)))
}

// Milliseconds formats a duration with three significant digits.
func Milliseconds(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	switch {
	case ms < 1:
		return fmt.Sprintf("%.3f", ms)
	case ms < 100:
		return fmt.Sprintf("%.2f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}

// Megabytes formats a size in units of 1,000,000 bytes.
func Megabytes[T ~int64 | ~uint64](n T) string { return fmt.Sprintf("%.1f", float64(n)/1e6) }

// Bar draws a duration on a logarithmic scale: two characters for each doubling above a tenth of a
// millisecond.
func Bar(d time.Duration) string {
	if d <= 100*time.Microsecond {
		return "▏"
	}
	return strings.Repeat("█", 1+int(2*math.Log2(float64(d)/float64(100*time.Microsecond))))
}

// Table is written with aligned columns. The first is text, the others are figures.
type Table struct{ rows [][]string }

// Row adds a row; the first one is the heading.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Write writes the table.
func (t *Table) Write(w io.Writer) {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, row := range t.rows {
		var b strings.Builder
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				b.WriteString("  " + cell + pad)
			} else {
				b.WriteString("  " + pad + cell)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}
