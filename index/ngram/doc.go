// Package ngram turns text into the windows that posting lists are
// kept for, and literals of a query into the windows that any match must hold.
//
// # Windows
//
// A window is some consecutive runes of the folded text. Folding replaces each
// rune by one representative of its simple-case-folding orbit, so that K, k and
// U+212A (Kelvin) are the same. A window starts where its first rune starts in
// the original text. Where runes a, b and c follow each other, these start with a:
//
//	window  if
//	abc     a or b is below U+0800
//	ab      neither is ASCII
//	a       unless it is ASCII
//
// So ASCII has windows of three bytes. Two runes of Chinese say as much as three letters, and
// short literals that are not ASCII have windows of one rune or two.
// Bytes that are no part of valid UTF-8, and U+FFFD, are in no window. All this is the scheme
// Runes. In the scheme Bytes, which the first shards have, a window is three bytes of the folded
// text as UTF-8, in which a byte that is no part of valid UTF-8 stands for itself.
//
// One ID names each window:
//
//	ID                              windows
//	[0, 1<<18)                      three runes of ASCII: three 6-bit classes
//	[1<<18, 1<<18 + 1<<16)          Bytes, some byte not ASCII: a 16-bit hash
//	[1<<18 + 1<<16, +26^3)          title case, [A-Z][a-z][a-z], 26^3
//	[1<<18 + 1<<16 + 26^3, Space)   Runes, some rune not ASCII: an 18-bit hash
//
// The classes are letters without case (26), digits (10) and punctuation and
// white space (28, the rarest sharing a class). A title-case window is marked in
// addition to its folded one; it narrows queries with case, for which folding
// loses most on capitalised words. Different windows may have one ID: an ID
// narrows a search, it never proves a match.
//
// # Superblocks and blocks
//
// Text is cut into superblocks of SuperblockSize bytes, each of BlocksPerSuperblock
// blocks of BlockSize bytes. A window belongs to the superblock and block in
// which it starts, even when it ends in the next one.
package ngram
