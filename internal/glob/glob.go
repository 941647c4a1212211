// Package glob matches names of repos and branches with patterns: * stands for
// any bytes but a slash, ** for any bytes at all, everything else for itself.
package glob

import (
	"errors"
	"fmt"
	"strings"
)

// MaxBytes bounds a pattern.
const MaxBytes = 1024

// Check says what is wrong with a pattern, in words for people.
func Check(pattern string) error {
	switch {
	case pattern == "":
		return errors.New("the pattern is empty: ** stands for everything")
	case len(pattern) > MaxBytes:
		return fmt.Errorf("a pattern of %d bytes, at most %d", len(pattern), MaxBytes)
	case strings.Contains(pattern, "***"):
		return fmt.Errorf("pattern %q: * stands for anything up to a slash, ** for anything, *** for nothing", pattern)
	}
	return nil
}

// MatchAny reports whether some pattern matches.
func MatchAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if Match(p, name) {
			return true
		}
	}
	return false
}

// Match reports whether the whole name is what the pattern stands for. It runs
// through the name once, with the set of places in the pattern
// where the match may stand: its time is bounded by the product of both sizes.
func Match(pattern, name string) bool {
	// What comes before the first star decides about most names.
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
