package query

import (
	"errors"
	"strings"
	"testing"
)

// TestOwnFields reads the fields that syntax version 2 adds, which are texts in version 1.
func TestOwnFields(t *testing.T) {
	const anyName = `regexp:"(?s:.+)"`
	for _, tt := range []parseTest{
		{"ref:New", `(reference case content substring:"New")`},
		{`ref:\bNew\b -ref:x`, `(and (reference case content regexp:"\\bNew\\b") (not (reference content substring:"x")))`},
		{"case:no ref:New", `(reference content substring:"New")`},
		{"sym:a sym.kind:function", `(symbol function substring:"a")`},
		{"sym.kind:method sym:a (sym:b or -sym:c ) sym.kind:type", `(and (symbol method,type substring:"a") (or (symbol method,type substring:"b") (not (symbol method,type substring:"c"))))`},
		{"sym:a (sym:b sym.kind:field ) sym.kind:type", `(and (symbol type substring:"a") (symbol field substring:"b"))`},
		{"sym.kind:macro lang:C", `(and (symbol macro ` + anyName + `) lang:"C")`},
		{"type:symbol", `(symbol ` + anyName + `)`},
		{"type:symbol a f:b c:d", `(and (symbol substring:"a") file substring:"b" content substring:"d")`},
		{"t:symbol (a or -B ) sym:c", `(and (or (symbol substring:"a") (not (symbol case substring:"B"))) (symbol substring:"c"))`},
		{"type:symbol case:yes a", `(symbol case substring:"a")`},
		{"type:symbol type:file a", `(type:filename (symbol substring:"a"))`},
		{"type:symbol sym.kind:type a or b", `(or (symbol type substring:"a") (symbol type substring:"b"))`},
		{"(type:repo a ) type:symbol b", `(and (type:repo substring:"a") (symbol substring:"b"))`},
		{"match:any a b", `(any substring:"a" substring:"b")`},
		{"a c:b match:any d -e case:no", `(and content substring:"b" (not substring:"e") (any substring:"a" substring:"d"))`},
		{"(match:any a b ) c", `(and (any substring:"a" substring:"b") substring:"c")`},
		{"(match:any a b ) or c", `(or (any substring:"a" substring:"b") substring:"c")`},
		{"match:any a (b or c )", `(and (or substring:"b" substring:"c") substring:"a")`},
		{"match:any a.b c f:d.e -g.h", `(and file regexp:"(?-s:d.e)" (not regexp:"(?-s:g.h)") (any regexp:"(?-s:a.b)" substring:"c"))`},
		{`match:any a\.b c+`, `(any substring:"a.b" regexp:"c+")`},
		{"match:any lang:Go", `lang:"Go"`},
		{"match:any a b a c+ c+", `(any substring:"a" substring:"b" regexp:"c+")`},
		{"match:any a a -b", `(and (not substring:"b") substring:"a")`},
		{"match:any Ab (?i)ab ab", `(any case substring:"Ab" substring:"ab")`},
		{"match:all a b", `(and substring:"a" substring:"b")`},
		{"(type:symbol a ) b", `(and (symbol substring:"a") substring:"b")`},
	} {
		q, err := Parse(tt.query, ParseOptions{SyntaxVersion: 2})
		if err != nil {
			t.Errorf("Parse(%q): %v, want %s", tt.query, err, tt.want)
		} else if q.String() != tt.want {
			t.Errorf("Parse(%q)\n got %s\nwant %s", tt.query, q, tt.want)
		}
	}
	checkParse(t, []parseTest{{"ref:x", `substring:"ref:x"`}, {"sym.kind:function", `regexp:"(?-s:sym.kind:function)"`}})
	if _, err := Parse("type:symbol a", ParseOptions{}); err == nil {
		t.Error("type:symbol is read in version 1")
	}
	for _, wrong := range []string{"ref:", "sym.kind:", "sym.kind:verb", "-sym.kind:type", "-type:symbol", "type:symbols", "match:", "match:some", "match:any a or b"} {
		var e *SyntaxError
		if _, err := Parse(wrong, ParseOptions{SyntaxVersion: 2}); !errors.As(err, &e) {
			t.Errorf("Parse(%q): %v, want a syntax error", wrong, err)
		}
	}
	var e *LimitError
	if _, err := Parse("(sym.kind:type ) (sym.kind:type ) a", ParseOptions{SyntaxVersion: 2, Limits: Limits{Atoms: 2}}); !errors.As(err, &e) {
		t.Errorf("names that are asked for by kind alone do not count as terms: %v", err)
	}
}

// TestFieldsThatAreNotThere: in version 2, a field that Trawl does not have is an error that says
// what to write instead.
func TestFieldsThatAreNotThere(t *testing.T) {
	for field, instead := range map[string]string{"rev:v1.2": "b:release", "near:3": `open(.*\n){0,3}.*close`} {
		_, err := Parse("open "+field+" close", ParseOptions{SyntaxVersion: 2})
		if e, ok := errors.AsType[*SyntaxError](err); !ok || e.Position != len("open ") || !strings.Contains(e.Expected, instead) {
			t.Errorf("%s: %v", field, err)
		}
		for version, text := range map[int]string{1: "open " + field, 2: `open "` + field + `"`} {
			if q, err := Parse(text, ParseOptions{SyntaxVersion: version}); err != nil {
				t.Errorf("%s in version %d: %v, %v", text, version, q, err)
			}
		}
	}
}
