package regex

import (
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// TestWordRunes: the class in expressions and the function name the same runes.
func TestWordRunes(t *testing.T) {
	class := regexp.MustCompile("^[" + wordClass + "]$")
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if utf8.ValidRune(r) && class.MatchString(string(r)) != inWord(r) {
			t.Fatalf("%U: inWord says %t", r, inWord(r))
		}
	}
}

// naiveWords tries each place of a text in turn.
func naiveWords(source string, text []byte) (found [][2]int) {
	for at := 0; at <= len(text); {
		_, size := utf8.DecodeRune(text[at:])
		before, _ := utf8.DecodeLastRune(text[:at])
		loc := []int(nil)
		if !inWord(before) {
			// What precedes counts for ^ and \b.
			prefix := `\A(?s:.{` + strconv.Itoa(utf8.RuneCount(text[:at])) + `})`
			loc = regexp.MustCompile(prefix + "(" + source + ")(?:[^" + wordClass + `]|\z)`).FindSubmatchIndex(text)
		}
		if loc != nil && loc[3] > at {
			found = append(found, [2]int{at, loc[3]})
			at = loc[3]
			continue
		}
		at += max(size, 1)
	}
	return found
}

// TestWholeWords compares the whole words of an expression with those that are found by trying each place.
func TestWholeWords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		source := rapid.SampledFrom([]string{
			"foo", "foo|foobar", "foobar|foo", "é", "über|ber", "o+", "fo*", "fo*?", "[a-zé]+", "[^ ]+?", "f.", "-", "-foo", "foo-", "foo bar", `\bfoo\b`, "^foo", "foo$", "(?:foo|é) ?", "k",
		}).Draw(t, "source")
		text := []byte(strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"foo", "bar", " ", "é", "-", "\n", "ber", "ü", "o", "\xff", "\u0301", "_", "k", "日", "☺"}), 0, 14).Draw(t, "text"), ""))
		tree, err := syntax.Parse("(?P<word>"+source+")", syntax.Perl&^syntax.OneLine)
		if err != nil {
			t.Fatal(err)
		}
		m, err := NewMatcher(tree, true)
		if err != nil {
			t.Fatal(err)
		}
		var got [][2]int
		for start, end := range Ranges(m, text) {
			got = append(got, [2]int{start, end})
		}
		if want := naiveWords("(?m:"+source+")", text); !slices.Equal(got, want) {
			t.Fatalf("%q in %q: %v, want %v", source, text, got, want)
		}
	})
}

// TestWholeWordsEnd: a search that must stop ends soon, even if no whole word comes.
func TestWholeWordsEnd(t *testing.T) {
	m, err := NewMatcher(mustParse(t, `(?P<word>a|(?s)a.*q)`), true)
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	text := []byte(strings.Repeat("aa ", 8*lookEvery))
	for start, end := range RangesWhile(m, text, 0, func() bool { asked++; return asked < 5 }) {
		t.Errorf("found [%d, %d)", start, end)
	}
	if asked != 5 {
		t.Errorf("asked %d times", asked)
	}
}

// TestWholeWordsReadOnce: where each place of a text begins a match that is no whole word, the text is not read again from each. Each
// reading of it asks once for every lookEvery bytes.
func TestWholeWordsReadOnce(t *testing.T) {
	text := []byte(strings.Repeat("a ", 4*lookEvery) + "ifs\n")
	for _, expression := range []string{`(?P<word>.*if)`, `(?P<word>(?s).*if)`, `(?P<word>a|a.*if)`, `(?P<word>[^q]+f)`} {
		m, err := NewMatcher(mustParse(t, expression), true)
		if err != nil {
			t.Fatal(err)
		}
		asked := 0
		found := slices.Collect(maps.Keys(maps.Collect(RangesWhile(m, text, 0, func() bool { asked++; return asked < 1000 }))))
		if single := strings.Contains(expression, "a|"); asked > 100 || len(found) > 0 && !single {
			t.Errorf("%s: asked %d times, found %d", expression, asked, len(found))
		}
	}
}
