// Package words builds and reads the index of words of a shard: which words its content has, and,
// for each word, in which superblocks it starts and how often.
//
// A word is a maximal run of bytes of [0-9A-Za-z_] of at most ngram.MaxWord bytes. It belongs to
// the superblock and the block in which it starts. This index alone, with exact counts and without
// decoding content, answers a literal of word bytes: by the words that contain it, each times its
// count. Opaque superblocks, as package ngram defines them, have no words here; their text decides.
//
//	lexicon n-grams   "con" ─▶ blocks of the lexicon that hold it
//	lexicon           block ─▶ 32 words, front-coded
//	posting lists     word  ─▶ superblocks, and counts and masks of blocks
//
// Words are sorted first without case, then by their bytes: all spellings of a word are adjacent,
// and so are the words with a common beginning. [Index.Spellings] and [Index.WithPrefix] find these
// by binary search. The n-grams of the lexicon find all other words.
package words
