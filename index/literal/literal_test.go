package literal

import (
	"regexp"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// reference finds as the standard library's regexp does.
func reference(pattern string, caseSensitive bool, text []byte, from int) (int, int, bool) {
	expr := regexp.QuoteMeta(pattern)
	if !caseSensitive {
		expr = "(?i)" + expr
	}
	loc := regexp.MustCompile(expr).FindIndex(text[from:])
	if loc == nil {
		return 0, 0, false
	}
	return from + loc[0], from + loc[1], true
}

// alphabet is small, so that random patterns are found, and holds runes whose
// cases differ in width: k and s, ß, Ⱥ, the Greek sigmas.
var alphabet = []rune{'a', 'A', 'b', 'k', 'K', '\u212a', 's', 'S', 'ſ', 'ß', 'ẞ', 'Ⱥ', 'ⱥ', 'σ', 'ς', 'Σ', '_', '\n', '日', '\U00010400', '\U00010428'}

func drawText(t *rapid.T) []byte {
	pieces := rapid.SliceOfN(rapid.OneOf(
		rapid.Map(rapid.SampledFrom(alphabet), func(r rune) []byte { return utf8.AppendRune(nil, r) }),
		rapid.SampledFrom([][]byte{{0x80}, {0xe2, 0x84}, {0xff}, {0xc5}}),
	), 0, 60).Draw(t, "text")
	var text []byte
	for _, p := range pieces {
		text = append(text, p...)
	}
	return text
}

func TestFindIsRegexp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pattern := string(rapid.SliceOfN(rapid.SampledFrom(alphabet), 1, 4).Draw(t, "pattern"))
		caseSensitive := rapid.Bool().Draw(t, "case")
		text := drawText(t)
		f := New(pattern, caseSensitive)
		for from := 0; from <= len(text); from++ {
			if from < len(text) && !utf8.RuneStart(text[from]) {
				continue
			}
			s, e, ok := f.Find(text, from)
			ws, we, wok := reference(pattern, caseSensitive, text, from)
			if ok != wok || ok && (s != ws || e != we) {
				t.Fatalf("Find(%q, case %v) in %q from %d = %d %d %v, want %d %d %v", pattern, caseSensitive, text, from, s, e, ok, ws, we, wok)
			}
			if ok && e-s > f.MaxLen() {
				t.Fatalf("match of %d bytes is over MaxLen %d", e-s, f.MaxLen())
			}
		}
	})
}

func TestAnchorIsRarestOfASCIICases(t *testing.T) {
	for pattern, want := range map[string]int{"ex": 1, "kss": -1, "sk_": 2, "ßk": -1, "reQuest": 2, "sé": -1} {
		if got := chooseAnchor([]rune(pattern)); got != want {
			t.Errorf("anchor of %q = %d, want %d", pattern, got, want)
		}
	}
}
