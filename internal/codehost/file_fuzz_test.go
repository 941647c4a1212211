package codehost

import "testing"

// FuzzParseSources: no file crashes the process, and accepted sources keep the rules.
func FuzzParseSources(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("sources: [{name: x, kind: git, url: /srv/git/a}]"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := ParseSources(text)
		if err != nil {
			return
		}
		if err := CheckSources(list); err != nil {
			t.Errorf("%q was taken: %v", text, err)
		}
	})
}
