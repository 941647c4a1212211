package main

import (
	"fmt"
	"html"
	"math"
	"strings"
	"time"
)

// chart draws lines over a time.
type chart struct {
	unit     string
	from, to time.Time
	w, h     int
	stacked  bool
	most     *float64
}

const (
	leftMargin   = 62
	bottomMargin = 18
)

// draw makes an SVG.
func (c chart) draw(lines []line) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<svg width="%d" height="%d" font-size="10" fill="#8e8ea0" font-family="DejaVu Sans, sans-serif">`, c.w, c.h)
	if len(lines) == 0 {
		fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle" font-size="14">no data</text>`, c.w/2, c.h/2)
	} else {
		top := c.top(lines)
		c.axes(&b, top)
		base := map[int64]float64{}
		for i, l := range lines {
			c.line(&b, l, palette[i%len(palette)], top, base)
		}
	}
	b.WriteString("</svg>")
	return b.String()
}

// top is the upper end of the axis: a round number.
func (c chart) top(lines []line) float64 {
	if c.most != nil {
		return *c.most
	}
	sums, highest := map[int64]float64{}, 0.0
	for _, l := range lines {
		for _, p := range l.points {
			if !finite(p.F) {
				continue
			}
			if c.stacked {
				sums[p.T] += p.F
				highest = max(highest, sums[p.T])
			}
			highest = max(highest, p.F)
		}
	}
	if highest <= 0 {
		return 1
	}
	scale := math.Pow(10, math.Floor(math.Log10(highest)))
	for _, step := range []float64{1, 2, 4, 5, 8, 10} {
		if highest <= step*scale {
			return step * scale
		}
	}
	return highest
}

func (c chart) axes(b *strings.Builder, top float64) {
	for i := range 5 {
		value := top * float64(i) / 4
		y := c.y(value, top)
		fmt.Fprintf(b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#2c3235"/>`, leftMargin, c.w, y, y)
		fmt.Fprintf(b, `<text x="%d" y="%.1f" text-anchor="end">%s</text>`, leftMargin-6, y+3, html.EscapeString(format(value, c.unit)))
	}
	for i := range 6 {
		at := c.from.Add(c.to.Sub(c.from) * time.Duration(i) / 6)
		fmt.Fprintf(b, `<text x="%.1f" y="%d">%s</text>`, c.x(at.UnixMilli()), c.h-4, at.UTC().Format("15:04:05"))
	}
}

func (c chart) x(t int64) float64 {
	share := float64(t-c.from.UnixMilli()) / float64(c.to.UnixMilli()-c.from.UnixMilli())
	return leftMargin + share*float64(c.w-leftMargin-4)
}

func (c chart) y(value, top float64) float64 {
	room := float64(c.h - bottomMargin - 14)
	return 12 + room*(1-min(value/top, 1))
}

// line draws one series, above those before it where they are stacked.
func (c chart) line(b *strings.Builder, l line, color string, top float64, base map[int64]float64) {
	var path, floor []string
	var last int64
	flush := func() {
		if len(path) > 0 && c.stacked {
			for i := len(floor) - 1; i >= 0; i-- {
				path = append(path, floor[i])
			}
			fmt.Fprintf(b, `<polygon points="%s" fill="%s" fill-opacity=".35" stroke="%s"/>`, strings.Join(path, " "), color, color)
		} else if len(path) > 0 {
			fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5"/>`, strings.Join(path, " "), color)
		}
		path, floor = nil, nil
	}
	for _, p := range l.points {
		if !finite(p.F) {
			continue
		}
		if last != 0 && p.T-last > 2*scrapeEvery.Milliseconds() {
			flush()
		}
		last = p.T
		under := 0.0
		if c.stacked {
			under = base[p.T]
			base[p.T] += p.F
		}
		path = append(path, fmt.Sprintf("%.1f,%.1f", c.x(p.T), c.y(under+p.F, top)))
		floor = append(floor, fmt.Sprintf("%.1f,%.1f", c.x(p.T), c.y(under, top)))
	}
	flush()
}

// format writes a value in a unit of Grafana's.
func format(v float64, unit string) string {
	switch unit {
	case "percentunit":
		return fmt.Sprintf("%.4g %%", 100*v)
	case "s":
		return duration(v)
	case "bytes":
		return scaled(v, 1024, []string{"B", "KiB", "MiB", "GiB", "TiB"})
	case "Bps":
		return scaled(v, 1000, []string{"B/s", "kB/s", "MB/s", "GB/s"})
	case "reqps":
		return fmt.Sprintf("%.3g req/s", v)
	case "ops":
		return fmt.Sprintf("%.3g /s", v)
	}
	return fmt.Sprintf("%.4g", v)
}

func duration(s float64) string {
	switch {
	case s == 0:
		return "0 s"
	case s < 0.001:
		return fmt.Sprintf("%.3g µs", s*1e6)
	case s < 1:
		return fmt.Sprintf("%.3g ms", s*1e3)
	case s < 120:
		return fmt.Sprintf("%.3g s", s)
	}
	return fmt.Sprintf("%.3g min", s/60)
}

func scaled(v, by float64, units []string) string {
	for i, unit := range units {
		if v < by || i == len(units)-1 {
			return fmt.Sprintf("%.3g %s", v, unit)
		}
		v /= by
	}
	return ""
}
