package regex

import (
	"math"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// mustAutomata compiles a pattern that automata can handle.
func mustAutomata(t *testing.T, pattern string) *automata {
	t.Helper()
	tree, err := syntax.Parse(pattern, flags)
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewMatcher(tree, true)
	if err != nil {
		t.Fatal(err)
	}
	a, ok := m.(*automata)
	if !ok {
		t.Fatalf("%s: %T", pattern, m)
	}
	return a
}

// tracer counts events that show what the automata were tested with.
type tracer struct{ matched, searches, cleared, skipped, back int }

// checkAutomata compares all searches from every rune of a text with the standard library's. A low
// limit makes automata drop their states all the time.
func checkAutomata(t interface{ Fatalf(string, ...any) }, tree *syntax.Regexp, caseSensitive bool, text []byte, limit int, trace *tracer) {
	l, err := newLibrary(tree, caseSensitive)
	if err != nil {
		t.Fatalf("newLibrary: %v", err)
	}
	a, ok := newAutomata(tree, caseSensitive, l, nil)
	if !ok {
		return // checkRanges compares it
	}
	p := a.pool.New().(*pair)
	p.forward.limit, p.backward.limit = limit, limit
	p.forward.gain, p.backward.gain = 0, 0
	for from := 0; from <= len(text); {
		p.forward.gained, p.backward.gained = math.MaxInt/2, math.MaxInt/2
		wantStart, wantEnd, want := l.Find(text, from)
		start, end, paid := 0, -1, true
		if !a.anchored || from == 0 {
			start, end, paid = a.find(p, text, from)
			trace.searches++
		}
		if !paid {
			t.Fatalf("%s gave up on %q from %d", tree, text, from)
		}
		if got := end >= 0; got != want || got && (start != wantStart || end != wantEnd) {
			t.Fatalf("%s (case %v) in %q from %d: [%d %d], want [%d %d] %v", l.first, caseSensitive, text, from, start, end, wantStart, wantEnd, want)
		}
		if want {
			trace.matched++
		}
		if a.skip.useful {
			trace.skipped++
		}
		if p.forward.gained < math.MaxInt/4 || p.backward.gained < math.MaxInt/4 {
			trace.cleared++
		}
		if len(p.backward.states) > 0 {
			trace.back++
		}
		_, size := utf8.DecodeRune(text[from:])
		from += max(size, 1)
	}
}

// broken has invalid or unusual UTF-8: single and truncated bytes, halves of surrogate pairs,
// overlong forms, U+FFFD itself, line ends.
var broken = []string{"\xff", "\x80", "\xe6\x97", "\xe6", "\xf0\x9f\x98", "\xed\xa0\x80", "\xc0\x80", "\uFFFD", "\r\n", "日", "😀", "é", "\u212A", "ſ", "a", "b", "_", "\x00", ""}

func drawBroken(t *rapid.T) []byte {
	return []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom(broken), 0, 4).Draw(t, "broken"), ""))
}

// TestAutomataAgree checks that automata find what the standard library finds, from every place,
// with room for all states and for few.
func TestAutomataAgree(t *testing.T) {
	var trace tracer
	rapid.Check(t, func(t *rapid.T) {
		for range 10 {
			tree := drawTree(t, 4)
			caseSensitive := rapid.Bool().Draw(t, "case")
			text := slices.Concat(drawBroken(t), drawText(t, nil, tree, !caseSensitive), drawBroken(t), drawText(t, nil, tree, !caseSensitive), drawNoise(t))
			limit := rapid.SampledFrom([]int{maxBytes, maxBytes, 4000, 1}).Draw(t, "limit")
			checkAutomata(t, tree, caseSensitive, text, limit, &trace)
		}
	})
	for what, n := range map[string]int{"match": trace.matched, "forget": trace.cleared, "skip": trace.skipped, "go back": trace.back} {
		if 25*n < trace.searches {
			t.Errorf("only %d of %d searches %s: the test says little", n, trace.searches, what)
		}
	}
}

// patterns have revealed, or could reveal, an engine that is slightly wrong.
var patterns = []string{
	``, `a`, `a*`, `a*?`, `(?:a*)*`, `(|a)*`, `(|a)+`, `(?:\b(?:|q))*r`, `(?:\B(?:|a)|b)*?a`, `(a|ab)(c|bcd)(d*)`, `(?:a+b|a)`, `(?:a|a.*b)`, `(?:a.*b|a)`, `a??b`, `(?U)a+b?`,
	`^`, `$`, `\A`, `\z`, `^$`, `\b`, `\B`, `^a|b$`, `\Aa+`, `a\z`, `\n^`, `$\n`, `(?:^|a)b`, `(?:\A|a)b`, `\b\w+\b`, `\B.\B`, `\b日`, `日\b`, `\b_|_\B`, `x$|^y|\bz`,
	`.`, `(?s:.)`, `[^a]`, `[^\n]*`, `[^\x00-\x{10FFFF}]`, `\x{FFFD}`, `\x{FFFD}+a`, `[\x{FFFC}-\x{FFFE}]`, `(?s:.{3})`, `\pL+`, `\PL`, `[é-日]+`, `[\x{D7FF}-\x{E000}]`, `\x{D800}`, `[\x{D800}]a`,
	`(?i)k`, `(?i)ſ+`, `(?i:straße)`, `(?i)[^k]`, `[K-k]s`, `日本|日`, `[ab]foo`, `é?foo`, `[A-Z]+_foo`, `\w+\s+foo`, `(foo|bar|baz)qux?`, `func\s+\w+\(`, `\w{2}\s+\w{2}`,
	`(?i)copyright.*google`, `\bdma_map_(single|page)\b`, `.*foo`, `.*?foo.*`, `a.{3}b`, `(a|b)*a(a|b){5}`, `\r?\n`, `[\r\n]+`, `\s*$`, `^\s*#`, `a{0}`, `(?:a{0,2}){3}`, `(?:ab?){2,}`,
}

// TestAutomataPatterns runs every pattern on texts that contain something of everything.
func TestAutomataPatterns(t *testing.T) {
	texts := []string{
		"", "a", "\n", "a\nb", "ab", "aab abcd\n", "日本語foo xfoo\xe6foo", "K\u212Ak sſS straße STRASSE", "\xff\xfe\uFFFDa\xed\xa0\x80", "foo_foo A_foo AB_foo\nfoo\n_foo",
		"// Copyright 2009 Google\r\n// copyright\r\ngoogle", "dma_map_single(x) dma_map_pages _dma_map_page dma_map_page", "func (f) func a( func\tab(", "barqu bazqux fooqu", "xy\nyz\nzx", "\na\n\nb\n", "qr r q _r",
		strings.Repeat("ab", 20) + "\n" + strings.Repeat("日", 5), "aa bb cc dd  ee",
	}
	var trace tracer
	for _, pattern := range patterns {
		tree, err := syntax.Parse(pattern, flags)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range texts {
			for _, caseSensitive := range []bool{true, false} {
				for _, limit := range []int{maxBytes, 1} {
					checkAutomata(t, tree, caseSensitive, []byte(text), limit, &trace)
				}
				checkText(t, tree, caseSensitive, []byte(text), &tally{})
			}
		}
	}
}

// FuzzDFA compares the two engines on patterns and texts of all kinds.
func FuzzDFA(f *testing.F) {
	for i, pattern := range patterns {
		f.Add(pattern, []byte("ab"+broken[i%len(broken)]+"foo\n日K"), i%2 == 0, i%3 == 0)
	}
	f.Fuzz(func(t *testing.T, pattern string, text []byte, caseSensitive, forgetful bool) {
		tree, err := syntax.Parse(pattern, flags)
		if err != nil || len(pattern) > 100 || len(text) > 200 {
			return
		}
		if _, err := newLibrary(tree, caseSensitive); err != nil {
			return // nested too deeply once flags are written out
		}
		limit := maxBytes
		if forgetful {
			limit = 2000
		}
		checkAutomata(t, tree, caseSensitive, text, limit, &tracer{})
		re, err := Compile(tree, caseSensitive)
		if err != nil {
			return
		}
		checkRanges(t, tree, caseSensitive, text, re.FindAllIndex(text, -1))
	})
}
