package query

import "testing"

func TestShape(t *testing.T) {
	for _, tt := range []struct {
		queries []string
		shape   string
	}{
		{[]string{`foo{1,998}`, `fop{1,997}`, `(f|g)o{1,600} x y z`, `[a-f]{1,998} lang:go`, `(ho{1,900})`}, "2^11 text {2^10} runes"},
		{[]string{`r:(a.b){998}`, `r:(c.d){901}`, `r:(\w\d\w){900} word f:name`}, "2^13 repo {2^10} runes"},
		{[]string{`((ab){30}){30}`, `((xy){31}c?){28}`}, "2^11 text {2^5} {2^5} runes"},
		{[]string{`word`, `foo.*bar`, `r:a f:b c`, ``, `\w+\s*\(`}, ""},
	} {
		for _, text := range tt.queries {
			q, err := Parse(text, ParseOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := Shape(q); got != tt.shape {
				t.Errorf("%s has the shape %q, want %q", text, got, tt.shape)
			}
		}
	}
}
