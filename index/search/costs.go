package search

// About what the steps of a search cost, in nanoseconds: chooseTier compares them. BenchmarkCosts measures blocks, postings and text; the
// costs of candidates and the least costs are guesses.
const (
	// costLexiconBlock is for finding words in a block of the lexicon, and for opening their lists.
	costLexiconBlock = 2300
	costPosting      = 30
	// costCandidate is for a candidate beside its text, costOnePath for its path alone.
	costCandidate = 1500
	costOnePath   = 300
	// costTextPerKiB is for decoding a KiB of text and finding a few texts in it, costCandidateText for the text of a usual candidate.
	costTextPerKiB    = 2000
	costCandidateText = 12_000
	// leastTierCost is what all words must cost for the search to try whole words first, leastLeadCost what all words of the texts beside
	// the one that leads must cost.
	leastTierCost = 300_000
	leastLeadCost = 3_500_000
)
