package report

import (
	"fmt"
	"math"
	"strconv"
)

// Latency is a panel of times on a logarithmic scale. It has one row per
// bucket, with a dot for the p50 of each series and a line to its p99.
type Latency struct {
	Caption string
	Rows    []Row
}

// Row is a bucket.
type Row struct {
	Label string
	Spans []Span
}

// Span has the times of one series in milliseconds; times of zero are not
// drawn.
type Span struct {
	Series   int
	P50, P99 float64
}

const (
	spanHeight = 8
	rowGap     = 8
	axisHeight = 18
)

func (r *Row) height() int { return rowGap + spanHeight*len(r.Spans) }

func (p *Latency) height() int {
	sum := caption + axisHeight
	for i := range p.Rows {
		sum += p.Rows[i].height()
	}
	return sum
}

func (p *Latency) draw(d *drawing, y int) {
	d.text(16, y+16, "start", "caption", p.Caption)
	scale := p.scale()
	top, bottom := y+caption, y+p.height()-axisHeight
	for _, at := range scale.ticks() {
		x := scale.x(at)
		d.line(x, float64(top), x, float64(bottom), "grid")
		d.text(int(x), bottom+14, "middle", "faint", milliseconds(at))
	}
	for i := range p.Rows {
		row := &p.Rows[i]
		d.text(left-10, top+row.height()/2+4, "end", "", row.Label)
		for k, s := range row.Spans {
			drawSpan(d, scale, s, float64(top)+rowGap/2+spanHeight*(float64(k)+0.5))
		}
		top += row.height()
	}
}

func drawSpan(d *drawing, scale logScale, s Span, y float64) {
	if s.P50 <= 0 {
		return
	}
	class := "s" + strconv.Itoa(s.Series)
	x := scale.x(s.P50)
	d.line(x, y, scale.x(max(s.P99, s.P50)), y, class)
	fmt.Fprintf(d, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" class=\"%s\"><title>%s: p50 %s, p99 %s</title></circle>\n",
		x, y, class, d.name(s.Series), milliseconds(s.P50), milliseconds(s.P99))
}

func (p *Latency) scale() logScale {
	low, high := math.Inf(1), 0.0
	for _, row := range p.Rows {
		for _, s := range row.Spans {
			if s.P50 > 0 {
				low, high = min(low, s.P50), max(high, s.P50, s.P99)
			}
		}
	}
	if high == 0 {
		low, high = 1, 10
	}
	return logScale{math.Floor(math.Log10(low)), math.Max(math.Ceil(math.Log10(high)), math.Floor(math.Log10(low))+1)}
}

// logScale goes from one power of ten to another.
type logScale struct{ from, to float64 }

func (s logScale) x(v float64) float64 {
	return left + (math.Log10(v)-s.from)/(s.to-s.from)*(right-left)
}

func (s logScale) ticks() []float64 {
	var ticks []float64
	for e := s.from; e <= s.to; e++ {
		ticks = append(ticks, math.Pow(10, e))
	}
	return ticks
}

// milliseconds formats a time in a suitable unit.
func milliseconds(ms float64) string {
	switch {
	case ms < 0.9999:
		return fmt.Sprintf("%.3g µs", ms*1e3)
	case ms < 999.9:
		return fmt.Sprintf("%.3g ms", ms)
	}
	return fmt.Sprintf("%.3g s", ms/1e3)
}
