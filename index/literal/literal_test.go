package literal

import (
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/ngram"
)

// reference finds with the standard library's regexp.
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

// alphabet is small, so that random patterns are found, and has runes whose cases differ in width:
// k and s, ß, Ⱥ, the Greek sigmas.
var alphabet = []rune{'a', 'A', 'b', 'k', 'K', '\u212a', 's', 'S', 'ſ', 'ß', 'ẞ', 'Ⱥ', 'ⱥ', 'σ', 'ς', 'Σ', '_', '\n', '日', '本', 'モ', 'é', 'É', 'м', 'М', 'и', 'И', 'в', 'В', '\u1c80', '\u0390', '\u1fd3', '\U00010400', '\U00010428'}

func drawText(t *rapid.T) []byte {
	pieces := rapid.SliceOfN(rapid.OneOf(
		rapid.Map(rapid.SampledFrom(alphabet), func(r rune) []byte { return utf8.AppendRune(nil, r) }),
		rapid.SampledFrom([][]byte{{0x80}, {0xe2, 0x84}, {0xff}, {0xc5}, {0xd0}, {0xe6, 0x97}}),
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

func TestWhatIsLookedForFirst(t *testing.T) {
	for pattern, want := range map[string]struct {
		by     method
		anchor anchor
		wide   bool
	}{
		"e": {byLetter, anchor{0, 0}, false}, "k": {byLeads, anchor{}, false}, "ts": {byPair, anchor{0, 0}, true}, "kss": {byPair, anchor{0, 0}, true}, "xsk_": {byLetter, anchor{3, 0}, false},
		"ßk": {byLeads, anchor{}, false}, "reQuest": {byLetter, anchor{2, 0}, false}, "sé": {byPair, anchor{1, 0}, false}, "return": {byPair, anchor{3, 0}, false}, "été": {byPair, anchor{0, 1}, false},
		"мир": {byPair, anchor{0, 1}, false}, "вот": {byLeads, anchor{}, false}, "日本": {byPair, anchor{0, 1}, false}, "σκ": {byLeads, anchor{}, false},
	} {
		if f := New(pattern, false); f.by != want.by || f.anchor != want.anchor || f.wide != want.wide {
			t.Errorf("%s: %d at %d, wide %v, want %+v", pattern, f.by, f.anchor, f.wide, want)
		}
	}
}

// TestCases: no rune has more cases than there is room for, and all of them are there.
func TestCases(t *testing.T) {
	for r := range rune(unicode.MaxRune + 1) {
		c := casesOf(r)
		ngram.Orbit(r, func(o rune) {
			if !c.has(o) {
				t.Errorf("%U is not a case of %U", o, r)
			}
		})
	}
}

// testPattern is a pattern of a Set.
type testPattern struct {
	Text          string
	CaseSensitive bool
}

func setOf(patterns []testPattern) (s Set) {
	for _, p := range patterns {
		s = append(s, New(p.Text, p.CaseSensitive))
	}
	return s
}

// referenceSet finds an alternation with the standard library's regexp.
func referenceSet(patterns []testPattern, text []byte, from int) (int, int, bool) {
	parts := make([]string, len(patterns))
	for i, p := range patterns {
		parts[i] = regexp.QuoteMeta(p.Text)
		if !p.CaseSensitive {
			parts[i] = "(?i:" + parts[i] + ")"
		}
	}
	loc := regexp.MustCompile(strings.Join(parts, "|")).FindIndex(text[from:])
	if loc == nil {
		return 0, 0, false
	}
	return from + loc[0], from + loc[1], true
}

func checkSet(t interface{ Fatalf(string, ...any) }, patterns []testPattern, text []byte) (found int) {
	s := setOf(patterns)
	for from := 0; from <= len(text); from++ {
		if from < len(text) && !utf8.RuneStart(text[from]) {
			continue
		}
		start, end, ok := s.Find(text, from)
		ws, we, wok := referenceSet(patterns, text, from)
		if ok != wok || ok && (start != ws || end != we) {
			t.Fatalf("Find(%+v) in %q from %d = %d %d %v, want %d %d %v", patterns, text, from, start, end, ok, ws, we, wok)
		}
		if ok {
			found++
		}
	}
	return found
}

func TestSetIsRegexp(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		patterns := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) testPattern {
			return testPattern{string(rapid.SliceOfN(rapid.SampledFrom(alphabet), 1, 6).Draw(t, "pattern")), rapid.Bool().Draw(t, "case")}
		}), 1, 8).Draw(t, "patterns")
		text := append(drawText(t), strings.Repeat("-", rapid.IntRange(0, firstWindow).Draw(t, "gap"))...) // so that matches cross windows
		for _, p := range patterns {
			text = append(append(text, p.Text...), drawText(t)...)
		}
		found += checkSet(t, patterns, text)
	})
	if found == 0 {
		t.Error("nothing was found: the test says little")
	}
}

// FuzzSet looks for patterns of lengths that random ones rarely have.
func FuzzSet(f *testing.F) {
	f.Add("return\nretry\nRETURN", []byte("ReTurn retrY return"), uint8(1))
	f.Add("task\nTasks", []byte("ta\u017f\u212a tasks"), uint8(0))
	f.Fuzz(func(t *testing.T, list string, text []byte, caseful uint8) {
		var patterns []testPattern
		for i, word := range strings.Split(list, "\n") {
			if word == "" || !utf8.ValidString(word) || strings.ContainsRune(word, utf8.RuneError) {
				return
			}
			patterns = append(patterns, testPattern{word, caseful>>(i%8)&1 != 0})
		}
		if len(list) > 400 || len(text) > 1000 {
			return
		}
		checkSet(t, patterns, text)
	})
}
