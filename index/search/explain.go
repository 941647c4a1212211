package search

import "time"

// Explanation says how the search of one shard was answered. The reads of Nodes and Other add up to
// the Stats of the search, for the fields that Stats have.
type Explanation struct {
	// Nodes of the query's tree, each before its children.
	Nodes []ExplainedNode
	// Other counts the reads for no single node, and those to show files.
	Other Reads
	// Phases is the time by phase, summed over all goroutines of a search.
	Phases [phases]time.Duration
	// Elapsed is how long the caller waited.
	Elapsed time.Duration
	// Candidates counts contents whose documents were looked at.
	Candidates uint64
	// Bulk counts documents that match but were only counted, not looked at.
	Bulk uint64
	// WholeWords says that only whole words of the texts were looked up, not the words that hold one.
	WholeWords bool
	// Stopped says why a TopK search left out documents that may match.
	Stopped Stop
}

// ExplainedNode is a node of a query's tree.
type ExplainedNode struct {
	// Query is the node without its children, as package query writes it.
	Query string
	// Depth is 0 for the root.
	Depth int
	// Methods are the ways in which it was answered.
	Methods Methods
	// Estimate is the expected number of candidates: contents if words alone answer, superblocks of
	// 4 KiB if n-grams lead to text, paths if n-grams lead to names. If ranges decide, it is the
	// exact number of documents.
	Estimate uint64
	// Checked counts the documents that the node was asked about, Matched those that it matched. A
	// node that ranges decide is asked about none.
	Checked, Matched uint64
	Reads
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

// Methods is a set of ways to answer a node.
type Methods uint16

// Ways to answer a node. A text that is looked for in contents and paths has one for each.
const (
	// ByWords alone: no text is read to find matches.
	ByWords Methods = 1 << iota
	// ByWordsAndText: words lead to the text, in phrases together with n-grams.
	ByWordsAndText
	// ByNgramsAndText: n-grams lead to the text.
	ByNgramsAndText
	// ByCandidates: the text of the candidates of other nodes is read.
	ByCandidates
	// ByEveryText: nothing leads to the text.
	ByEveryText
	// ByNames: the paths that n-grams lead to are read.
	ByNames
	// ByEveryName: all paths are read.
	ByEveryName
	// ByPaths: the path of each candidate of other nodes is read.
	ByPaths
	// ByColumn: a property of the document decides.
	ByColumn
	// ByRanges: paths and columns decide, as ranges of documents known before any document is
	// looked at.
	ByRanges
	// ByChildren: the nodes below decide.
	ByChildren
	// ByShardAll: every document of the shard matches.
	ByShardAll
	// ByShardNone: no document of the shard matches.
	ByShardNone
	// NotAsked: another node has excluded the shard.
	NotAsked
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
	// PhaseShow makes files ready to be shown.
	PhaseShow
	phases
)

// String names the phase.
func (p Phase) String() string {
	return [phases]string{"plan", "words", "postings", "names", "scan", "show"}[p]
}

// Stop says why documents that may match were left out.
type Stop uint8

// Reasons to stop.
const (
	// NotStopped means that none were left out.
	NotStopped Stop = iota
	// StoppedByOwn: this shard has enough better files.
	StoppedByOwn
	// StoppedByFloor: other shards have enough better files (Options.Floor).
	StoppedByFloor
)

// AddShown adds the explanation of Show, which may be nil, to that of Find.
func (x *Explanation) AddShown(shown *Explanation) {
	if shown == nil {
		return
	}
	x.Other.add(shown.Other)
	for i, took := range shown.Phases {
		x.Phases[i] += took
	}
	x.Elapsed += shown.Elapsed
}

func (r *Reads) add(o Reads) {
	r.LexiconBlocks += o.LexiconBlocks
	r.Words += o.Words
	r.Lists += o.Lists
	r.Postings += o.Postings
	r.Bytes += o.Bytes
	r.Units += o.Units
	r.Time += o.Time
}

func (r *Reads) subtract(o Reads) {
	r.LexiconBlocks -= o.LexiconBlocks
	r.Words -= o.Words
	r.Lists -= o.Lists
	r.Postings -= o.Postings
	r.Bytes -= o.Bytes
	r.Units -= o.Units
}

func (e *explainer) methods(x *explained) Methods {
	if x.ranges {
		return ByRanges
	}
	switch n := x.node.(type) {
	case nil:
		return NotAsked
	case constNode:
		if n {
			return ByShardAll
		}
		return ByShardNone
	case *languageNode, *branchNode, *repoNode:
		return ByColumn
	case *atomNode:
		if e.of[n] == x {
			return e.contentMethod(n.content) | nameMethod(n.name)
		}
	}
	return ByChildren
}

func (e *explainer) contentMethod(n contentNode) Methods {
	switch n := n.(type) {
	case *wordAtom:
		return ByWords
	case *referenceAtom:
		return ByWordsAndText
	case *contentAtom:
		switch {
		case n.planned.narrow():
			return n.leads
		case n.verifies || e.led:
			return ByCandidates
		}
		return ByEveryText
	}
	return 0
}

// blobsMethod returns the methods that led to candidates.
func blobsMethod(b blobs) (m Methods) {
	var parts []blobs
	switch b := b.(type) {
	case *literalBlobs:
		if _, ok := b.cand.(*wordPlaces); ok {
			return ByWordsAndText
		}
		return ByNgramsAndText
	case allOf:
		parts = b
	case *anyOf:
		for _, p := range b.parts {
			parts = append(parts, p.blobs)
		}
	}
	for _, part := range parts {
		m |= blobsMethod(part)
	}
	return m
}

func nameMethod(a *nameAtom) Methods {
	switch {
	case a == nil:
		return 0
	case a.hits == nil:
		return ByPaths
	case a.candidates.narrow:
		return ByNames
	}
	return ByEveryName
}
