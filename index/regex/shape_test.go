package regex

import (
	"regexp/syntax"
	"testing"
)

func TestShape(t *testing.T) {
	tests := []struct {
		pattern         string
		crosses, ends   bool
		least, most     int // -1 without bound
		literal, fixed  string
		fixedAt         int
		withoutCaseMost int
	}{
		{`foo`, false, false, 3, 3, `"foo"`, `"foo"`, 0, 3},
		{`(foo)`, false, false, 3, 3, `"foo"`, `"foo"`, 0, 3},
		{`(?i)foo`, false, false, 3, 3, `"foo"i`, `"foo"i`, 0, 3},
		{`kelvin`, false, false, 6, 6, `"kelvin"`, `"kelvin"`, 0, 8},
		{`foo\nbar`, true, false, 7, 7, `"foo\nbar"`, `"foo\nbar"`, 0, 7},
		{`[ab]foobar`, false, false, 7, 7, ``, `"foobar"`, 1, 7},
		{`[aé]foobar`, false, false, 7, 8, ``, ``, 0, 8},
		{`日.foo`, false, false, 7, 10, ``, `"日"`, 0, 10},
		{`.*foo`, false, false, 3, -1, ``, ``, 0, -1},
		{`(?s).`, true, false, 1, 4, ``, ``, 0, 4},
		{`[^a]`, true, false, 1, 4, ``, ``, 0, 4},
		{`[^a\n]`, false, false, 1, 4, ``, ``, 0, 4},
		{`\s`, true, false, 1, 1, ``, ``, 0, 1},
		{`(ab|cde)f`, false, false, 3, 4, ``, ``, 0, 4},
		{`(ab|cd)efg`, false, false, 5, 5, ``, `"efg"`, 2, 5},
		{`x(abcd)+y`, false, false, 6, -1, ``, `"abcd"`, 1, -1},
		{`(abc){2,5}x`, false, false, 7, 16, ``, `"abc"`, 0, 16},
		{`(abc){2}xyzzy`, false, false, 11, 11, ``, `"xyzzy"`, 6, 11},
		{`a?bc`, false, false, 2, 3, ``, ``, 0, 3},
		{`\Afoo`, false, true, 3, 3, ``, `"foo"`, 0, 3},
		{`(a|foo\z)`, false, true, 1, 3, ``, ``, 0, 3},
		{`^foo$`, false, false, 3, 3, ``, `"foo"`, 0, 3},
		{`\x{FFFD}foo`, false, false, 4, 7, ``, ``, 0, 7},
		{`foo\x{FFFD}bar`, false, false, 7, 10, ``, `"foo"`, 0, 10},
		{``, false, false, 0, 0, ``, ``, 0, 0},
		{`()*`, false, false, 0, 0, ``, ``, 0, 0},
		{`(((x{10}){10}){10})*`, false, false, 0, -1, ``, ``, 0, -1},
	}
	for _, tt := range tests {
		tree := mustParse(t, tt.pattern)
		most, bounded := MaxLen(tree, true)
		if !bounded {
			most = -1
		}
		caseless, bounded := MaxLen(tree, false)
		if !bounded {
			caseless = -1
		}
		if CrossesLines(tree) != tt.crosses || SeesTextEnds(tree) != tt.ends || MinLen(tree, true) != tt.least || most != tt.most || caseless != tt.withoutCaseMost {
			t.Errorf("%s: crosses %v, ends %v, length %d to %d, %d without case, want %+v", tt.pattern,
				CrossesLines(tree), SeesTextEnds(tree), MinLen(tree, true), most, caseless, tt)
		}
		literals, ok := LiteralsOf(tree, true)
		if ok = ok && len(literals) == 1; ok != (tt.literal != "") || ok && literals[0].String() != tt.literal {
			t.Errorf("LiteralsOf(%s) = %s, want %s", tt.pattern, literals, tt.literal)
		}
		fixed, at, ok := FixedLiteral(tree, true)
		if ok != (tt.fixed != "") || ok && (fixed.String() != tt.fixed || at != tt.fixedAt) {
			t.Errorf("FixedLiteral(%s) = %s at %d, %v, want %s at %d", tt.pattern, fixed, at, ok, tt.fixed, tt.fixedAt)
		}
	}
}

func TestSprawls(t *testing.T) {
	for pattern, want := range map[string]bool{
		`a(?s:.*)b`: true, `a[^;]+b`: true, `a([^"]|\n){3,}b`: true, `(a\n)*`: true, `(\n|x)+`: true,
		`int\s+main\(.*argv`: false, `a.*b`: false, `a(?s:.){0,99}b`: false, `\s*$`: false, `[\n;]+`: false, `a\nb`: false, `[^a\n]*`: false,
	} {
		if Sprawls(mustParse(t, pattern)) != want {
			t.Errorf("%s: not %v", pattern, want)
		}
	}
}

func TestLengthsDoNotOverflow(t *testing.T) {
	tree := &syntax.Regexp{Op: syntax.OpLiteral, Rune: make([]rune, 1000)}
	for range 20 {
		tree = &syntax.Regexp{Op: syntax.OpRepeat, Min: 1000, Max: 1000, Sub: []*syntax.Regexp{tree}}
	}
	if least := MinLen(tree, true); least < 1<<20 || least > unbounded {
		t.Errorf("MinLen %d", least)
	}
	if most, bounded := MaxLen(tree, true); bounded {
		t.Errorf("MaxLen %d", most)
	}
}

// TestSource checks that a written expression does not depend on the flags
// around it, and that a class of all but some runes folds correctly.
func TestSource(t *testing.T) {
	for pattern, want := range map[string]string{
		`^a.b$`:     `(?:(?m:^)(?:a)(?-s:.)(?:b)(?m:$))`,
		`(?s)\A.\z`: `(?:\A(?s:.)\z)`,
		`(?i)é+?`:   `(?:(?i:É))+?`,
		`(a|){2,}`:  `(?:(?:(?:(?:a)|(?:)))){2,}`,
		`[^a]`:      `[\x{0}-\x{60}b-\x{10ffff}]`,
		`(?-m)a$`:   `(?:(?:a)\z)`,
	} {
		if got := Source(mustParse(t, pattern), true); got != want {
			t.Errorf("Source(%s) = %s, want %s", pattern, got, want)
		}
	}
	re, err := Compile(mustParse(t, `[^a]b`), false)
	if err != nil || re.MatchString("Ab") || !re.MatchString("xB") {
		t.Errorf("[^a]b without case: %s, %v", re, err)
	}
}

// TestFindSeesWhatIsBefore checks that a search from the middle of a text sees
// the text before it.
func TestFindSeesWhatIsBefore(t *testing.T) {
	tests := []struct {
		pattern, text string
		from          int
		start, end    int // -1: none
	}{
		{`\bfoo`, "xfoo foo", 1, 5, 8},
		{`^foo`, "foofoo\nfoo", 3, 7, 10},
		{`\Afoo`, "foofoo", 3, -1, 0},
		{`\Afoo`, "foofoo", 0, 0, 3},
		{`foo`, "foofoo", 3, 3, 6},
		{`\Boo`, "日oo", 3, -1, 0},
		{`\Boo`, "aoo", 1, 1, 3},
		{`x*`, "ab", 2, 2, 2},
		{`\b`, "ab", 2, 2, 2},
		{`a`, "a", 2, -1, 0},
		{`^a`, "a", 5, -1, 0},
		{`a`, "a", -3, 0, 1},
		{`\ba`, "\xffa", 1, 1, 2},
	}
	for _, tt := range tests {
		m, err := NewMatcher(mustParse(t, tt.pattern), true)
		if err != nil {
			t.Fatal(err)
		}
		start, end, ok := m.Find([]byte(tt.text), tt.from)
		if ok != (tt.start >= 0) || ok && (start != tt.start || end != tt.end) {
			t.Errorf("%s in %q from %d: %d, %d, %v, want %d, %d", tt.pattern, tt.text, tt.from, start, end, ok, tt.start, tt.end)
		}
	}
}

func TestRangesStops(t *testing.T) {
	m, err := NewMatcher(mustParse(t, "a"), true)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for range Ranges(m, []byte("aaaa")) {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d matches after a break at 2", n)
	}
}
