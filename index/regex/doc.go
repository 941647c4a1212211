// Package regex says what can be known about a regular expression before any
// text is read, and compiles it.
//
// An expression is a tree of regexp/syntax together with whether case counts;
// without case the whole tree is matched under (?i), and a part that the
// pattern itself put under (?i) is folded either way. All functions take trees
// as syntax.Parse gives them (not simplified, no node shared), do not change
// them, and may be called concurrently.
//
//	Analyze       which literals a text must hold to be matched (for the n-gram index)
//	LiteralOf     the literal that the whole expression is
//	FixedLiteral  a literal that every match holds at the same offset
//	MinLen        the fewest bytes of a match; MaxLen the most, if there is a bound
//	CrossesLines  whether a match can hold a newline
//	SeesTextEnds  whether the ends of the text, not of a line, can decide a match
//	Compile       the standard library's engine for it
//	NewMatcher    the same behind an interface that finds from a place on
//	Ranges        its successive matches
package regex
