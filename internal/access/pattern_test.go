package access

import (
	"strings"
	"testing"
)

func TestDenyWins(t *testing.T) {
	p := patterns{allow: []string{"h/org/*"}, deny: []string{"h/org/secret*"}}
	for name, want := range map[string]bool{
		"h/org/open": true, "h/org/secret": false, "h/org/secret2": false, "h/org/a/b": false, "h/other": false, "": false,
	} {
		if got := p.match(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
	if (patterns{}).match("x") || !(patterns{allow: []string{"**"}}).all() || (patterns{allow: []string{"**"}, deny: []string{"x"}}).all() {
		t.Error("no pattern allows nothing, ** everything, and all of it is not all")
	}
}

func TestSpecsThatCannotBe(t *testing.T) {
	good := Spec{Name: "x", Allow: []string{"**"}, Scopes: []Scope{ScopeSearch}}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(*Spec){
		"no scope":         func(s *Spec) { s.Scopes = nil },
		"unknown scope":    func(s *Spec) { s.Scopes = []Scope{"root"} },
		"nothing allowed":  func(s *Spec) { s.Allow = nil },
		"empty pattern":    func(s *Spec) { s.Deny = []string{""} },
		"too many stars":   func(s *Spec) { s.Allow = []string{"a***"} },
		"a long pattern":   func(s *Spec) { s.Allow = []string{strings.Repeat("a", 1025)} },
		"many patterns":    func(s *Spec) { s.Deny = make([]string, 257) },
		"a past lifetime":  func(s *Spec) { s.Lifetime = -1 },
		"a very long name": func(s *Spec) { s.Name = strings.Repeat("n", 257) },
	} {
		s := good
		change(&s)
		if s.Check() == nil {
			t.Errorf("%s was taken", what)
		}
	}
}
