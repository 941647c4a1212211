package regex

import (
	"cmp"
	"slices"
	"sync"
	"unicode"
)

// foldable lists the runes that fold to others, ascending.
var foldable = sync.OnceValue(func() (runes []rune) {
	for _, c := range unicode.CaseRanges { // of runes that fold together, at least one has another case
		for r := rune(c.Lo); r <= rune(c.Hi); r++ {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				runes = append(runes, r, f)
			}
		}
	}
	slices.Sort(runes)
	return slices.Compact(runes)
})

// foldClass adds to a sorted class what its runes fold to. From a class of all but some runes it
// also excludes what those fold to. Its time depends on the number of ranges, not on how wide they
// are.
func foldClass(ranges []rune) []rune {
	last := len(ranges) - 1
	if ranges[0] != 0 || ranges[last] != unicode.MaxRune || last == 1 {
		return addFolds(ranges)
	}
	without := make([]rune, 0, last-1) // the gaps between the ranges
	for i := 1; i < last; i += 2 {
		without = append(without, ranges[i]+1, ranges[i+1]-1)
	}
	class, next := []rune{}, rune(0)
	without = addFolds(without)
	for i := 0; i < len(without); i += 2 {
		if next < without[i] {
			class = append(class, next, without[i]-1)
		}
		next = without[i+1] + 1
	}
	return append(class, next, unicode.MaxRune)
}

// addFolds returns the ranges and what their runes fold to, sorted.
func addFolds(ranges []rune) []rune {
	all := slices.Clone(ranges)
	for i := 0; i+1 < len(ranges); i += 2 {
		at, _ := slices.BinarySearch(foldable(), ranges[i])
		for _, r := range foldable()[at:] {
			if r > ranges[i+1] {
				break
			}
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				all = append(all, f, f)
			}
		}
	}
	return joinRanges(all)
}

// joinRanges sorts ranges and joins those that touch.
func joinRanges(ranges []rune) []rune {
	pairs := make([][2]rune, len(ranges)/2)
	for i := range pairs {
		pairs[i] = [2]rune(ranges[2*i:])
	}
	slices.SortFunc(pairs, func(a, b [2]rune) int { return cmp.Compare(a[0], b[0]) })
	joined := make([]rune, 0, len(ranges))
	for _, p := range pairs {
		if n := len(joined); n > 0 && p[0] <= joined[n-1]+1 {
			joined[n-1] = max(joined[n-1], p[1])
		} else {
			joined = append(joined, p[0], p[1])
		}
	}
	return joined
}
