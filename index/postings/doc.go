// Package postings builds and reads the two-level n-gram index of a text: for
// each n-gram the superblocks in which it starts, and for each of those a mask
// of the blocks. The lists and the masks are apart, so that a query reads the
// masks only of superblocks in which all its n-grams meet.
//
// # Sections
//
// An index has three sections. The n-gram offset table:
//
//	┌─────────┬─────────────┬──────────┬─────────┬───────────────┬───────────────┐
//	│ version │ superblocks │ postings │ n-grams │ list ends     │ mask ends     │
//	│ u8 = 1  │ u32         │ u64      │ E.-F.   │ E.-F.         │ E.-F.         │
//	└─────────┴─────────────┴──────────┴─────────┴───────────────┴───────────────┘
//
// The three sequences are lists of package eliasfano: the n-grams (ngram.ID)
// that occur, where the posting list of each ends in the postings section, and
// where its masks end in the masks section. A list starts where the one before
// it ends, the first one at the section's start.
//
// The postings section holds, per n-gram, a posting list:
//
//	┌─────────┬─────────┬───────┬────────────────┬────────────────┬────────────┐
//	│ df      │ last    │ width │ lasts          │ ends           │ blocks     │
//	│ uvarint │ uvarint │ u8    │ packed         │ packed         │            │
//	└─────────┴─────────┴───────┴────────────────┴────────────────┴────────────┘
//
// df is the number of superblocks and last the highest. The blocks have 128 superblocks
// each, the last one what is left. width, lasts and ends are there when there is
// more than one block: for each block but the last one its highest superblock, in as
// many bits as last has, and where it ends after the first block's start, in width
// bits; both padded to whole bytes. Packed numbers have their lowest bit first.
//
// A block is a byte, its coding in the low three bits and a parameter in the other
// five, then the gaps before all its superblocks but the last, which is known from the
// skip array. A gap is the number of superblocks left out; the first one counts from
// the end of the block before, or from 0. A block of one superblock, or whose
// superblocks follow each other without a gap, has no bytes. The smallest coding is taken:
//
//	0  packed  each gap in as many bits as the parameter says
//	1  Rice    each gap: what is above the parameter's bits in unary, that many zeros
//	           and a one; then those bits
//	2  runs    by turns a gap and one less than the superblocks that follow each
//	           other after it, both uvarint
//	3  bytes   each gap as a uvarint
//
// Bits are filled in from the lowest of a byte on.
//
// The masks section starts with the tables of the eight density classes, each:
// how many codes there are of 1, 2, … 12 bits (12 bytes), then as many masks in the
// order of their codes, which are canonical Huffman codes. After them, per n-gram:
//
//	┌───────┬────────┬──────────┐
//	│ width │ ends   │ blocks   │
//	│ u8    │ packed │          │
//	└───────┴────────┴──────────┘
//
// width and ends are there, and mean the same, as in the posting list. A block is
// the class in three bits, then the code of each mask, highest bit first, padded
// to a whole byte. The first list starts after the tables.
//
// All numbers are little-endian.
package postings
