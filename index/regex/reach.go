package regex

import "regexp/syntax"

// Reach says which part of a text decides the matches that contain a literal
// that every match has (Analyze), so that the rest need not be read.
type Reach struct {
	// Whole says that all of the text may decide.
	Whole bool
	// Lines says that only whole lines give the same matches as the text.
	Lines bool
	// Bytes is how far a match can reach on either side of the literal. With
	// Lines, 0 means within the lines of the literal.
	Bytes int
	// Open says, with Lines, that there is no such bound: an Extent finds how
	// far matches continue in a text.
	Open bool
}

// maxReach is the farthest useful reach: much less than most texts.
const maxReach = 1 << 12

// ReachOf returns the reach of the matches that NewMatcher finds.
func ReachOf(tree *syntax.Regexp, caseSensitive bool) Reach {
	most, bounded := MaxLen(tree, caseSensitive)
	if literals, ok := LiteralsOf(tree, caseSensitive); ok && len(literals) == 1 {
		return Reach{}
	} else if ok {
		return Reach{Bytes: most}
	}
	switch {
	case SeesTextEnds(tree):
		return Reach{Whole: true}
	case !CrossesLines(tree):
		return Reach{Lines: true}
	case bounded && most <= maxReach:
		return Reach{Lines: true, Bytes: most}
	}
	return Reach{Lines: true, Open: true}
}
