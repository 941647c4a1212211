// Package inverted builds and reads the inverted files of a shard: for each term of a text, the
// superblocks in which it starts, and for each of those a mask of the blocks. There are three
// n-gram indexes, [Index], of content, of names and of the words of the shard; and one index of
// words, [Words].
//
// # Posting lists
//
// An index has two sections, which index/FORMAT.md describes bit by bit:
//
//	table   n-grams that occur, if the terms are n-grams ─▶ number of the term
//	        number of the term ─▶ end of its list
//	lists   df, ends of blocks, blocks of 128 postings: superblocks, masks; those of words also have counts and definitions
//
// So a list takes one read, wherever the shard is. Of its masks, a query decodes only those of superblocks that have all its
// terms. Blocks use prefix codes that are part of the format. So a shard has no code tables, an open shard keeps none on
// the heap, and the writer need not count before it writes:
//
//   - Gaps between superblocks by their magnitude, in a code for how dense the block is,
//     which follows from the skips.
//   - Masks in a code for how many bits they have in the block, its class, and for the number
//     of blocks that their superblock has: a quarter of all superblocks is the end of a file.
//
// # Words
//
// A word is a maximal run of bytes of [0-9A-Za-z_] of at most ngram.MaxWord bytes. It belongs to
// the superblock and the block in which it starts. The index of words alone, with exact counts and
// without decoding content, answers a literal of word bytes: by the words that contain it, each
// times its count. Opaque superblocks, as package ngram defines them, have no words here; their text
// decides.
//
//	n-grams of the dictionary  "con" ─▶ blocks of the dictionary that hold it
//	term dictionary            block ─▶ 32 words, front-coded
//	posting lists              word  ─▶ superblocks, counts, masks, definitions
//
// Words are sorted first without case, then by their bytes: all spellings of a word are adjacent,
// and so are the words with a common beginning. [Words.Spellings] and [Words.WithPrefix] find these
// by binary search. The n-grams of the dictionary find all other words.
package inverted
