package regex

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// beginsAt reports whether the bytes at a place are in the sets.
func beginsAt(sets []byteSet, text []byte, at int) bool {
	for i := range sets {
		if at+i >= len(text) || !sets[i][text[at+i]] {
			return false
		}
	}
	return true
}

// TestFirstSetsHoldMatches checks that the sets cover every beginning of a
// match, and that the search for beginnings finds the same places as a look at
// each place.
func TestFirstSetsHoldMatches(t *testing.T) {
	checked, shifted := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		tree, caseSensitive := drawTree(t, 3), rapid.Bool().Draw(t, "case")
		text := slices.Concat(drawNoise(t), drawText(t, nil, tree, !caseSensitive), drawNoise(t), drawText(t, nil, tree, !caseSensitive))
		library, err := newLibrary(tree, caseSensitive)
		if err != nil {
			t.Fatal(err)
		}
		a, ok := newAutomata(tree, caseSensitive, library, nil)
		if !ok {
			return
		}
		sets := firstSets(a.forward)
		for _, m := range library.first.FindAllIndex(text, -1) {
			checked++
			if m[1]-m[0] < len(sets) || !beginsAt(sets, text, m[0]) {
				t.Fatalf("%s matches %q, which does not begin as it should: %d sets", tree, text[m[0]:m[1]], len(sets))
			}
		}
		if len(sets) < 2 {
			return
		}
		p, _ := newPrefix(sets)
		for from := range len(text) + 1 {
			want := from
			for want < len(text) && !beginsAt(sets, text, want) {
				want++
			}
			if want == len(text) {
				want = -1
			}
			if got := p.next(text, from); got != want {
				t.Fatalf("%s in %q from %d: %d, want %d", tree, text, from, got, want)
			}
			if want > from {
				shifted++
			}
		}
	})
	if checked == 0 || shifted == 0 {
		t.Errorf("%d matches and %d shifts: the test says little", checked, shifted)
	}
}

func TestPrefixIsUsedWhereItPays(t *testing.T) {
	for pattern, want := range map[string]bool{
		`[aeiou]{4}`: true, `[A-Z]{5}[0-9]{4}`: true, `[!-/]{4}[0-9]`: true, `\b[0-9]{4}\b`: true, `\w+\s*=\s*\d+`: false, `\w{20}`: false, `[^x]{9}`: false, `[0-9]+`: false,
	} {
		if got := mustAutomata(t, pattern).skip.prefix != nil; got != want {
			t.Errorf("%s: %v, want %v", pattern, got, want)
		}
	}
}

// TestLiteralsAreSoughtWhereTheyPay: an expression begins with a search for its literals if there are at most four, or at most eight and no prefix
// or rare first byte says where a match can begin.
func TestLiteralsAreSoughtWhereTheyPay(t *testing.T) {
	for pattern, want := range map[string]bool{
		`\w+(one|two)`: true, `\w+(TODO|FIXME|XXX|HACK|BUG)`: true, `\w+(a1|b2|c3|d4|e5|f6|g7|h8|i9)`: false, `(GET|PUT|POST|HEAD|OPTIONS)\s+\w+`: false,
	} {
		if got := mustAutomata(t, pattern).skip.finder != nil; got != want {
			t.Errorf("%s: %v, want %v", pattern, got, want)
		}
	}
}
