package sources

import "testing"

// FuzzParse: no file brings the process down, and what is taken keeps the rules.
func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("sources: [{name: x, kind: git, url: /srv/git/a}]"))
	f.Add([]byte("a: &a [*a]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := Parse(text)
		if err != nil {
			return
		}
		if err := CheckAll(list); err != nil {
			t.Errorf("%q was taken: %v", text, err)
		}
	})
}
