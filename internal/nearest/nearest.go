// Package nearest finds names that are like one that is not there.
package nearest

import (
	"path"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Most is how many names are suggested.
const Most = 3

const (
	// comparedRunes bounds the names that are compared: the comparison takes quadratic time.
	comparedRunes = 120
	// comparedNames bounds how many are compared.
	comparedNames = 10_000
)

// Names are the names that differ least from name, in their last part above all: at most Most. Of very many it compares
// those with a third of the name in common.
func Names(name string, names []string) []string {
	type candidate struct {
		name       string
		base, full int
	}
	if len(names) > comparedNames {
		names = sharing(name, names)
	}
	of := make([]candidate, len(names))
	for i, n := range names {
		of[i] = candidate{name: n, base: Distance(path.Base(n), path.Base(name))}
	}
	slices.SortStableFunc(of, func(a, b candidate) int { return a.base - b.base })
	if len(of) == 0 {
		return nil
	}
	least := of[0].base
	of = of[:min(len(of), 10*Most)]
	of = slices.DeleteFunc(of, func(c candidate) bool { return c.base > least+1 })
	for i := range of {
		of[i].full = Distance(of[i].name, name)
	}
	slices.SortStableFunc(of, func(a, b candidate) int { return 4*(a.base-b.base) + a.full - b.full })
	var best []string
	for _, c := range of[:min(len(of), Most)] {
		best = append(best, c.name)
	}
	return best
}

// Thirds are three parts of a name: one with up to two differences has one of them unchanged. A name of less
// than three characters is its only part.
func Thirds(name string) []string {
	runes := []rune(strings.ToValidUTF8(name, ""))
	if len(runes) < 3 {
		return []string{string(runes)}
	}
	third := len(runes) / 3
	return []string{string(runes[:third]), string(runes[third : 2*third]), string(runes[2*third:])}
}

// sharing are the first names with a third of the last part of name.
func sharing(name string, names []string) (some []string) {
	thirds := Thirds(strings.ToLower(path.Base(name)))
	for _, n := range names {
		lower := strings.ToLower(n)
		if len(some) < comparedNames && slices.ContainsFunc(thirds, func(third string) bool { return strings.Contains(lower, third) }) {
			some = append(some, n)
		}
	}
	return some
}

// Distance is how many characters differ between the beginnings of two names, without regard to case.
func Distance(a, b string) int {
	return levenshtein.ComputeDistance(compared(a), compared(b))
}

func compared(name string) string {
	runes := []rune(strings.ToLower(name))
	return string(runes[:min(len(runes), comparedRunes)])
}
