// Package ngram turns text into the windows for which an index has posting lists, and literals of a
// query into the windows that every match must contain.
//
// # Windows
//
// A window is a sequence of runes of the folded text. Folding replaces each rune by one
// representative of its simple-case-folding orbit, so that K, k and U+212A (Kelvin) are equal. A
// window starts where its first rune starts in the original text. Where runes a, b and c are
// adjacent, these windows start with a:
//
//	window  if
//	abc     a or b is below U+0800
//	ab      neither is ASCII
//	a       unless it is ASCII
//
// So ASCII has windows of three bytes. Two runes of Chinese say as much as three letters, and short
// literals beyond ASCII have windows of one rune or two. No window contains U+FFFD or a byte that
// is not part of valid UTF-8.
//
// One ID stands for each window:
//
//	ID                              windows
//	[0, 1<<18)                      three runes of ASCII: three 6-bit classes
//	[1<<18, 1<<18 + 1<<16)          none
//	[1<<18 + 1<<16, +26^3)          title case, [A-Z][a-z][a-z], 26^3
//	[1<<18 + 1<<16 + 26^3, Space)   some rune not ASCII: an 18-bit hash
//
// The classes are letters without case (26), digits (10), and punctuation and white space (28, of
// which the rarest bytes share one). A title-case window is indexed in addition to its folded one.
// It narrows case-sensitive queries, in which folding loses most for capitalised words. Different
// windows may have the same ID: an ID narrows a search but never proves a match.
//
// # Superblocks and blocks
//
// Text is cut into superblocks of SuperblockSize bytes, and each of these into BlocksPerSuperblock
// blocks of BlockSize bytes. A window belongs to the superblock and block in which it starts, even
// if it ends in the next one.
package ngram
