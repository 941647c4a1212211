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
//	LiteralsOf    the literals of which the whole expression is an alternation
//	ReachOf       how much of the text around a needed literal decides a match
//	Extent        how far matches go on over the lines beside a place
//	FixedLiteral  a literal that every match holds at the same offset
//	MinLen        the fewest bytes of a match; MaxLen the most, if there is a bound
//	CrossesLines  whether a match can hold a newline
//	SeesTextEnds  whether the ends of the text, not of a line, can decide a match
//	Compile       the standard library's engine for it
//	NewMatcher    an engine of our own that finds the same, from a place on
//	Ranges        its successive matches
//
// # The engine
//
// A literal or an alternation of literals is looked for as such (index/literal).
// Another expression becomes two programs of nodes, one that reads forwards and one
// that reads backwards (program.go), over classes of runes that it does not
// tell apart (classes.go). A deterministic automaton is made of each while it
// runs: its states are lists of nodes in the order of preference (state.go),
// kept in a table of bounded size that is emptied when it is full (dfa.go).
// Forwards it finds where the leftmost match of the preferred alternative ends,
// backwards the leftmost start of a match with that end (search.go). What
// stands on both sides of a place decides ^, $, \A, \z,  and \B (look.go).
// While nothing has begun, the search jumps to the next literal that a match
// needs (skip.go), or to the next bytes with which one can begin (prefix.go).
//
// Text is read rune by rune, where a byte below 0x80 is one by itself and a byte
// that is not UTF-8 is U+FFFD: exactly as the standard library reads it, in both
// directions. The standard library takes over for programs that are too large,
// for halves of surrogate pairs, and for texts that need new states again and
// again.
package regex
