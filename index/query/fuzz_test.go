package query

import (
	"errors"
	"reflect"
	"testing"
	"unicode/utf8"
)

// FuzzParse checks that Parse returns a tree that is simple and printable, or an
// error of its own types with a position in the query.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "a b or -c", `f:"a b" (x y)`, "type:repo case:yes A", `\`, `"`, "((a) ", "a[z-b]", "(?i)a{2,3}**", "meta.a:b sym:[^a]", "a\nb", "--", "\xff", `"(" ")"`, "日本 r:x|",
		"type:symbol (a or -b) sym.kind:type", "ref:a (sym:b sym.kind:field ) ref:",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := Parse(text, ParseOptions{SyntaxVersion: 1 + len(text)%2})
		if err != nil {
			checkError(t, text, err)
			return
		}
		if !utf8.ValidString(q.String()) {
			t.Errorf("%q: String is not UTF-8: %q", text, q)
		}
		if again := Simplify(q); !reflect.DeepEqual(again, q) {
			t.Errorf("%q: %s is not simple: %s", text, q, again)
		}
		Walk(q, func(n Q) bool {
			if s, ok := n.(*Substring); ok && (s.Pattern == "" || !utf8.ValidString(s.Pattern)) {
				t.Errorf("%q: the text %q of a Substring", text, s.Pattern)
			}
			return true
		})
	})
}

func checkError(t *testing.T, text string, err error) {
	t.Helper()
	var bad *SyntaxError
	var limit *LimitError
	switch {
	case errors.As(err, &bad):
		if bad.Position < 0 || bad.Position > len(text) || bad.Found == "" || bad.Expected == "" {
			t.Errorf("%q: %+v", text, bad)
		}
	case errors.As(err, &limit):
		if limit.Value <= limit.Max || limit.Limit == "" {
			t.Errorf("%q: %+v", text, limit)
		}
	default:
		t.Errorf("%q: error of type %T: %v", text, err, err)
	}
}
