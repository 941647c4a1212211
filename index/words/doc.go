// Package words builds and reads the index of words of a shard: which words its
// content has, and for each one the superblocks in which it starts, and how often.
//
// A word is a maximal run of bytes of [0-9A-Za-z_] of at most ngram.MaxWord bytes.
// It belongs to the superblock and the block in which it starts. What lies
// within a word is answered by this index alone, with exact counts: a literal of word
// bytes by the words that hold it, each times its count. No content is decoded.
// Opaque superblocks, as package ngram defines them, have no words here; their text decides.
//
//	lexicon n-grams   "con" ─▶ blocks of the lexicon that hold it
//	lexicon           block ─▶ 32 words, front-coded
//	posting lists     word  ─▶ superblocks, and counts and masks of blocks
//
// Words are sorted without case first, then by their bytes: all spellings of a word are
// neighbours, and so are the words with one beginning. [Index.Range] finds both by
// binary search, and the n-grams of the lexicon all others.
package words
