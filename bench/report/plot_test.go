package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
)

func page() *Page {
	return &Page{
		Title:  "a < b & c",
		Series: []string{"trawl", "other <1>"},
		Panels: []Panel{
			&Latency{Caption: "times", Rows: []Row{
				{"rare", []Span{{0, 0.05, 1}, {1, 2, 30}}},
				{"none", []Span{{0, 0.1, 0.1}, {1, 0, 0}}},
			}},
			&Bars{Caption: "size", Values: []Value{{0, 0.5}, {1, 2}}},
		},
	}
}

func write(t *testing.T, p *Page) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestIsXML: the picture is well-formed whatever letters the names have.
func TestIsXML(t *testing.T) {
	svg := write(t, page())
	dec := xml.NewDecoder(strings.NewReader(svg))
	for {
		_, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, svg)
		}
	}
	for _, want := range []string{"prefers-color-scheme:dark", "a &lt; b &amp; c", "p50 50 µs, p99 1 ms", ">other &lt;1&gt;<", ">rare<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in\n%s", want, svg)
		}
	}
	// The legend has two dots and the rows three: what was not measured has
	// none.
	if got := strings.Count(svg, "<circle"); got != 5 {
		t.Errorf("%d dots, not 5", got)
	}
}

// TestScale: a factor of ten has the same length everywhere, and all values are
// within the scale.
func TestScale(t *testing.T) {
	s := page().Panels[0].(*Latency).scale()
	if a, b := s.x(1)-s.x(0.1), s.x(10)-s.x(1); math.Abs(a-b) > 1e-9 || a <= 0 {
		t.Errorf("decades of %g and %g", a, b)
	}
	if s.x(0.05) < left || s.x(30) > right {
		t.Errorf("0.05 is at %g, 30 at %g", s.x(0.05), s.x(30))
	}
	if got := len(s.ticks()); got != 5 { // .01, .1, 1, 10, 100
		t.Errorf("%d ticks", got)
	}
	if one := (&Latency{Rows: []Row{{"x", []Span{{0, 1, 1}}}}}).scale(); one.to <= one.from {
		t.Errorf("a single value has the scale %v", one)
	}
	if none := (&Latency{}).scale(); none.to <= none.from {
		t.Errorf("nothing has the scale %v", none)
	}
}

func TestBarsAreProportional(t *testing.T) {
	svg := write(t, page())
	if !strings.Contains(svg, `width="650.0"`) || !strings.Contains(svg, `width="162.5"`) {
		t.Errorf("bars of 2 and 0.5 are not as long as that in\n%s", svg)
	}
}

func TestAxisLabels(t *testing.T) {
	for ms, want := range map[float64]string{0.001: "1 µs", 0.0123: "12.3 µs", 1: "1 ms", 250: "250 ms", 1000: "1 s", 12345: "12.3 s"} {
		if got := milliseconds(ms); got != want {
			t.Errorf("%g is written %q, not %q", ms, got, want)
		}
	}
}
