package searchapi

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/index/snippet"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Limits of an explanation, for any query and any number of shards.
const (
	explainedNodes = 128
	explainedText  = 120 // bytes of a node's text
	slowest        = 3   // shards and calls that are named
)

// Explanation maps the explanation of one shard. The caller may see all of its repos.
func Explanation(x *search.Explanation, shard Digest) *searchv1.Explanation {
	named := &searchv1.ExplainedShard{Digest: shard[:], Repo: x.Repo, Repos: uint64(x.Repos), Time: durationpb.New(x.Elapsed)}
	e := &searchv1.Explanation{
		Shards: 1, Other: reads(x.Other), Candidates: x.Candidates, CountedInBulk: x.Bulk,
		SlowestShards: []*searchv1.ExplainedShard{named},
	}
	if x.Inexact {
		e.Inexact = 1
	}
	for i, took := range x.Phases {
		e.Phases = append(e.Phases, ExplainedPhase(search.Phase(i).String(), took))
	}
	for _, n := range x.Nodes {
		text := n.Query
		if len(text) > explainedText {
			text = text[:snippet.RuneStart(text, explainedText)] + "…"
		}
		node := &searchv1.ExplainedNode{Query: text, Depth: uint32(n.Depth), Estimate: n.Estimate, Checked: n.Checked, Matched: n.Matched, Reads: reads(n.Reads)}
		for _, m := range n.Methods {
			node.Methods = append(node.Methods, &searchv1.ExplainedMethod{Name: m, Shards: 1})
		}
		e.Nodes = append(e.Nodes, node)
	}
	keepNodes(e, explainedNodes)
	return e
}

// ExplainedPhase is a phase and its time.
func ExplainedPhase(name string, took time.Duration) *searchv1.ExplainedPhase {
	return &searchv1.ExplainedPhase{Name: name, Time: durationpb.New(took)}
}

func reads(r search.Reads) *searchv1.Reads {
	return &searchv1.Reads{
		LexiconBlocks: r.LexiconBlocks, Words: r.Words, PostingLists: r.Lists, Postings: r.Postings,
		BytesDecoded: r.Bytes, UnitsDecoded: r.Units, Time: durationpb.New(r.Time),
	}
}

// AddExplanation adds an explanation of other shards or calls, which may be nil, to sum. It may keep
// parts of it.
func AddExplanation(sum, from *searchv1.Explanation) {
	if from == nil {
		return
	}
	addNumbers(sum.ProtoReflect(), from.ProtoReflect())
	sum.Phases = addNamed(sum.Phases, from.Phases)
	sum.SlowestShards = slowestOf(append(sum.SlowestShards, from.SlowestShards...))
	sum.SlowestCalls = slowestOf(append(sum.SlowestCalls, from.SlowestCalls...))
	sum.NodesLeftOut = max(sum.NodesLeftOut, from.NodesLeftOut)
	// The trees of two searchers differ where a type:repo matches none of the repos that one of them has.
	next := 0
	for _, n := range from.Nodes {
		i := slices.IndexFunc(sum.Nodes[next:], func(o *searchv1.ExplainedNode) bool { return o.Depth == n.Depth && o.Query == n.Query })
		if i < 0 {
			sum.Nodes = slices.Insert(sum.Nodes, next, n)
			next++
			continue
		}
		next += i + 1
		same := sum.Nodes[next-1]
		addNumbers(same.ProtoReflect(), n.ProtoReflect())
		same.Methods = addNamed(same.Methods, n.Methods)
	}
	keepNodes(sum, explainedNodes)
}

// addNumbers adds the 64-bit numbers and times of a message, and of messages in it, to those of another of its type. It leaves
// lists as they are.
func addNumbers(sum, from protoreflect.Message) {
	from.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.IsList():
		case field.Kind() == protoreflect.Uint64Kind:
			sum.Set(field, protoreflect.ValueOfUint64(sum.Get(field).Uint()+v.Uint()))
		case field.Kind() == protoreflect.MessageKind:
			to := sum.Mutable(field).Message()
			before, ok := to.Interface().(*durationpb.Duration)
			if more, both := v.Message().Interface().(*durationpb.Duration); ok && both {
				sum.Set(field, protoreflect.ValueOfMessage(durationpb.New(before.AsDuration()+more.AsDuration()).ProtoReflect()))
			} else {
				addNumbers(to, v.Message())
			}
		}
		return true
	})
}

// addNamed adds the numbers of each message to those of the one with its name.
func addNamed[T interface {
	proto.Message
	GetName() string
}](sum, from []T) []T {
	for _, f := range from {
		if i := slices.IndexFunc(sum, func(s T) bool { return s.GetName() == f.GetName() }); i >= 0 {
			addNumbers(sum[i].ProtoReflect(), f.ProtoReflect())
		} else if len(sum) < explainedNodes {
			sum = append(sum, f)
		}
	}
	return sum
}

// slowestOf keeps the slowest.
func slowestOf[T interface{ GetTime() *durationpb.Duration }](all []T) []T {
	slices.SortStableFunc(all, func(a, b T) int { return cmp.Compare(b.GetTime().AsDuration(), a.GetTime().AsDuration()) })
	n := min(len(all), slowest)
	clear(all[n:])
	return all[:n]
}

// keepNodes keeps n nodes. It adds what the others read to Other.
func keepNodes(e *searchv1.Explanation, n int) {
	n = min(n, len(e.Nodes))
	for _, left := range e.Nodes[n:] {
		addNumbers(e.ProtoReflect(), (&searchv1.Explanation{Other: left.Reads}).ProtoReflect())
		e.NodesLeftOut++
	}
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
