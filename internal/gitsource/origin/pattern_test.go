package origin

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

// TestPatternsMeanTheirExpression compares random patterns with regular expressions
// of the same meaning, on random names.
func TestPatternsMeanTheirExpression(t *testing.T) {
	rng := rand.New(rand.NewPCG(16, 1))
	matched := 0
	for range 20_000 {
		pattern, name := text(rng, "ab/*"), text(rng, "ab/\n")
		if strings.Contains(pattern, "***") {
			continue
		}
		expr := regexp.QuoteMeta(pattern)
		expr = strings.ReplaceAll(expr, `\*\*`, `(?s:.*)`)
		expr = strings.ReplaceAll(expr, `\*`, `[^/]*`)
		want := regexp.MustCompile(`\A` + expr + `\z`).MatchString(name)
		if got := MatchPattern(pattern, name); got != want {
			t.Fatalf("pattern %q, name %q: %v, want %v", pattern, name, got, want)
		}
		if want {
			matched++
		}
	}
	if matched < 100 {
		t.Errorf("only %d matched", matched)
	}
}

func text(rng *rand.Rand, letters string) string {
	b := make([]byte, rng.IntN(7))
	for i := range b {
		b[i] = letters[rng.IntN(len(letters))]
	}
	return string(b)
}

func TestPatternsThatCannotBe(t *testing.T) {
	for _, p := range []string{"", "a***", strings.Repeat("a", maxPattern+1)} {
		if CheckPattern(p) == nil {
			t.Errorf("%.10q was taken", p)
		}
	}
	if err := CheckPattern("org/**"); err != nil {
		t.Error(err)
	}
}
