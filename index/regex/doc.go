// Package regex analyzes regular expressions before any text is read, and compiles them.
//
// An expression is a tree of regexp/syntax and whether case counts. Without case the whole tree is
// matched under (?i). A part that the pattern itself puts under (?i) is folded in either mode. All
// functions take trees as syntax.Parse returns them (not simplified, no node shared), do not change
// them, and are safe for concurrent use.
//
//	Analyze       which literals a text must hold to be matched (for the n-gram index)
//	LiteralsOf    the literal that the whole expression is, or those of which it is an alternation
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
// A literal, or an alternation of a few, is searched for directly (index/literal). Other
// expressions become two programs of nodes, one that reads forwards and one that reads backwards
// (program.go), over classes of runes that no node distinguishes (classes.go). Each becomes a
// deterministic automaton while it runs: its states are lists of nodes in order of preference
// (state.go), kept in a table of bounded size that is emptied when it is full (dfa.go). Forwards it
// finds the end of the leftmost match of the preferred alternative, backwards the leftmost start of
// a match with that end (search.go). The runes on both sides of a place decide ^, $, \A, \z, \b and
// \B (look.go). While nothing has begun, the search jumps to the next literal that a match needs
// (skip.go), or to the next bytes with which a match can begin (prefix.go).
//
// Text is read rune by rune, exactly as the standard library reads it, in both directions: a byte
// below 0x80 is a rune by itself, and an invalid byte is U+FFFD. The standard library handles
// programs that are too large, halves of surrogate pairs, and texts that keep needing new states.
package regex
