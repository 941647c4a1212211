package regex

import "regexp/syntax"

// Reach says how much of a text decides the matches that hold a literal that
// every match holds (Analyze), so that the rest need not be read.
type Reach struct {
	// Whole says that all of the text may decide.
	Whole bool
	// Lines says that only whole lines give the same matches as the text.
	Lines bool
	// Bytes is how far a match can reach on either side of the literal; 0 with
	// Lines means within the lines of the literal.
	Bytes int
	// Open says that there is no such bound, with Lines: an Extent tells how far
	// matches go on in a text.
	Open bool
}

// maxReach is the farthest reach that is of use: much less than most texts.
const maxReach = 1 << 12

// ReachOf is the reach of the matches that NewMatcher finds.
func ReachOf(tree *syntax.Regexp, caseSensitive bool) Reach {
	if _, ok := LiteralOf(tree, caseSensitive); ok {
		return Reach{}
	}
	most, bounded := MaxLen(tree, caseSensitive)
	if _, ok := LiteralsOf(tree, caseSensitive); ok {
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
