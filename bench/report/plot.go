package report

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// Page is one picture with panels below each other and one legend for all.
type Page struct {
	Title string
	// Series are the names of the engines; there are at most five, since each has a colour.
	Series []string
	Panels []Panel
}

// Panel is a part of the page.
type Panel interface {
	// height in pixels.
	height() int
	// draw draws the panel with its upper edge at y.
	draw(d *drawing, y int)
}

// Sizes in pixels.
const (
	width   = 860
	left    = 150 // labels of rows end here
	right   = width - 60
	header  = 74
	caption = 30
	margin  = 28
)

// style sets the colours. Those of the series are Okabe's and Ito's, which colour-blind readers can
// distinguish, slightly lighter in dark mode.
const style = `
text{font:12px system-ui,sans-serif;fill:#1f2328}
.title{font-size:16px;font-weight:600}.caption{font-size:13px;font-weight:600}.faint{fill:#59636e}
.grid{stroke:#d1d9e0;stroke-width:1}
.s0{fill:#d55e00;stroke:#d55e00}.s1{fill:#0072b2;stroke:#0072b2}.s2{fill:#56b4e9;stroke:#56b4e9}
.s3{fill:#009e73;stroke:#009e73}.s4{fill:#cc79a7;stroke:#cc79a7}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.faint{fill:#9198a1}.grid{stroke:#3d444d}
.s0{fill:#ff8a3d;stroke:#ff8a3d}.s1{fill:#4c9be8;stroke:#4c9be8}.s3{fill:#2fc79a;stroke:#2fc79a}
}
`

// drawing collects SVG elements.
type drawing struct {
	strings.Builder
	series []string
}

func (d *drawing) text(x, y int, anchor, class, text string) {
	fmt.Fprintf(d, "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\" class=\"%s\">%s</text>\n", x, y, anchor, class, html.EscapeString(text))
}

func (d *drawing) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(d, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n", x1, y1, x2, y2, class)
}

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	d := &drawing{series: p.Series}
	total := header
	for _, panel := range p.Panels {
		panel.draw(d, total)
		total += panel.height() + margin
	}
	var head drawing
	fmt.Fprintf(&head, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n<title>%s</title>\n<style>%s</style>\n",
		width, total, width, total, html.EscapeString(p.Title), style)
	head.text(16, 26, "start", "title", p.Title)
	head.legend(p.Series)
	if _, err := io.WriteString(w, head.String()+d.String()+"</svg>\n"); err != nil {
		return fmt.Errorf("writing a plot: %w", err)
	}
	return nil
}

// legend names the series, each after a dot of its colour.
func (d *drawing) legend(series []string) {
	x := 22
	for i, name := range series {
		fmt.Fprintf(d, "<circle cx=\"%d\" cy=\"48\" r=\"5\" class=\"s%d\"/>\n", x, i)
		d.text(x+11, 52, "start", "", name)
		x += 34 + 7*len(name)
	}
}
