// Package ngram turns text into the three-byte windows that posting lists are
// kept for, and literals of a query into the windows that any match must hold.
//
// # Windows
//
// A window is three consecutive bytes of the folded text. Folding replaces each
// rune by one representative of its simple-case-folding orbit, so that K, k and
// U+212A (Kelvin) are the same; a byte that is no part of valid UTF-8 stands
// for itself. Each folded byte belongs to the offset at which its rune starts
// in the original text, and a window starts where its first byte belongs.
//
// One ID names each window:
//
//	ID                              windows
//	[0, 1<<18)                      all three bytes ASCII: three 6-bit classes
//	[1<<18, 1<<18 + 1<<16)          some byte not ASCII: a 16-bit hash
//	[1<<18 + 1<<16, Space)          title case, [A-Z][a-z][a-z], 26^3
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
