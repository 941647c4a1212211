package report

import (
	"strings"
	"testing"
)

// TestFiguresThatAreNotReachedComeFirst: a reader sees first what falls short.
func TestFiguresThatAreNotReachedComeFirst(t *testing.T) {
	var all Figures
	all.Add("a", []Figure{AtLeast("fast", 5, 5, "x"), AtLeast("slow", 4.99, 5, "x")})
	all.Add("b", []Figure{AtMost("small", 0.4, 0.4, " ms"), AtMost("large", 0.41, 0.4, " ms")})
	var out strings.Builder
	all.Write(&out)
	at := -1
	for _, want := range []string{"figure", "a: slow", "b: large", "a: fast", "b: small"} {
		next := strings.Index(out.String(), want)
		if next <= at {
			t.Fatalf("%q is not in its place:\n%s", want, out.String())
		}
		at = next
	}
	if n := strings.Count(out.String(), "NO"); n != 2 {
		t.Errorf("%d figures are not reached:\n%s", n, out.String())
	}
}
