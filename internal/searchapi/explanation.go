package searchapi

import (
	"cmp"
	"slices"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/index/search"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Limits of an explanation, for any query and any number of shards.
const (
	explainedNodes = 128
	explainedText  = 120 // bytes of a node's text
	slowest        = 3   // shards and calls that are named
)

// Explanation maps the explanation of one shard. The caller may see all of its repos.
func Explanation(x *search.Explanation, s Shard) *searchv1.Explanation {
	e := &searchv1.Explanation{
		Shards: 1, Other: reads(x.Other), Candidates: x.Candidates, CountedInBulk: x.Bulk,
		StoppedByOwnFiles: count(x.Stopped == search.StoppedByOwn), StoppedByOtherShards: count(x.Stopped == search.StoppedByFloor),
		WholeWords:    count(x.WholeWords),
		SlowestShards: []*searchv1.ExplainedShard{{Digest: s.Digest[:], Repos: uint64(len(s.Repos)), Time: durationpb.New(x.Elapsed)}},
	}
	if len(s.Repos) > 0 {
		e.SlowestShards[0].Repo = s.Repos[0]
	}
	for i, took := range x.Phases {
		e.Phases = append(e.Phases, ExplainedPhase(search.Phase(i).String(), took))
	}
	for i := range x.Nodes {
		n := &x.Nodes[i]
		e.Nodes = append(e.Nodes, &searchv1.ExplainedNode{
			Query: beginning(n.Query), Depth: uint32(n.Depth), Methods: methods(n.Methods),
			Estimate: n.Estimate, Checked: n.Checked, Matched: n.Matched, Reads: reads(n.Reads),
		})
	}
	keepNodes(e, explainedNodes)
	return e
}

// ExplainedPhase is a phase and its time.
func ExplainedPhase(name string, took time.Duration) *searchv1.ExplainedPhase {
	return &searchv1.ExplainedPhase{Name: name, Time: durationpb.New(took)}
}

func count(is bool) uint64 {
	if is {
		return 1
	}
	return 0
}

// beginning is the part of a node's text that an explanation shows.
func beginning(text string) string {
	if len(text) <= explainedText {
		return text
	}
	n := explainedText
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}

// methods maps a set: its bits are in the order of the enum.
func methods(m search.Methods) (some []*searchv1.ExplainedMethod) {
	for bit, method := search.Methods(1), searchv1.AnswerMethod(1); bit <= search.NotAsked; bit, method = bit<<1, method+1 {
		if m&bit != 0 {
			some = append(some, &searchv1.ExplainedMethod{Method: method, Shards: 1})
		}
	}
	return some
}

func reads(r search.Reads) *searchv1.Reads {
	return &searchv1.Reads{
		LexiconBlocks: r.LexiconBlocks, Words: r.Words, PostingLists: r.Lists, Postings: r.Postings,
		BytesDecoded: r.Bytes, UnitsDecoded: r.Units, Time: durationpb.New(r.Time),
	}
}

// AddExplanation adds an explanation of other shards, which may be nil, to sum. It may keep
// parts of it.
func AddExplanation(sum, from *searchv1.Explanation) {
	if from == nil {
		return
	}
	sum.Shards += from.Shards
	sum.Candidates += from.Candidates
	sum.CountedInBulk += from.CountedInBulk
	sum.StoppedByOwnFiles += from.StoppedByOwnFiles
	sum.StoppedByOtherShards += from.StoppedByOtherShards
	sum.WholeWords += from.WholeWords
	sum.Other = addReads(sum.Other, from.Other)
	sum.Phases = addPhases(sum.Phases, from.Phases)
	sum.NodesLeftOut = max(sum.NodesLeftOut, from.NodesLeftOut)
	sum.Nodes = mergeNodes(sum.Nodes, from.Nodes)
	keepNodes(sum, explainedNodes)
	sum.SlowestShards = slowestOf(append(sum.SlowestShards, from.SlowestShards...))
}

// AddExplainedCall adds a call to a searcher.
func AddExplainedCall(sum *searchv1.Explanation, call *searchv1.ExplainedCall) {
	sum.Calls++
	sum.SlowestCalls = slowestOf(append(sum.SlowestCalls, call))
}

// slowestOf keeps the slowest.
func slowestOf[T interface{ GetTime() *durationpb.Duration }](all []T) []T {
	slices.SortStableFunc(all, func(a, b T) int { return cmp.Compare(b.GetTime().AsDuration(), a.GetTime().AsDuration()) })
	n := min(len(all), slowest)
	clear(all[n:])
	return all[:n]
}

func addReads(sum, from *searchv1.Reads) *searchv1.Reads {
	if sum == nil || from == nil {
		return cmp.Or(sum, from)
	}
	sum.LexiconBlocks += from.LexiconBlocks
	sum.Words += from.Words
	sum.PostingLists += from.PostingLists
	sum.Postings += from.Postings
	sum.BytesDecoded += from.BytesDecoded
	sum.UnitsDecoded += from.UnitsDecoded
	sum.Time = durationpb.New(sum.Time.AsDuration() + from.Time.AsDuration())
	return sum
}

func addPhases(sum, from []*searchv1.ExplainedPhase) []*searchv1.ExplainedPhase {
	for _, f := range from {
		if i := slices.IndexFunc(sum, func(p *searchv1.ExplainedPhase) bool { return p.Name == f.Name }); i >= 0 {
			sum[i].Time = durationpb.New(sum[i].Time.AsDuration() + f.Time.AsDuration())
		} else if len(sum) < explainedNodes {
			sum = append(sum, f)
		}
	}
	return sum
}

// mergeNodes merges lists of trees. The trees of two searchers are mostly the same; they
// differ where a type:repo matches none of the repos that one of them has.
func mergeNodes(sum, from []*searchv1.ExplainedNode) []*searchv1.ExplainedNode {
	if slices.EqualFunc(sum, from, func(a, b *searchv1.ExplainedNode) bool { return a.Depth == b.Depth && a.Query == b.Query }) {
		for i, n := range from {
			addNode(sum[i], n)
		}
		return sum
	}
	trees := treesOf(sum)
	mine := len(trees)
	merged := make([]bool, mine)
	for _, other := range treesOf(from) {
		i := 0
		for i < mine && (merged[i] || trees[i][0].Query != other[0].Query) {
			i++
		}
		if i == mine {
			trees = append(trees, other)
			continue
		}
		merged[i] = true
		addNode(trees[i][0], other[0])
		trees[i] = append([]*searchv1.ExplainedNode{trees[i][0]}, mergeNodes(trees[i][1:], other[1:])...)
	}
	return slices.Concat(trees...)
}

// treesOf cuts nodes into trees. Each root is no deeper than the first node.
func treesOf(nodes []*searchv1.ExplainedNode) (trees [][]*searchv1.ExplainedNode) {
	for len(nodes) > 0 {
		n := 1
		for n < len(nodes) && nodes[n].Depth > nodes[0].Depth {
			n++
		}
		trees, nodes = append(trees, nodes[:n:n]), nodes[n:]
	}
	return trees
}

func addNode(sum, from *searchv1.ExplainedNode) {
	sum.Estimate += from.Estimate
	sum.Checked += from.Checked
	sum.Matched += from.Matched
	sum.Reads = addReads(sum.Reads, from.Reads)
	for _, f := range from.Methods {
		if i := slices.IndexFunc(sum.Methods, func(m *searchv1.ExplainedMethod) bool { return m.Method == f.Method }); i >= 0 {
			sum.Methods[i].Shards += f.Shards
		} else if len(sum.Methods) < len(searchv1.AnswerMethod_name) {
			sum.Methods = append(sum.Methods, f)
		}
	}
	slices.SortStableFunc(sum.Methods, func(a, b *searchv1.ExplainedMethod) int {
		return cmp.Or(cmp.Compare(b.Shards, a.Shards), cmp.Compare(a.Method, b.Method))
	})
}

// keepNodes keeps n nodes. It adds what the others read to Other.
func keepNodes(e *searchv1.Explanation, n int) {
	if len(e.Nodes) <= n {
		return
	}
	for _, left := range e.Nodes[n:] {
		e.Other = addReads(e.Other, left.Reads)
	}
	e.NodesLeftOut += uint64(len(e.Nodes) - n)
	e.Nodes = slices.Clip(e.Nodes[:n])
}

// TrimExplanation leaves out nodes, and finally everything, until the explanation
// fits into room bytes of a message. It changes e.
func TrimExplanation(e *searchv1.Explanation, room int) *searchv1.Explanation {
	for n := len(e.GetNodes()); n > 0 && proto.Size(e) > room; n /= 2 {
		keepNodes(e, n/2)
	}
	if proto.Size(e) > room {
		return nil
	}
	return e
}
