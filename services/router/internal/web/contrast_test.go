package web

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var customColour = regexp.MustCompile(`--(\w+): #([0-9a-f]{6});`)

// luminance of a colour, relative to white (WCAG 2).
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	var sum float64
	for i, weight := range []float64{.2126, .7152, .0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= .04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

// TestContrast: text has the contrast that WCAG asks for at level AA, 4.5, in light and in dark.
func TestContrast(t *testing.T) {
	style, err := files.ReadFile("assets/style.css")
	if err != nil {
		t.Fatal(err)
	}
	light, dark, ok := strings.Cut(string(style), "@media (prefers-color-scheme: dark)")
	if !ok {
		t.Fatal("there is no dark style")
	}
	for name, css := range map[string]string{"light": light, "dark": dark} {
		colours := map[string]string{}
		for _, m := range customColour.FindAllStringSubmatch(css, -1) {
			if _, twice := colours[m[1]]; !twice {
				colours[m[1]] = m[2]
			}
		}
		check := func(texts, backs string) {
			for text := range strings.FieldsSeq(texts) {
				for back := range strings.FieldsSeq(backs) {
					a, b := luminance(t, colours[text]), luminance(t, colours[back])
					if ratio := (max(a, b) + .05) / (min(a, b) + .05); ratio < 4.5 {
						t.Errorf("%s: %s on %s has a contrast of %.2f, want 4.5", name, text, back, ratio)
					}
				}
			}
		}
		check("front soft link", "back panel hit here")
		check("string number comment keyword type function preproc", "back hit here")
		check("front", "mark badback")
		check("bad good", "back")
	}
}
