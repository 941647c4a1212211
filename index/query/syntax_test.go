package query

import (
	"errors"
	"strings"
	"testing"
)

// syntaxErrors are faulty queries. Each has the position of the fault, and words that the error's
// Found and Expected must contain.
var syntaxErrors = []struct {
	query           string
	position        int
	found, expected string
}{
	// The operator or.
	{"or", 0, `"or"`, "each side"},
	{"a or", 2, "right", "a term on each side"},
	{"or a", 0, "left", `"or" in quotes`},
	{"a or or b", 5, "left", "a term"},
	{"(a or ) b", 3, "right", "a term"},
	{"type:repo or", 10, "left", "type: are none"},
	{"a or case:yes", 2, "right", "case: and type:"},
	// Negation.
	{"-", 0, "negate", `\-`},
	{"--", 1, "negate", "after it"},
	{"a - ", 2, "negate", "after it"},
	{"-or a", 0, "negate", "after it"},
	{"(a -)", 3, "negate", "after it"},
	{"-case:yes a", 0, "case:", "without the dash"},
	{"-type:repo a", 0, "type:", "cannot be negated"},
	// Parentheses.
	{"(", 1, "end of the query", `")" for the "(" at byte 0`},
	{"(a b", 4, "end of the query", "at byte 0"},
	{"x ((a b) c", 10, "end of the query", "at byte 2"},
	{")", 0, `")"`, `\)`},
	{"a)", 1, `")"`, `"(" somewhere before`},
	{"(a))", 3, `")"`, "before"},
	{"(a b))", 5, `")"`, "before"},
	{`a ")"`, 2, `")`, "before"},
	{"(foo", 0, `"("`, `closing ")"`},
	{"a (foo", 2, `"("`, `\(`},
	{"foo(bar baz)", 3, `"("`, "before the space"},
	{"f:(a b)", 2, `"("`, "in quotes"},
	{"(?:a b)", 1, `"?"`, "in quotes"},
	// Separators.
	{"a\nb", 1, "line break", `\n`},
	{"\na", 0, "line break", "space"},
	{"(a\nb c)", 2, "line break", "space"},
	{`""`, 0, "empty quotes", "text between"},
	{`a "" b`, 2, "empty quotes", "leave them out"},
	{`(a "" b)`, 3, "empty quotes", "text between"},
	// Quotes and backslashes.
	{`"abc`, 0, "never closed", `closing "`},
	{`ab "c d`, 3, "never closed", `\"`},
	{`ab "c\`, 3, "never closed", `closing "`},
	{`ab\`, 2, `\`, `\\`},
	// Values of fields.
	{"case:maybe", 5, `"maybe" after case:`, "yes, no or auto"},
	{"a case:", 7, "nothing after case:", "yes, no or auto"},
	{"archived:true", 9, `"true"`, "yes or no"},
	{"fork:maybe", 5, `"maybe"`, "yes or no"},
	{"public:1", 7, `"1"`, "yes or no"},
	{`public:"1"`, 8, `"1"`, "yes or no"},
	{"type:repos", 5, `"repos" after type:`, "filematch, filename, file or repo"},
	{"t:x", 2, "after t:", "repo"},
	{"sym:", 4, "sym:", "NewReader"},
	{`sym:""`, 6, "sym:", "symbol"},
	{"meta.team", 9, "without a colon", "meta.team:infra"},
	// Regular expressions; the position is that of the mistake.
	{"a**", 1, `"**"`, "repetition"},
	{"*a", 0, `"*"`, `\*`},
	{"foo (+a b)", 5, `"+"`, "repeat"},
	{"a[z-b]", 2, `"z-b"`, "ascend"},
	{"f:[a", 2, `"[a"`, `closing "]"`},
	{"[)]", 0, `"["`, `\)`},
	{`a\8`, 1, `"\8"`, "escape"},
	{`x\**a**`, 5, `"**"`, "repetition"},
	{`"a b\\8"`, 5, `"\8"`, "escape"},
	{"(?=a)", 0, `"(?="`, "lookaround"},
	{"(?<=a)b", 0, `"(?<=a)b"`, "lookaround"},
	{"(?<!a)b", 0, `"(?<!a)b"`, "lookaround"},
	{"(?<a-b>c)", 0, `"(?<a-b>"`, "a name of letters"},
	{"(?P<a-b>c)", 0, `"(?P<a-b>"`, "name"},
	{"r:a{3,2}", 3, `"{3,2}"`, "smaller count first"},
	{"meta.k:[b", 7, `"[b"`, `\[`},
	{`"a)"`, 2, `")"`, `\\)`},
	{`"a\\"`, 3, `\`, "quotes"},
	{`"[)(]x(("`, 7, `"("`, "closing"},
	{`"\\((a]("`, 7, `"("`, "closing"},
	{`"x\\Q(\\E("`, 9, `"("`, "closing"},
	{`[[:foo:]]`, 1, `"[:foo:]"`, "class"},
	{`日本a**`, 7, `"**"`, "repetition"},
	// The bytes of the query.
	{"a\xffb", 1, "not UTF-8", "UTF-8"},
}

func TestSyntaxErrors(t *testing.T) {
	for _, tt := range syntaxErrors {
		_, err := Parse(tt.query, ParseOptions{})
		var e *SyntaxError
		if !errors.As(err, &e) {
			t.Errorf("Parse(%q): error %v, want a *SyntaxError", tt.query, err)
			continue
		}
		if e.Position != tt.position || !strings.Contains(e.Found, tt.found) || !strings.Contains(e.Expected, tt.expected) {
			t.Errorf("Parse(%q)\n got %v\nwant byte %d, found %s, expected %s", tt.query, err, tt.position, tt.found, tt.expected)
		}
	}
}

func TestErrorMessages(t *testing.T) {
	_, err := Parse("foo case:maybe", ParseOptions{})
	want := `query syntax error at byte 9: found "maybe" after case:; expected yes, no or auto`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = Parse("a{1001}", ParseOptions{})
	want = "query passes the limit on its regexp repetitions: 1001, at most 1000; lower the {n,m} counts of the regular expression, or use * or +"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestLongTextInMessages checks that a message does not repeat a long query in full.
func TestLongTextInMessages(t *testing.T) {
	_, err := Parse("type:"+strings.Repeat("日", 1000), ParseOptions{})
	if err == nil || len(err.Error()) > 300 || !strings.Contains(err.Error(), "…") {
		t.Errorf("got %v", err)
	}
}

// TestErrorPositionIsCheap checks that finding the place of a mistake does not take a parse for
// each possible place.
func TestErrorPositionIsCheap(t *testing.T) {
	text := strings.Repeat("ab*", 5000) + "*"
	_, err := Parse(text, ParseOptions{})
	var e *SyntaxError
	if !errors.As(err, &e) || e.Position != len(text)-2 {
		t.Errorf("got %v, want byte %d", err, len(text)-2)
	}
}
