package search

import "time"

// Explanation says how the search of one shard was answered. The reads of Nodes and Other add up to
// the Stats of the search, for the fields that Stats have.
type Explanation struct {
	// Nodes of the query's tree, each before its children.
	Nodes []*ExplainedNode
	// Other counts the reads for no single node, and those to show files.
	Other Reads
	// Phases is the time by phase.
	Phases [phases]time.Duration
	// Elapsed is how long the caller waited.
	Elapsed time.Duration
	// Candidates counts contents whose documents were looked at.
	Candidates uint64
	// Bulk counts documents that match but were only counted, not looked at.
	Bulk uint64
	// Inexact says that there may be more matches than were counted, since what cannot be among the best was not looked at.
	Inexact bool
	// Repo is the first of the shard's repos, and Repos their number.
	Repo  string
	Repos int
}

// ExplainedNode is a node of a query's tree.
type ExplainedNode struct {
	// Query is the node without its children, as package query writes it.
	Query string
	// Depth is 0 for the root.
	Depth int
	// Methods are the ways in which it was answered, in words. A text that is looked for in contents and
	// paths has one for each, a node that its children decide none.
	Methods []string
	// Estimate is the expected number of candidates: contents if words alone answer, superblocks of
	// 4 KiB if n-grams lead to text, paths if n-grams lead to names. If ranges decide, it is the
	// exact number of documents.
	Estimate uint64
	// Checked counts the documents that the node was asked about, Matched those that it matched. A
	// node that ranges decide is asked about none.
	Checked, Matched uint64
	Reads

	node   node // the last one made of it, until the search ends
	ranges bool // decided by paths and columns
}

// Reads counts reads, and the time that they and the work on them took.
type Reads struct {
	// LexiconBlocks counts the blocks that were read, Words the words in them in which an atom
	// matches.
	LexiconBlocks, Words uint64
	// Lists counts the posting lists that were opened, Postings those read from lists of words.
	Lists, Postings uint64
	// Bytes and Units count the content that was decoded.
	Bytes, Units uint64
	Time         time.Duration
}

// Ways to answer a node.
const (
	ByWords         = "words alone"      // no text is read to find matches
	ByWordsAndText  = "words, then text" // in phrases together with n-grams
	ByNgramsAndText = "n-grams, then text"
	ByCandidates    = "text of candidates" // of those that other nodes leave
	ByEveryText     = "all text"           // nothing leads to it
	ByNames         = "n-grams, then paths"
	ByEveryName     = "all paths"
	ByPaths         = "paths of candidates"
	ByColumn        = "a property of each document"
	ByRanges        = "ranges of documents, by paths and properties" // which are known before any document is looked at
	ByShardAll      = "every document of the shard matches"
	ByShardNone     = "no document of the shard matches"
	NotAsked        = "not asked: the shard is excluded" // by another node
)

// Phase is a part of a search.
type Phase uint8

// Phases of a search.
const (
	// PhasePlan is everything outside of the other phases.
	PhasePlan Phase = iota
	// PhaseWords looks words up in the lexicon.
	PhaseWords
	// PhasePostings adds up the postings of words.
	PhasePostings
	// PhaseNames reads the paths that n-grams lead to.
	PhaseNames
	// PhaseScan decides which candidates match.
	PhaseScan
	// PhaseRank finds the matches by which a document is ranked.
	PhaseRank
	// PhaseShow makes files ready to be shown.
	PhaseShow
	phases
)

// String names the phase.
func (p Phase) String() string {
	return [phases]string{"plan", "words", "postings", "names", "scan", "rank", "show"}[p]
}

// AddShown adds the explanation of Show, which may be nil, to that of Find.
func (x *Explanation) AddShown(shown *Explanation) {
	if shown == nil {
		return
	}
	x.Other.add(&shown.Other, 1)
	x.Phases[PhaseShow] += shown.Elapsed
	x.Elapsed += shown.Elapsed
}

// add adds other reads, or with a sign of -1 takes them away.
func (r *Reads) add(o *Reads, sign int64) {
	r.LexiconBlocks += uint64(sign) * o.LexiconBlocks
	r.Words += uint64(sign) * o.Words
	r.Lists += uint64(sign) * o.Lists
	r.Postings += uint64(sign) * o.Postings
	r.Bytes += uint64(sign) * o.Bytes
	r.Units += uint64(sign) * o.Units
	r.Time += time.Duration(sign) * o.Time
}
