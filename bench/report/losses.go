package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
)

// Losses are the figures by which Trawl is behind a peer.
type Losses struct{ list []loss }

type loss struct {
	text   string
	factor float64
}

// Addf adds a figure if Trawl is behind: if the ratio of the peer's value to Trawl's is below 1. A
// ratio of 0 was not measured.
func (l *Losses) Addf(ratio float64, format string, args ...any) {
	if ratio > 0 && ratio < 1 {
		l.list = append(l.list, loss{fmt.Sprintf(format, args...), 1 / ratio})
	}
}

// Write writes the figures, the worst first.
func (l *Losses) Write(w io.Writer) {
	slices.SortFunc(l.list, func(a, b loss) int { return cmp.Compare(b.factor, a.factor) })
	var t Table
	for _, row := range l.list {
		t.Row(row.text, fmt.Sprintf("%.2fx better", row.factor))
	}
	t.Write(w)
	if len(l.list) == 0 {
		fmt.Fprintln(w, "  none")
	}
}
