package origin

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxPattern bounds a pattern, in bytes.
const maxPattern = 1024

// CheckPattern reports why a pattern is invalid, in words for its author. In a
// pattern * matches any bytes but a slash, ** matches any bytes, and every other
// byte matches itself. A pattern has 1 to 1024 bytes.
func CheckPattern(pattern string) error {
	switch {
	case pattern == "":
		return errors.New("the pattern is empty: write ** to match everything")
	case len(pattern) > maxPattern:
		return fmt.Errorf("the pattern has %d bytes, at most %d are allowed", len(pattern), maxPattern)
	case strings.Contains(pattern, "***"):
		return fmt.Errorf("pattern %q: * matches anything up to a slash and ** matches anything; *** has no meaning", pattern)
	}
	return nil
}

// MatchAny reports whether any of the patterns matches the name.
func MatchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return MatchPattern(p, name) })
}

// MatchPattern reports whether the pattern matches the whole name. It simulates
// the pattern's automaton in one pass over the name, so its time is bounded by the
// product of both lengths.
func MatchPattern(pattern, name string) bool {
	// The text before the first star decides for most names.
	star := strings.IndexByte(pattern, '*')
	if star < 0 {
		return pattern == name
	}
	if !strings.HasPrefix(name, pattern[:star]) {
		return false
	}
	pattern, name = pattern[star:], name[star:]
	at, next := make([]bool, len(pattern)+1), make([]bool, len(pattern)+1)
	at[0] = true
	skipStars(pattern, at)
	for i := range len(name) {
		clear(next)
		for j := range len(pattern) {
			if !at[j] {
				continue
			}
			switch {
			case pattern[j] != '*':
				next[j+1] = next[j+1] || pattern[j] == name[i]
			case name[i] != '/' || double(pattern, j):
				next[j] = true
			}
		}
		skipStars(pattern, next)
		at, next = next, at
	}
	return at[len(pattern)]
}

// double reports whether the star at j is one of two.
func double(pattern string, j int) bool {
	return strings.HasPrefix(pattern[j:], "**") || j > 0 && pattern[j-1] == '*'
}

// skipStars adds the places that follow a star: it may stand for nothing.
func skipStars(pattern string, at []bool) {
	for j := range len(pattern) {
		if at[j] && pattern[j] == '*' {
			at[j+1] = true
		}
	}
}
