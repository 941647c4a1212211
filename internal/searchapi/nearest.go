package searchapi

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
)

// MostNearest bounds the names that Nearest returns.
const MostNearest = 3

const (
	// comparedRunes bounds the names that are compared: the comparison takes quadratic time.
	comparedRunes = 120
	// comparedBytes bounds the name that they are compared with.
	comparedBytes = 200
)

// Nearest returns the names that differ least from name, at most MostNearest. The last part of a
// name counts most: that of a near name differs from it in at most a third of its characters and one more, or is its beginning, or the
// near name has all its words. If it has no extension, those of the names need not count. It compares all names, a thousand in about two milliseconds. Nothing is near a text that is far longer than names are.
func Nearest(name string, names []string) []string {
	if name == "" || len(name) > comparedBytes {
		return nil
	}
	type candidate struct {
		name       string
		base, full int
	}
	base := path.Base(name)
	differ := func(n string) int {
		least := EditDistance(n, base)
		if bare := strings.TrimSuffix(n, path.Ext(n)); bare != n && bare != "" && path.Ext(base) == "" {
			least = min(least, EditDistance(bare, base))
		}
		return least
	}
	words := strings.FieldsFunc(strings.ToLower(base), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	var of []candidate
	for _, n := range names {
		c := candidate{name: n, base: differ(path.Base(n))}
		if c.base <= farthest(base) || hasWords(path.Base(n), words) || begins(base, path.Base(n)) {
			of = append(of, c)
		}
	}
	slices.SortStableFunc(of, func(a, b candidate) int { return a.base - b.base })
	if len(of) == 0 {
		return nil
	}
	least := of[0].base
	of = of[:min(len(of), 10*MostNearest)]
	of = slices.DeleteFunc(of, func(c candidate) bool { return c.base > least+1 })
	for i := range of {
		of[i].full = EditDistance(of[i].name, name)
	}
	slices.SortStableFunc(of, func(a, b candidate) int { return 4*(a.base-b.base) + a.full - b.full })
	var best []string
	for _, c := range of[:min(len(of), MostNearest)] {
		best = append(best, c.name)
	}
	return best
}

// farthest is in how many characters a near name may differ.
func farthest(name string) int { return 1 + utf8.RuneCountInString(name)/3 }

// begins reports whether a name begins with another one of at least two bytes, in any case.
func begins(name, with string) bool {
	return len(with) > 1 && len(with) <= len(name) && strings.EqualFold(name[:len(with)], with)
}

// hasWords reports whether a name has all of some words of at least two letters together, in any case.
func hasWords(name string, words []string) bool {
	name = strings.ToLower(name)
	return len(strings.Join(words, "")) > 1 && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(name, word) })
}

// SpelledLike returns the names that begin with name, or else those that differ least from it, in at most a third of its characters and one more.
// They are at most MostNearest. It is for few names, such as those of commands and arguments.
func SpelledLike(name string, names []string) []string {
	near := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasPrefix(n, name) })
	if len(near) == 0 || name == "" {
		near = Nearest(name, names)
		least := farthest(name)
		for _, n := range near {
			least = min(least, EditDistance(n, name))
		}
		near = slices.DeleteFunc(near, func(n string) bool { return EditDistance(n, name) > least })
	}
	return near[:min(len(near), MostNearest)]
}

// Thirds divides a name into three parts. A name that differs in at most two characters has one of them unchanged. A name
// of fewer than three characters is its own only part.
func Thirds(name string) []string {
	runes := []rune(strings.ToValidUTF8(name, ""))
	if len(runes) < 3 {
		return []string{string(runes)}
	}
	third := len(runes) / 3
	return []string{string(runes[:third]), string(runes[third : 2*third]), string(runes[2*third:])}
}

// EditDistance counts the characters in which the beginnings of two names differ, ignoring case.
func EditDistance(a, b string) int {
	return levenshtein.ComputeDistance(compared(a), compared(b))
}

func compared(name string) string {
	runes := []rune(strings.ToLower(name))
	return string(runes[:min(len(runes), comparedRunes)])
}
