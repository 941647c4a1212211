package access

import (
	"slices"
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

// TestDeniedReposHaveNoOtherSpelling: Git hosts ignore letter case, and a repository is
// often served at several ports. Allowing stays exact.
func TestDeniedReposHaveNoOtherSpelling(t *testing.T) {
	p := patterns{allow: []string{"**"}, deny: []string{"h/Org/secret", "h:8443/org/hidden", "[2001:db8::1]:1/x", "h/top/**"}}
	for name, want := range map[string]bool{
		"h/Org/secret": false, "h/org/SECRET": false, "h:22/org/secret": false, "H:2222/ORG/secret": false, "h/org/hidden": false,
		"h:1/Org/Hidden": false, "[2001:db8::1]:2/x": false, "h:7/TOP/a/b": false,
		"h/org/secrets": true, "h2/org/secret": true, "h:x/org/secret": true, "[2001:db8::2]:1/x": true, "h:22/org/other": true,
	} {
		if got := p.match(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
	if p.allow = []string{"h/org/*"}; p.match("h/Org/a") || p.match("h:22/org/a") || !p.match("h/org/a") {
		t.Error("allowing is not exact")
	}
}

func TestSpecsThatCannotBe(t *testing.T) {
	long := func(n int) []string { return slices.Repeat([]string{strings.Repeat("a", 1024)}, n) }
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
		"many patterns":    func(s *Spec) { s.Deny = slices.Repeat([]string{"a"}, 257) },
		"much text":        func(s *Spec) { s.Allow, s.Deny = long(20), long(13) },
		"a past lifetime":  func(s *Spec) { s.Lifetime = -1 },
		"a very long name": func(s *Spec) { s.Name = strings.Repeat("n", 257) },
	} {
		s := good
		change(&s)
		if s.Check() == nil {
			t.Errorf("%s was taken", what)
		}
		if err := s.Check(); strings.Contains(what, "pattern") && (err == nil || !strings.Contains(err.Error(), "*")) {
			t.Errorf("%s: %v does not say what to do", what, err)
		}
	}
}
