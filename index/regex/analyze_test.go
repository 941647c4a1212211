package regex

import (
	"fmt"
	"regexp/syntax"
	"strings"
	"testing"
	"time"
)

// flags are those of the query language.
const flags = syntax.ClassNL | syntax.PerlX | syntax.UnicodeGroups

func mustParse(t *testing.T, pattern string) *syntax.Regexp {
	t.Helper()
	tree, err := syntax.Parse(pattern, flags)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// TestPlans checks the needs of patterns, which must be good and not only
// correct.
func TestPlans(t *testing.T) {
	tests := []struct{ pattern, want string }{
		{`foo`, `"foo"`},
		{`fo`, `all`},
		{`fo日`, `"fo日"`},
		{`[ab]foo`, `("afoo" | "bfoo")`},
		{`foo.*bar`, `("foo" & "bar")`},
		{`(?i)copyright.*intel`, `("copyright"i & "intel"i)`},
		{`\bdma_map_(single|page)\b`, `("dma_map_page" | "dma_map_single")`},
		{`[A-Z]+_SUSPEND`, `"_SUSPEND"`},
		// If words are hardly rarer than their common text, that is looked up.
		{`static\s+int\s+\w+_probe\(`, `("static" & ("\tint" | "\nint" | "\fint" | "\rint" | " int") & ("int\t" | "int\n" | "int\f" | "int\r" | "int ") & "_probe(")`},
		{`static\s`, `"static"`},
		{`\sif\s`, `(("\tif" | "\nif" | "\fif" | "\rif" | " if") & ("if\t" | "if\n" | "if\f" | "if\r" | "if "))`},
		{`func \(\w+ \*?Shard\) Search`, `("func (" & (" *Shard) Search" | " Shard) Search"))`},
		{`^import "(\w+)"$`, `"import \""`},
		{`a(b|c)d+e`, `("abd" | "acd")`},
		{`(foo|ba)r`, `("bar" | "foor")`},
		{`(foo|x)`, `all`},
		{`(foo|x)bar`, `("foobar" | "xbar")`},
		{`(one|two|three).*(four|five)`, `(("one" | "three" | "two") & ("five" | "four"))`},
		{`foo|foobar`, `"foo"`},
		{`(foo.*|foobar)x`, `"foo"`},
		{`foo.*foobar`, `"foobar"`},
		{`colou?r`, `("color" | "colour")`},
		{`colou?`, `"colo"`},
		{`x{3}`, `"xxx"`},
		{`(abc){2,}`, `"abcabc"`},
		{`(abc){2,3}d`, `"abcabc"`},
		{`(abc)+d`, `"abcd"`},
		{`a(abc)+`, `"aabc"`},
		{`(abc)*d`, `all`},
		{`x(abc){0,1}yz`, `("xabcyz" | "xyz")`},
		{`x(abc){0}yz`, `"xyz"`},
		{`(abc){100}`, `"` + strings.Repeat("abc", 8) + `"`},
		{`[0-9a-f]{8}`, `all`},
		{`0x[0-9a-f]{8}`, `("0x0" | "0x1" | "0x2" | "0x3" | "0x4" | "0x5" | "0x6" | "0x7" | "0x8" | "0x9" | "0xa" | "0xb" | "0xc" | "0xd" | "0xe" | "0xf")`},
		{`\d+\.\d+`, `all`},
		{`.*`, `all`}, {``, `all`}, {`^$`, `all`}, {`\w+`, `all`}, {`[^a]bc`, `all`},
		{`[^\x00-\x{10FFFF}]`, `none`}, {`foo[^\x00-\x{10FFFF}]`, `none`}, {`foo|[^\x00-\x{10FFFF}]`, `"foo"`}, {`([^\x00-\x{10FFFF}])*foo`, `"foo"`},
		{`\bfoo\b`, `"foo"`}, {`\Afoo\z`, `"foo"`}, {`(?m:^)foo$`, `"foo"`},
		{`foo\nbar`, `"foo\nbar"`},
		// Joined parts have a case only if all of them have it.
		{`Foo(?i:bar)`, `"foobar"i`},
		{`Foo.(?i:bar)`, `("Foo" & "bar"i)`},
		{`(?i:f)oo1`, `"foo1"i`},
		{`[Ff]oo`, `"foo"i`},
		{`(?i)123`, `"123"`},
		{`(?i)ſtraßeK`, `"straßek"i`},
		// The Kelvin sign is one byte once folded, so that this is too short.
		{"\u212Ak", `all`},
		// U+FFFD also stands for invalid UTF-8.
		{`abc\x{FFFD}def`, `("abc" & "def")`},
		{`ab\x{FFFD}`, `all`},
		{`abc\x{D800}def`, `("abc" & "def")`},
		{`[x\x{FFFD}]foo`, `"foo"`},
	}
	for _, tt := range tests {
		needs, err := Analyze(mustParse(t, tt.pattern), true)
		if err != nil || fmt.Sprint(needs) != tt.want {
			t.Errorf("Analyze(%s)\n got %v, %v\nwant %s", tt.pattern, needs, err, tt.want)
		}
	}
}

func TestPlansWithoutCase(t *testing.T) {
	for pattern, want := range map[string]string{
		`Foo`:        `"foo"i`,
		`[ab]Foo`:    `("afoo"i | "bfoo"i)`,
		`[a-cA-C]xy`: `("axy"i | "bxy"i | "cxy"i)`,
		`日本語`:        `"日本語"`,
		`ÉCOLE`:      `"École"i`, // É comes before é
	} {
		needs, err := Analyze(mustParse(t, pattern), false)
		if err != nil || fmt.Sprint(needs) != want {
			t.Errorf("Analyze(%s) = %v, %v, want %s", pattern, needs, err, want)
		}
	}
}

func TestAnalyzeRefusesWhatIsNoTree(t *testing.T) {
	bad := &syntax.Regexp{Op: syntax.OpConcat, Sub: []*syntax.Regexp{{Op: 77}}}
	if needs, err := Analyze(bad, true); err == nil {
		t.Errorf("got %v, want an error", needs)
	}
}

// TestAnalyzeIsBounded checks patterns that could make sets or needs explode.
func TestAnalyzeIsBounded(t *testing.T) {
	for _, pattern := range []string{
		strings.Repeat("[abc]", 1000),
		strings.Repeat("(a|bb|ccc)", 1000),
		strings.Repeat("foo.*", 3000),
		strings.Repeat("x?", 3000),
		strings.Repeat("foo[ab]+", 2000),
		strings.Repeat("(", 150) + "foo" + strings.Repeat("|bar)+", 150),
		"(" + strings.Repeat("abc|x[de]f.*|", 1200) + "end)",
		"(" + strings.Repeat("[a-f]", 10) + "){100}",
		strings.Repeat("long", 4000) + "[abcd]+" + strings.Repeat("er", 10),
		"((((x{10}){10}){10})y)+",
	} {
		start := time.Now()
		needs, err := Analyze(mustParse(t, pattern), false)
		if err != nil {
			t.Fatalf("%.30s: %v", pattern, err)
		}
		if n := len(fmt.Sprint(needs)); n > 4*len(pattern)+4096 {
			t.Errorf("%.30s: needs of %d bytes for a pattern of %d", pattern, n, len(pattern))
		}
		t.Logf("%.30s: %v", pattern, time.Since(start))
	}
}
