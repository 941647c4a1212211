package ngram

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// matches returns where package regexp finds literal in text.
func matches(text []byte, literal string, caseSensitive bool) (starts []int) {
	expression := regexp.QuoteMeta(literal)
	if !caseSensitive {
		expression = "(?i)" + expression
	}
	for _, span := range regexp.MustCompile(expression).FindAllIndex(text, -1) {
		starts = append(starts, span[0])
	}
	return starts
}

// checkNecessary fails if a match of literal lacks one of its windows.
func checkNecessary(t interface{ Fatalf(string, ...any) }, text []byte, literal string, caseSensitive bool) (found int) {
	starts := matches(text, literal, caseSensitive)
	windows := LiteralWindows(literal, caseSensitive)
	at := map[ID][]int{}
	for _, p := range places(text) {
		at[p.id] = append(at[p.id], p.offset)
	}
	for _, start := range starts {
		for _, w := range windows {
			near := func(offset int) bool { return start+w.MinOffset <= offset && offset <= start+w.MaxOffset }
			if !slices.ContainsFunc(at[w.ID], near) {
				t.Fatalf("match of %q at %d has no window %+v", literal, start, w)
			}
		}
	}
	return len(starts)
}

// flip replaces each rune of literal by a random case variant.
func flip(t *rapid.T, literal string) string {
	var b strings.Builder
	for _, r := range literal {
		variants := []rune{}
		Orbit(r, func(s rune) { variants = append(variants, s) })
		b.WriteRune(rapid.SampledFrom(variants).Draw(t, "variant"))
	}
	return b.String()
}

func drawLiteral(t *rapid.T) string {
	literal := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 20).Draw(t, "literal"), "")
	literal = strings.Repeat(literal, rapid.SampledFrom([]int{1, 1, 1, 7, 60}).Draw(t, "times"))
	return strings.ToValidUTF8(literal, "\uFFFD")
}

func TestWindowsAreNecessary(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		literal := drawLiteral(t)
		text := slices.Concat(drawText(t), []byte(literal), drawText(t), []byte(flip(t, literal)), drawText(t))
		if n := checkNecessary(t, text, literal, true); n == 0 {
			t.Fatalf("%q is not found", literal)
		}
		found += checkNecessary(t, text, literal, false)
	})
	if found == 0 {
		t.Error("no match was checked")
	}
}

// A literal with U+FFFD also matches invalid bytes.
func TestReplacementMatchesInvalidBytes(t *testing.T) {
	for _, text := range []string{"abc\xffdef", "abc\uFFFDdef", "abc\xe2\x84def"} {
		literal := "abc\uFFFDdef"
		if strings.Contains(text, "\x84") {
			literal = "abc\uFFFD\uFFFDdef"
		}
		if n := checkNecessary(t, []byte(text), literal, false); n != 1 {
			t.Errorf("%d matches in %q", n, text)
		}
		if n := checkNecessary(t, []byte(text), literal, true); n != 1 {
			t.Errorf("%d matches in %q with case", n, text)
		}
	}
}

// A literal of invalid bytes may match inside a rune.
func TestInvalidLiteralInsideRunes(t *testing.T) {
	text := []byte("x\u212Aabc\u212Ay")
	windows := LiteralWindows("\x84\xAAabc\xE2\x84", true)
	want := []Window{{ID: modelID("abc"), MinOffset: 2, MaxOffset: 6, OfWords: true}}
	if !slices.Equal(windows, want) {
		t.Errorf("windows %v, want %v", windows, want)
	}
	if !slices.Contains(places(text), place{windows[0].ID, 4}) {
		t.Error("the text lacks the window")
	}
}

func TestLiteralWindows(t *testing.T) {
	id := modelID
	title, _ := titleWindow("Kab")
	tests := []struct {
		literal       string
		caseSensitive bool
		want          []Window
	}{
		{"", false, nil},
		{"ab", true, nil},
		{"ab\uFFFDcd", false, nil},
		{"\u212Ab", false, nil},
		{"abcd", true, []Window{{id("abc"), 0, 0, true}, {id("bcd"), 1, 1, true}}},
		{"Kab", false, []Window{{id("kab"), 0, 0, true}}},
		{"Kab", true, []Window{{id("kab"), 0, 0, true}, {title, 0, 0, true}}},
		{"\u212Aabc", true, []Window{{id("kab"), 0, 0, true}, {id("abc"), 3, 3, true}}},
		{"kabc", false, []Window{{id("kab"), 0, 0, true}, {id("abc"), 1, 3, true}}},
		{"中a文b", false, []Window{{id("中a文"), 0, 0, false}, {id("a文b"), 3, 3, false}}},
	}
	for _, test := range tests {
		if got := LiteralWindows(test.literal, test.caseSensitive); !slices.Equal(got, test.want) {
			t.Errorf("LiteralWindows(%q, %v) = %v, want %v", test.literal, test.caseSensitive, got, test.want)
		}
	}
}

// The windows of a literal are those that are not part of a longer one.
func TestLiteralWindowsOfRunes(t *testing.T) {
	for literal, want := range map[string][]string{
		"": nil, "a": nil, "ab": nil, "é": {"é"}, "né": {"é"}, "мы": {"мы"}, "中": {"中"}, "中文": {"中文"}, "\xff中\xfe": {"中"},
		"größe": {"grö", "röß", "öße"}, "GRÖSSE": {"grÖ", "rÖs", "Öss", "sse"}, "日本語": {"日本", "本語"}, "日本a": {"日本"}, "日本é": {"日本", "本é"}, "a日本": {"a日本"},
		"日本ab": {"日本", "本ab"}, "é日本": {"é日本"}, "中é": {"中é"}, "日本\uFFFDaé\uFFFDx": {"日本", "é"}, "ab\uFFFD語": {"語"},
	} {
		var ids []ID
		for _, w := range LiteralWindows(literal, false) {
			ids = append(ids, w.ID)
		}
		var wanted []ID
		for _, window := range want {
			wanted = append(wanted, modelID(strings.Map(modelFold, window)))
		}
		if !slices.Equal(ids, wanted) {
			t.Errorf("windows of %q are %v, want %v, of %q", literal, ids, wanted, want)
		}
	}
}

func TestLiteralWindowsStayInTheSpan(t *testing.T) {
	for _, literal := range []string{strings.Repeat("k", 2000), strings.Repeat("xy", 2000), strings.Repeat("Ⱥ中", 700)} {
		for _, caseSensitive := range []bool{false, true} {
			windows := LiteralWindows(literal, caseSensitive)
			last := windows[len(windows)-1]
			if last.MaxOffset > MaxSpan || last.MaxOffset < MaxSpan-utf8.UTFMax {
				t.Errorf("last window of %.9q… at %d", literal, last.MaxOffset)
			}
		}
	}
}
