package regex

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/internal/testrun"

	"github.com/trawl-search/trawl/index/ngram"
)

// holds reports whether the text meets the needs, by the simplest means.
func holds(n Needs, text []byte) bool {
	switch n := n.(type) {
	case Literal:
		if n.CaseSensitive {
			return bytes.Contains(text, []byte(n.Text))
		}
		return strings.Contains(foldText(text), n.Text)
	case And:
		return !slices.ContainsFunc(n.Children, func(c Needs) bool { return !holds(c, text) })
	case Or:
		return slices.ContainsFunc(n.Children, func(c Needs) bool { return holds(c, text) })
	}
	return true
}

// foldText replaces runes by their representatives and leaves other bytes alone.
func foldText(text []byte) string {
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		if r == utf8.RuneError {
			b.Write(text[:size])
		} else {
			b.WriteRune(ngram.Representative(r))
		}
		text = text[size:]
	}
	return b.String()
}

// tally counts how often each property was actually tested.
type tally struct{ matched, narrowed, excluded, fixed, lines int }

// checkText checks everything that the package promises about a tree against its matches in a text.
func checkText(t interface{ Fatalf(string, ...any) }, tree *syntax.Regexp, caseSensitive bool, text []byte, count *tally) {
	re, err := Compile(tree, caseSensitive)
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	needs, err := Analyze(tree, caseSensitive)
	if err != nil {
		t.Fatalf("Analyze: %v", err)
	}
	matches := re.FindAllIndex(text, -1)
	if _, all := needs.(All); !all {
		count.narrowed++
	}
	if !holds(needs, text) {
		count.excluded++
		if matches != nil {
			t.Fatalf("%s matches %q at %v, which is excluded: it needs %s", re, text, matches[0], needs)
		}
	}
	for _, m := range matches {
		count.matched++
		checkMatch(t, tree, caseSensitive, text[m[0]:m[1]], count)
	}
	checkRanges(t, tree, caseSensitive, text, matches)
	if !CrossesLines(tree) && !SeesTextEnds(tree) {
		count.lines++
		checkLines(t, re, text, matches)
	}
}

func checkMatch(t interface{ Fatalf(string, ...any) }, tree *syntax.Regexp, caseSensitive bool, match []byte, count *tally) {
	if least := MinLen(tree, caseSensitive); len(match) < least {
		t.Fatalf("%s matches %q, shorter than MinLen %d", tree, match, least)
	}
	if most, bounded := MaxLen(tree, caseSensitive); bounded && len(match) > most {
		t.Fatalf("%s matches %q, longer than MaxLen %d", tree, match, most)
	}
	if bytes.IndexByte(match, '\n') >= 0 && !CrossesLines(tree) {
		t.Fatalf("%s matches %q across lines", tree, match)
	}
	if lit, offset, ok := FixedLiteral(tree, caseSensitive); ok {
		count.fixed++
		if offset > len(match) || !beginsWith(match[offset:], lit) {
			t.Fatalf("%s matches %q without %s at %d", tree, match, lit, offset)
		}
	}
	if literals, ok := LiteralsOf(tree, caseSensitive); ok && !slices.ContainsFunc(literals, func(lit Literal) bool {
		return beginsWith(match, lit) && utf8.RuneCount(match) == utf8.RuneCountInString(lit.Text)
	}) {
		t.Fatalf("%s matches %q, but should be one of the literals %s", tree, match, literals)
	}
}

func beginsWith(text []byte, lit Literal) bool {
	if lit.CaseSensitive {
		return bytes.HasPrefix(text, []byte(lit.Text))
	}
	return strings.HasPrefix(foldText(text), lit.Text)
}

// checkRanges compares the Matcher with the standard library over the whole text.
func checkRanges(t interface{ Fatalf(string, ...any) }, tree *syntax.Regexp, caseSensitive bool, text []byte, matches [][]int) {
	m, err := NewMatcher(tree, caseSensitive)
	if err != nil {
		t.Fatalf("NewMatcher: %v", err)
	}
	var want, got [][2]int
	for _, loc := range matches {
		if loc[0] < loc[1] {
			want = append(want, [2]int(loc))
		}
	}
	for start, end := range Ranges(m, text) {
		got = append(got, [2]int{start, end})
	}
	if !slices.Equal(got, want) {
		t.Fatalf("Ranges of %s in %q: %v, want %v", tree, text, got, want)
	}
	if _, _, ok := m.Find(text, 0); ok != (matches != nil) {
		t.Fatalf("Find of %s in %q: %v", tree, text, ok)
	}
}

// checkLines compares the matches in each line with those in the text.
func checkLines(t interface{ Fatalf(string, ...any) }, re *regexp.Regexp, text []byte, matches [][]int) {
	var byLine, whole [][2]int
	at := 0
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		for _, loc := range re.FindAllIndex(line, -1) {
			if loc[0] < loc[1] {
				byLine = append(byLine, [2]int{at + loc[0], at + loc[1]})
			}
		}
		at += len(line) + 1
	}
	for _, loc := range matches {
		if loc[0] < loc[1] {
			whole = append(whole, [2]int(loc))
		}
	}
	if !slices.Equal(byLine, whole) {
		t.Fatalf("%s in %q: %v line by line, %v at once", re, text, byLine, whole)
	}
}

// TestRandomTrees checks that no match is ever excluded, and everything else that the package
// promises about trees, on trees of every shape and texts made to match.
func TestRandomTrees(t *testing.T) {
	var count tally
	runs := 0
	rapid.Check(t, func(t *rapid.T) {
		for range 10 {
			tree := drawTree(t, 4)
			caseSensitive := rapid.Bool().Draw(t, "case")
			text := slices.Concat(drawNoise(t), drawText(t, nil, tree, !caseSensitive), drawNoise(t))
			checkText(t, tree, caseSensitive, text, &count)
			runs++
		}
	})
	for what, n := range map[string]int{"match": count.matched, "narrow": count.narrowed, "have a fixed literal": count.fixed, "stay in lines": count.lines, "exclude": count.excluded} {
		if 25*n < runs {
			t.Errorf("only %d of %d trees %s: the test says little", n, runs, what)
		}
	}
}

// TestBrokenRunes has expressions that may begin with invalid bytes, and texts full of runes whose
// last bytes alone would be invalid: no match begins within a rune.
func TestBrokenRunes(t *testing.T) {
	var count tally
	broken := []*syntax.Regexp{
		{Op: syntax.OpLiteral, Rune: []rune{utf8.RuneError}}, {Op: syntax.OpLiteral, Rune: []rune{utf8.RuneError, '本'}},
		{Op: syntax.OpCharClass, Rune: complement([]rune{'a', 'é'})}, {Op: syntax.OpAnyCharNotNL},
	}
	pieces := []string{"é", "É", "日", "本", "😀", "a", "\uFFFD", "\xFF", "\x89", "\xA9", "\xE6\x97", "\xF0\x9F"}
	rapid.Check(t, func(t *rapid.T) {
		rest := rapid.SliceOfN(rapid.SampledFrom([]rune{'é', '日', '本', 'a', utf8.RuneError}), 1, 4).Draw(t, "rest")
		tree := &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{rapid.SampledFrom(broken).Draw(t, "first"), {Op: syntax.OpLiteral, Rune: rest}}}
		for range 10 {
			text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 6).Draw(t, "before"), "") + string(rest) +
				strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 6).Draw(t, "after"), "")
			checkText(t, tree, rapid.Bool().Draw(t, "case"), []byte(text), &count)
		}
	})
	if count.matched == 0 {
		t.Error("nothing matched: the test says nothing")
	}
}

// TestNearMisses runs trees on the texts of other trees, most of which must be excluded, and
// correctly so.
func TestNearMisses(t *testing.T) {
	var count tally
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawTree(t, 3), drawTree(t, 3)
		text := slices.Concat(drawText(t, nil, a, true), drawText(t, nil, b, true))
		for range 10 {
			checkText(t, drawTree(t, 2), rapid.Bool().Draw(t, "case"), text, &count)
		}
	})
	if count.excluded == 0 || count.matched == 0 {
		t.Errorf("%+v: the test says little", count)
	}
}

// FuzzAnalyze does the same for patterns and texts that are not made for each other, and compares
// Compile with direct use of the library.
func FuzzAnalyze(f *testing.F) {
	for pattern, text := range map[string]string{
		`[ab]foo`: "xafoo", `(?i)straße.*k`: "STRAßE \u212A", `^a|b$`: "b\na", `\bx+?y{2,3}`: "xxyyy", `(foo|ba[rz])+\n`: "foobaz\n", `a\x{FFFD}`: "a\xff", `\x{FFFD}本`: "É本K\xff本",
		`\A(?s:.*)\z`: "a\nb", `[^a]\W\S`: "A -", `(?:a*)*|b??`: "aab", `\pL{2}`: "éÉ", `(?U)a+(?-s).`: "aaa\n",
	} {
		f.Add(pattern, []byte(text), true)
		f.Add(pattern, []byte(text), false)
	}
	f.Fuzz(func(t *testing.T, pattern string, text []byte, caseSensitive bool) {
		tree, err := syntax.Parse(pattern, flags)
		if err != nil || len(pattern) > 200 || len(text) > 2000 {
			return
		}
		checkText(t, tree, caseSensitive, text, &tally{})
		source := "(?m)" + pattern
		if !caseSensitive {
			source = "(?i)" + tree.String()
		}
		want, err := regexp.Compile(source)
		if err != nil {
			return
		}
		got, err := Compile(tree, caseSensitive)
		if err != nil {
			t.Fatal(err)
		}
		if a, b := want.FindAllIndex(text, -1), got.FindAllIndex(text, -1); !slices.EqualFunc(a, b, slices.Equal) {
			t.Fatalf("%q in %q: %v, %q gives %v", got, text, b, source, a)
		}
	})
}

// sample is an expression and a text that is made to match it almost always.
type sample struct {
	tree          *syntax.Regexp
	text          []byte
	caseSensitive bool
}

// TestManyPairs checks thousands of pairs, different ones in every run. A failure names the seed,
// which reproduces the pair.
func TestManyPairs(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) sample {
		p := sample{tree: drawTree(t, 4), caseSensitive: rapid.Bool().Draw(t, "case")}
		p.text = slices.Concat(drawNoise(t), drawText(t, nil, p.tree, !p.caseSensitive), drawNoise(t))
		return p
	})
	pairs, seed := testrun.Rounds(2_000, 10_000), int(testrun.Seed(t)>>1)
	var count tally
	for i := range pairs {
		p := draw.Example(seed + i)
		checkText(t, p.tree, p.caseSensitive, p.text, &count)
	}
	if count.matched < pairs/4 {
		t.Errorf("%d matches in %d pairs: the test says little", count.matched, pairs)
	}
}
