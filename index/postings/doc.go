// Package postings builds and reads the two-level n-gram index of a text: for
// each n-gram the superblocks in which it starts, and for each of those a mask
// of the blocks. The lists and the masks are apart, so that a query reads the
// masks only of superblocks in which all its n-grams meet.
//
// # Sections
//
// An index has three sections, which index/FORMAT.md describes bit by bit: the n-gram
// offset table, the posting lists, and the masks. The table says for each n-gram that
// occurs where its list and its masks end; they start where those of the one before end.
//
// A posting list is the number of its superblocks, a skip array, and blocks of 128
// superblocks; masks are in blocks of as many. A block of either is coded by prefix codes
// that are part of the format, so that a shard holds no tables, an open one keeps
// none on the heap, and the writer does not count before it writes:
//
//   - Gaps between superblocks by their magnitude, in a code for how dense the block is,
//     which follows from the skip array.
//   - Masks in a code for how many bits they have in the block, its class, and for the number
//     of blocks that their superblock has: a quarter of all superblocks is the end of a file.
package postings
