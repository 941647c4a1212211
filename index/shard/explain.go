package shard

import "time"

// Explanation says how the search of one shard was answered. What its nodes and Other read
// adds up to what Stats count; Reads that Stats do not have are counted here only.
type Explanation struct {
	// Nodes of the query's tree, each before its children.
	Nodes []ExplainedNode
	// Other is what was read for no node alone, and to show files.
	Other Reads
	// Phases are what the search took by phase. All goroutines of a search count.
	Phases [phases]time.Duration
	// Elapsed is how long the caller waited.
	Elapsed time.Duration
	// Candidates counts contents whose documents were looked at.
	Candidates uint64
	// Bulk counts documents that match and were only counted: none of them was looked at.
	Bulk uint64
	// SecondPass says that documents of low priority were looked at in a pass of their own.
	SecondPass bool
	// Stopped says why documents were left out that may match, in mode TopK.
	Stopped Stop
}

// ExplainedNode is a node of a query's tree.
type ExplainedNode struct {
	// Query is the node alone, without its children, as package query writes it.
	Query string
	// Depth is 0 for the root.
	Depth int
	// Methods that answer it.
	Methods Methods
	// Estimate is how many candidates were expected: contents where words alone answer,
	// superblocks of 4 KiB where n-grams lead to text, paths where they lead to names, and
	// documents, which are counted, where ranges decide.
	Estimate uint64
	// Checked counts documents that the node was asked about, Matched those it matches. One
	// that ranges decide is asked about none.
	Checked, Matched uint64
	Reads
}

// Reads say what was read, and how long that took with all that came of it.
type Reads struct {
	// LexiconBlocks that were read, and Words of them in which an atom matches.
	LexiconBlocks, Words uint64
	// Lists are posting lists that were opened, Postings those read from lists of words.
	Lists, Postings uint64
	// Bytes and Units of content that were decoded.
	Bytes, Units uint64
	Time         time.Duration
}

// Methods is a set of ways in which a node is answered.
type Methods uint16

// Ways in which a node is answered. A text that is looked for in contents and in paths has
// one of each.
const (
	// ByWords alone: no text is read to find matches.
	ByWords Methods = 1 << iota
	// ByWordsAndText: words lead to the text, in phrases together with n-grams.
	ByWordsAndText
	// ByNgramsAndText: n-grams lead to the text.
	ByNgramsAndText
	// ByCandidates: the text of what other nodes leave is read.
	ByCandidates
	// ByEveryText: nothing leads to the text.
	ByEveryText
	// ByNames: the paths that n-grams lead to are read.
	ByNames
	// ByEveryName: all paths are read.
	ByEveryName
	// ByPaths: the path of each document that other nodes leave is read.
	ByPaths
	// ByColumn: a property of the document decides.
	ByColumn
	// ByRanges: paths and columns decide, as ranges of documents that are known before any is
	// looked at.
	ByRanges
	// ByChildren: the nodes below decide.
	ByChildren
	// ByShardAll: all documents of the shard match.
	ByShardAll
	// ByShardNone: none does.
	ByShardNone
	// NotAsked: another node has excluded the shard.
	NotAsked
)

// Phase is a part of a search.
type Phase uint8

// Phases of a search.
const (
	// PhasePlan is what the others are not.
	PhasePlan Phase = iota
	// PhaseWords looks words up in the lexicon.
	PhaseWords
	// PhasePostings adds up the postings of words.
	PhasePostings
	// PhaseNames reads the paths that n-grams lead to.
	PhaseNames
	// PhaseScan decides candidates.
	PhaseScan
	// PhaseShow makes files ready to be shown.
	PhaseShow
	phases
)

// String names the phase.
func (p Phase) String() string {
	return [phases]string{"plan", "words", "postings", "names", "scan", "show"}[p]
}

// Stop says why documents were left out that may match.
type Stop uint8

// Reasons to stop.
const (
	// NotStopped means that none were.
	NotStopped Stop = iota
	// StoppedByOwn files: this shard has as many better ones as are wanted.
	StoppedByOwn
	// StoppedByFloor: other shards have (Options.Floor).
	StoppedByFloor
)

// AddShown adds what Show explains, which may be nil, to what Find does.
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
			return blobsMethod(n.planned.blobs)
		case n.verifies || e.led:
			return ByCandidates
		}
		return ByEveryText
	}
	return 0
}

// blobsMethod is what led to candidates.
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
	case anyOf:
		parts = b
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
