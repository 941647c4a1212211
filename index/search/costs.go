package search

// A search that has a choice takes the way that costs less. These are all the costs that it compares. BenchmarkCosts measures them on the
// source of Go. These are nanoseconds from busy machines: before there was a cache of decoded text, and with all text in it:
//
//	posting of a long list                            77 to 121        41
//	posting of a long list, with mask                136 to 244        54
//	words of a block of the lexicon, and postings  4,200 to 10,400  2,600
//	byte of text, decoded and searched               3.6 to 8.7       1.0
//	place in the text, verified                    6,600 to 20,000    840
const (
	// postingsPerBlock is how many postings are read in the time that finding words in a block of the lexicon takes, with their lists.
	postingsPerBlock = 64
	// readPays is how many bytes of text are read in that time.
	readPays = 1024
	// verifyPays is how many postings with masks are read for each place that they may save.
	verifyPays = 48
	// A piece of a phrase may lead if its words are in at most fewBlocks of the lexicon, or in at most one block for each leadShare places of
	// the rarest so far. After that, one block may be read for each place that is left.
	fewBlocks = 8
	leadShare = 32
)

// Costs relative to a look at a path. All are guesses.
const (
	// looksPerBlock is how many paths are looked at in the time of a block of the lexicon.
	looksPerBlock = 64
	// itemsPerLook is how many items of a column count as one look, and seekLooks how many looks one at a path counts as that is not the next.
	itemsPerLook = 64
	seekLooks    = 8
	// Contents that words do not answer count as contentBlocks of the lexicon, and finding out which blocks hold the words as firstBlocks.
	contentBlocks = 64
	firstBlocks   = 8
)

// Costs of nodes serve only to order them: columns before paths, paths before content. They are guesses in nanoseconds per document.
const (
	costConst   = 1
	costColumn  = 20
	costPath    = 200
	costContent = 10_000
	costScan    = 1_000_000
)

const (
	// nearBlobs is how many blobs are stepped over before a lookup is cheaper.
	nearBlobs = 12
	// spreadAfter is how much work one goroutine does alone, in bytes decoded: about a millisecond. Most searches end earlier.
	spreadAfter = 1 << 20
	// documentWork is the work of looking at a document, in addition to its bytes.
	documentWork = 2 << 10
)
