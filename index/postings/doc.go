// Package postings builds and reads the two-level n-gram index of a text: for each n-gram the
// superblocks in which it starts, and for each of those a mask of the blocks. Lists and masks are
// separate, so that a query reads only the masks of superblocks that have all its n-grams.
//
// # Sections
//
// An index has three sections, which index/FORMAT.md describes bit by bit: the n-gram offset table,
// the posting lists, and the masks. For each n-gram that occurs, the table has the end of its list
// and of its masks. They start where those of the n-gram before end.
//
// A posting list is the number of its superblocks, a skip array, and blocks of 128 superblocks.
// Masks are in blocks of the same size. Both kinds of blocks use prefix codes that are part of the
// format. So a shard has no code tables, an open shard keeps none on the heap, and the writer need
// not count before it writes:
//
//   - Gaps between superblocks by their magnitude, in a code for how dense the block is,
//     which follows from the skip array.
//   - Masks in a code for how many bits they have in the block, its class, and for the number
//     of blocks that their superblock has: a quarter of all superblocks is the end of a file.
package postings
