package query

import (
	"errors"
	"reflect"
	"regexp/syntax"
	"strings"
	"testing"
)

// linguist is an alias table that is large enough for the tests.
func linguist(name string) string {
	return map[string]string{"Go": "Go", "go": "Go", "golang": "Go", "C++": "C++", "cpp": "C++", "Wolfram Language": "Mathematica"}[name]
}

func parse(t *testing.T, text string) Q {
	t.Helper()
	q, err := Parse(text, ParseOptions{Language: linguist})
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return q
}

type parseTest struct{ query, want string }

func checkParse(t *testing.T, tests []parseTest) {
	t.Helper()
	for _, tt := range tests {
		q, err := Parse(tt.query, ParseOptions{Language: linguist})
		if err != nil {
			t.Errorf("Parse(%q): %v, want %s", tt.query, err, tt.want)
		} else if q.String() != tt.want {
			t.Errorf("Parse(%q)\n got %s\nwant %s", tt.query, q, tt.want)
		}
	}
}

func TestTerms(t *testing.T) {
	checkParse(t, []parseTest{
		{"", "all"},
		{"   ", "all"},
		{"\t", "all"},
		{"mutex", `substring:"mutex"`},
		{"  mutex\t", `substring:"mutex"`},
		{"mutex lock", `(and substring:"mutex" substring:"lock")`},
		{"mutex\tlock", `(and substring:"mutex" substring:"lock")`},
		{"mutex or lock", `(or substring:"mutex" substring:"lock")`},
		// And binds tighter than or.
		{"a b or c d", `(or (and substring:"a" substring:"b") (and substring:"c" substring:"d"))`},
		{"a or b or c", `(or substring:"a" substring:"b" substring:"c")`},
		// Only the word "or", in this spelling and on its own, is the operator.
		{"a and b", `(and substring:"a" substring:"and" substring:"b")`},
		{"a OR b", `(and substring:"a" case substring:"OR" substring:"b")`},
		{"a AND b", `(and substring:"a" case substring:"AND" substring:"b")`},
		{"a Or b", `(and substring:"a" case substring:"Or" substring:"b")`},
		{`a "or" b`, `(and substring:"a" substring:"or" substring:"b")`},
		{`a o"r" b`, `(and substring:"a" substring:"or" substring:"b")`},
		{"oracle", `substring:"oracle"`},
		{"for", `substring:"for"`},
		{"c:or", `content substring:"or"`},
	})
}

func TestNegation(t *testing.T) {
	checkParse(t, []parseTest{
		{"-a", `(not substring:"a")`},
		{"a -b", `(and substring:"a" (not substring:"b"))`},
		{"- a", `(not substring:"a")`},
		{"-(a b)", `(not (and substring:"a" substring:"b"))`},
		{"-(a)(b)", `(not substring:"ab")`},
		{"-f:a", `(not file substring:"a")`},
		// A dash negates only at the start of a token.
		{"a-b", `substring:"a-b"`},
		{"a--", `substring:"a--"`},
		{`\-a`, `substring:"-a"`},
		{`"-a"`, `substring:"-a"`},
		{"c:-a", `content substring:"-a"`},
		// Two dashes negate twice; a bare -- is an error (see TestSyntaxErrors).
		{"--a", `(not (not substring:"a"))`},
		{`-f:""`, "none"},
	})
}

func TestQuotes(t *testing.T) {
	checkParse(t, []parseTest{
		{`"a b"`, `substring:"a b"`},
		{`a" "b`, `substring:"a b"`},
		{`"file:x"`, `substring:"file:x"`},
		{`fi"le:x"`, `substring:"file:x"`},
		{`file:"x y"`, `file substring:"x y"`},
		// Quotes do not disable regular expressions.
		{`"a.*b"`, `regexp:"(?-s:a.*b)"`},
		{`"(a)b"`, `substring:"ab"`},
		// A backslash is removed inside of quotes, and belongs to the expression outside.
		{`"a\"b"`, `substring:"a\"b"`},
		{`"a\.b"`, `regexp:"(?-s:a.b)"`},
		{`"a\\.b"`, `substring:"a.b"`},
		{`a\.b`, `substring:"a.b"`},
		{`a\"b`, `substring:"a\"b"`},
		{`a\ b`, `substring:"a b"`},
		{"\"a\nb\"", `substring:"a\nb"`},
		{`a\nb`, `substring:"a\nb"`},
		{`""a`, `substring:"a"`},
		{`f:""`, "all"},
		// zoekt looks for parentheses in the text of a token, without regard to its quotes.
		{`"(" a ")"`, `substring:"a"`},
	})
}

func TestGroups(t *testing.T) {
	checkParse(t, []parseTest{
		{"(a)", `substring:"a"`},
		{"( a )", `substring:"a"`},
		{"( )", "all"},
		{"()", "all"},
		// With a space it is a group, and without one a regular expression.
		{"(abc def)", `(and substring:"abc" substring:"def")`},
		{"(abc)(de)", `substring:"abcde"`},
		{`(abc\ def)`, `substring:"abc def"`},
		{`(abc" "def)`, `substring:"abc def"`},
		{`(ab|cd)e`, `regexp:"(?:ab|cd)e"`},
		{"(a|b )", `regexp:"[ab]"`},
		{"((a) b(c(d)))", `(and substring:"a" substring:"bcd")`},
		{"(a or b) c", `(and (or substring:"a" substring:"b") substring:"c")`},
		{"(a b or c d)", `(or (and substring:"a" substring:"b") (and substring:"c" substring:"d"))`},
		// A field is recognized only at the start of a token.
		{"(f:a)", `substring:"f:a"`},
		{"(f:a )", `file substring:"a"`},
		{"(f:a b)", `(and file substring:"a" substring:"b")`},
		// Within a token parentheses belong to it as long as they balance.
		{"(a fo(o))", `(and substring:"a" substring:"foo")`},
		{`(a \))`, `(and substring:"a" substring:")")`},
		{"([(] a)", `(and substring:"(" substring:"a")`},
		{"( a)or b", `(or substring:"a" substring:"b")`},
	})
}

func TestFields(t *testing.T) {
	checkParse(t, []parseTest{
		{"r:go", `repo:"go"`}, {"repo:go", `repo:"go"`}, {"repo:^Go.*$", `repo:"(?-ms:\\AGo.*$)"`},
		{"f:a", `file substring:"a"`}, {"file:a", `file substring:"a"`}, {`file:\.go$`, `file regexp:"(?m:\\.go$)"`},
		{"c:a", `content substring:"a"`}, {"content:a", `content substring:"a"`},
		{"regex:a", `substring:"a"`}, {"regex:a.b", `regexp:"(?-s:a.b)"`}, {"regex:f:a", `substring:"f:a"`},
		{"b:main", `branch:"main"`}, {"branch:HEAD", `branch:"HEAD"`}, {"b:re.*", `branch:"re.*"`}, {"b:", "all"},
		{"lang:go", `lang:"Go"`}, {"lang:golang", `lang:"Go"`}, {"lang:cpp", `lang:"C++"`},
		{`lang:"Wolfram Language"`, `lang:"Mathematica"`}, {"lang:klingon", "none"}, {"lang:", "none"},
		{"sym:New", `(symbol case substring:"New")`}, {"sym:a(b|d)e", `(symbol regexp:"a[bd]e")`}, {"sym:.*", `(symbol regexp:"(?-s:.*)")`},
		{"archived:yes", "archived:yes"}, {"archived:no", "archived:no"}, {"fork:yes", "fork:yes"},
		{"fork:no", "fork:no"}, {"public:yes", "public:yes"}, {"public:no", "public:no"},
		{"meta.team:infra", `meta."team":"infra"`}, {"meta.a:b:c", `meta."a":"b:c"`}, {"meta.:x", `meta."":"x"`},
		{`meta.team:"a b"`, `meta."team":"a b"`}, {"meta.team:", `meta."team":"(?:)"`},
		// A prefix that is not a field is text. So is a field in the middle of a token or in
		// another case.
		{"path:x", `substring:"path:x"`}, {"xr:go", `substring:"xr:go"`}, {"F:a", `case substring:"F:a"`},
		{"http://x", `substring:"http://x"`}, {"abccase:yes", `substring:"abccase:yes"`}, {"reg:x", `substring:"reg:x"`},
		{`f\:a`, `substring:"f:a"`}, {"meta:x", `substring:"meta:x"`},
		{"f:", "all"}, {"c:", "all"}, {"r:", "all"},
		// Values may be quoted.
		{`case:"yes" a`, `case substring:"a"`}, {`archived:"yes"`, "archived:yes"},
	})
}

func TestCase(t *testing.T) {
	checkParse(t, []parseTest{
		{"abc case:yes", `case substring:"abc"`},
		{"case:yes abc", `case substring:"abc"`},
		{"ABC case:no", `substring:"ABC"`},
		{"ABC case:auto", `case substring:"ABC"`},
		{"abc case:auto", `substring:"abc"`},
		{"a case:yes case:no", `substring:"a"`},
		// case: applies to its whole list, including or, and to the groups in it.
		{"a or b case:yes", `(or case substring:"a" case substring:"b")`},
		{"case:yes a or (b -c) or f:d", `(or case substring:"a" (and case substring:"b" (not case substring:"c")) case file substring:"d")`},
		{"(a case:yes) b", `(and case substring:"a" substring:"b")`},
		{"case:yes (a case:no) b", `(and substring:"a" case substring:"b")`},
		{"case:yes (a (case:auto b)) c", `(and case substring:"a" substring:"b" case substring:"c")`},
		{"case:yes (A case:auto) b", `(and case substring:"A" case substring:"b")`},
		{"case:no -(A B)", `(not (and substring:"A" substring:"B"))`},
		{"sym:a case:yes", `(symbol case substring:"a")`},
		{"case:yes r:a b:b", `(and repo:"a" branch:"b")`},
		// auto looks for ASCII capitals, in literals and at the ends of classes.
		{"É", `substring:"É"`},
		{`foo\w+`, `case regexp:"foo[0-9A-Z_a-z]+"`},
		{`foo\S+`, `regexp:"foo[^\\t\\n\\f\\r ]+"`},
		{"[^a]x", `regexp:"[^a]x"`},
		{"[^[]x", `case regexp:"[^\\[]x"`},
		{"[a-z]x", `regexp:"[a-z]x"`},
		{"a.B", `case regexp:"(?-s:a.B)"`},
	})
	// A case flag in the pattern decides for its part, whatever case: says.
	checkParse(t, []parseTest{
		{"(?i)Foo", `substring:"foo"`},
		{"(?i)foo case:yes", `substring:"foo"`},
		{"(?i)foo.b case:yes", `case regexp:"(?i-s:FOO.B)"`},
		{"(?i)foo.b", `regexp:"(?i-s:FOO.B)"`},
		{"(?i:foo)bar", `regexp:"(?i:FOO)bar"`},
		{"bar(?i:Foo)", `regexp:"bar(?i:FOO)"`},
		{"(?i:foo)Bar", `case regexp:"(?i:FOO)Bar"`},
		{"(?i:[a-c])x", `regexp:"[A-Ca-c]x"`},
		{"(?i:[a-c])X", `case regexp:"[A-Ca-c]X"`},
		{"(?i)123 case:yes", `substring:"123"`},
	})
	if !parse(t, `\pLx`).(*Regexp).CaseSensitive {
		t.Error(`\pL has a range that begins with A`)
	}
}

func TestType(t *testing.T) {
	checkParse(t, []parseTest{
		{"type:repo a", `(type:repo substring:"a")`},
		{"t:repo a", `(type:repo substring:"a")`},
		{"a type:file b", `(type:filename (and substring:"a" substring:"b"))`},
		{"type:filename a", `(type:filename substring:"a")`},
		{"type:filematch a", `(type:filematch substring:"a")`},
		// type: applies to the whole list, including or.
		{"type:repo a or b", `(type:repo (or substring:"a" substring:"b"))`},
		{"(type:repo a) b", `(and (type:repo substring:"a") substring:"b")`},
		{"(type:repo a) or b", `(or (type:repo substring:"a") substring:"b")`},
		{"-(type:repo a )", `(not (type:repo substring:"a"))`},
		// Of several, the first in the order filematch, filename, repo counts.
		{"type:repo type:file a", `(type:filename substring:"a")`},
		{"type:filematch type:repo a", `(type:filematch substring:"a")`},
		{"type:repo", "all"},
		{"type:repo lang:klingon", "none"},
		{"type:repo (a case:yes) case:no B", `(type:repo (and case substring:"a" substring:"B"))`},
	})
}

func TestRegexps(t *testing.T) {
	checkParse(t, []parseTest{
		{`\bword\b`, `regexp:"\\bword\\b"`},
		{"^a$", `regexp:"(?m:^a$)"`},
		{"a.c", `regexp:"(?-s:a.c)"`},
		{"(?s)a.c", `regexp:"(?s:a.c)"`},
		{"[^a]", `regexp:"[^a]"`},
		{`\(a\)`, `substring:"(a)"`},
		{`a\.\*b`, `substring:"a.*b"`},
		{"(?P<n>a)(?:b)", `substring:"ab"`},
		{"(a*)*", `regexp:"(?:a*)*"`},
		{"(a|b)+c", `regexp:"[ab]+c"`},
		// U+FFFD also stands for invalid UTF-8, so it is not a literal.
		{`a\x{FFFD}`, `regexp:"a�"`},
		{`\x{D800}`, `regexp:"\\x{d800}"`},
		{"日本", `substring:"日本"`},
		{"x{1000}", `regexp:"x{1000}"`},
	})
	// An unquoted parenthesis counts within \Q...\E too: the token does not end there.
	if got := parse(t, `"\\Qa(b\\E"`).String(); got != `substring:"a(b"` {
		t.Errorf("got %s", got)
	}
}

// TestFlags checks that ^ and $ are per line, that the dot excludes the newline, and that classes
// cross lines.
func TestFlags(t *testing.T) {
	want, err := syntax.Parse(`^a.[^x]$`, Flags)
	if err != nil {
		t.Fatal(err)
	}
	if got := parse(t, `^a.[^x]$`).(*Regexp).Tree; !got.Equal(want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if ops := want.Sub; ops[0].Op != syntax.OpBeginLine || ops[2].Op != syntax.OpAnyCharNotNL || ops[3].Rune[0] != 0 || ops[4].Op != syntax.OpEndLine {
		t.Errorf("Flags differ from the language: %s", want)
	}
}

func TestLimits(t *testing.T) {
	limits := Limits{Bytes: 60, Depth: 3, Atoms: 3, Program: 70, Repetition: 20}
	tests := []struct {
		query, limit string
		value, most  int
	}{
		{strings.Repeat("a", 61), LimitBytes, 61, 60},
		{"( ( ( (a b) ) ) )", LimitDepth, 4, 3},
		{"----a", LimitDepth, 4, 3},
		{"a b c d", LimitAtoms, 4, 3},
		{"(((ab){2}){3}){4}", LimitRepetition, 24, 20},
		{"a{21}", LimitRepetition, 21, 20},
		{"(a{2}){21,}", LimitRepetition, 42, 20},
		{"a{1001}", LimitRepetition, 1001, 20},
		{"a{5000}", LimitRepetition, 5000, 20},
		{"(abcdefgh){20}", LimitProgram, 160, 70},
	}
	for _, tt := range tests {
		_, err := Parse(tt.query, ParseOptions{Limits: limits})
		var limit *LimitError
		if !errors.As(err, &limit) || limit.Limit != tt.limit || limit.Max != tt.most || limit.Value < tt.value {
			t.Errorf("Parse(%q): %v, want %s %d of %d", tt.query, err, tt.limit, tt.value, tt.most)
		}
	}
	for _, fine := range []string{strings.Repeat("a", 60), "( ( (a b) ) )", "---a", "a b -c", "a{20}", "(ab){10}", "(a{2}){10}"} {
		if _, err := Parse(fine, ParseOptions{Limits: limits}); err != nil {
			t.Errorf("Parse(%q): %v", fine, err)
		}
	}
}

func TestDefaultLimits(t *testing.T) {
	for query, limit := range map[string]string{
		strings.Repeat("a", 16<<10+1):                          LimitBytes,
		strings.Repeat("( ", 101) + "a":                        LimitDepth,
		strings.Repeat("a ", 1001):                             LimitAtoms,
		"(abcdefghijklmnopqrstuvwxyz){1000}":                   LimitProgram,
		"a{1001}":                                              LimitRepetition,
		strings.Repeat("(a", 1001) + strings.Repeat(")", 1001): LimitDepth,
	} {
		var e *LimitError
		if _, err := Parse(query, ParseOptions{}); !errors.As(err, &e) {
			t.Errorf("%.20s…: %v, want the limit %s", query, err, limit)
		} else if e.Limit != limit {
			t.Errorf("%.20s…: limit %s, want %s", query, e.Limit, limit)
		} else if !strings.Contains(e.Error(), e.Advice()) || e.Advice() == "simplify the query" {
			t.Errorf("%s: no advice of its own: %v", limit, e)
		}
	}
}

func TestSyntaxVersion(t *testing.T) {
	for version, ok := range map[int]bool{0: true, 1: true, 2: true, 3: false, -1: false} {
		_, err := Parse("a", ParseOptions{SyntaxVersion: version})
		var e *LimitError
		if ok != (err == nil) || !ok && (!errors.As(err, &e) || e.Limit != LimitVersion) {
			t.Errorf("version %d: %v", version, err)
		}
	}
}

func TestIdentityLanguage(t *testing.T) {
	q, err := Parse("lang:Foo", ParseOptions{})
	if want := (&Language{Name: "Foo"}); err != nil || !reflect.DeepEqual(q, Q(want)) {
		t.Errorf("got %v, %v", q, err)
	}
}
