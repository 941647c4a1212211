package report

import (
	"fmt"
	"html"
	"strconv"
)

// Bars is a panel with one bar for each series, starting at zero.
type Bars struct {
	Caption string
	Values  []Value
}

// Value is the bar of one series.
type Value struct {
	Series int
	Value  float64
}

const barHeight = 20

func (p *Bars) height() int { return caption + barHeight*len(p.Values) }

func (p *Bars) draw(d *drawing, y int) {
	d.text(16, y+16, "start", "caption", p.Caption)
	most := 0.0
	for _, v := range p.Values {
		most = max(most, v.Value)
	}
	for i, v := range p.Values {
		top := y + caption + i*barHeight
		long := 0.0
		if most > 0 {
			long = v.Value / most * (right - left)
		}
		d.text(left-10, top+14, "end", "", d.series[v.Series])
		fmt.Fprintf(d, "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" class=\"s%s\"/>\n", left, top+2, long, barHeight-5, strconv.Itoa(v.Series))
		d.text(left+int(long)+6, top+14, "start", "faint", strconv.FormatFloat(v.Value, 'g', 3, 64))
	}
}

// name returns a series' name, escaped for SVG.
func (d *drawing) name(series int) string { return html.EscapeString(d.series[series]) }
