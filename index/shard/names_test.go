package shard

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/literal"
)

// TestPlaceUncounted: the place of a path's best match does not depend on whether matches
// are counted.
func TestPlaceUncounted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a-cA-Ck_]{1,2}`).Draw(t, "text")
		a := nameAtom{matching: &matching{matcher: literal.New(text, rapid.Bool().Draw(t, "case"))}}
		path := []byte(rapid.StringMatching(`([abcABCkx_.\x{212A}]{0,3}/){0,2}[abcABCkx_.\x{212A}]{1,6}`).Draw(t, "path"))
		want, wantOK := a.place(path)
		a.uncounted = true
		if got, ok := a.place(path); ok != wantOK || got.name != want.name {
			t.Fatalf("%q in %q: %v, %v, want %v, %v", text, path, got.name, ok, want.name, wantOK)
		}
	})
}
