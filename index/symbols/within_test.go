package symbols_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/symbols"
)

// TestWithin finds the definitions that contain places: each IN is followed by the innermost
// one.
func TestWithin(t *testing.T) {
	texts := map[string]string{
		"Go": `package p // IN_
type T struct {
	a int // IN_T
}
// IN_
func (t *T) Close() error { // IN_Close
	f := func() { IN_Close() }
}
func Open() { { if x { y() } } IN_Open }
var IN_ = 1
type I interface { Do(); IN_I }
`,
		"C": `struct s { int a; /* IN_s */ };
static int f(int a) { if (a) { return IN_f; } }
int IN_;
#define M(x) IN_
`,
		"C++": `namespace n { IN_n; class C { int m() { IN_m; } /* IN_C */ }; }
int C::k() { IN_k }
int IN_;
`,
		"Java": `class A { int f() { if (x) { } IN_f; } /* IN_A */ class B { IN_B } }
`,
		"Python": `class A:
    def f(self):
        IN_f
    x = IN_A
def g():
  pass
IN_
def h():
  return IN_h
`,
		"Ruby": `class A
  def f
    IN_f
  end
  IN_A
end
IN_
`,
		"Rust": `impl A { fn f() { IN_f } } mod m { struct S { a: IN_S } fn g() { IN_g } IN_m } IN_
`,
		"JavaScript": `class A { m() { IN_m } } function f() { if (a) { IN_f } } IN_
`,
	}
	for language, text := range texts {
		source := []byte(text)
		found := symbols.For(language).Append(nil, source)
		within := symbols.NewWithin(found)
		for at := 0; ; {
			i := bytes.Index(source[at:], []byte("IN_"))
			if i < 0 {
				break
			}
			at += i
			want := source[at+len("IN_"):]
			want = want[:bytes.IndexFunc(want, func(r rune) bool { return !isWord(byte(r)) })]
			got := ""
			if i := within.At(uint32(at)); i >= 0 {
				got = string(source[found[i].Start:found[i].End])
			}
			if got != string(want) && got != "IN_" {
				t.Errorf("%s, line %d: in %q, should be in %q", language, 1+strings.Count(text[:at], "\n"), got, want)
			}
			at += len("IN_")
		}
	}
}
