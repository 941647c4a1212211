package searchapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// explained is the explanation of a shard for a query with that many nodes below an
// and.
func explained(number, nodes int) *searchv1.Explanation {
	x := &search.Explanation{Elapsed: time.Duration(number) * time.Millisecond, Candidates: 2, Bulk: 1, Inexact: true}
	x.Nodes = append(x.Nodes, &search.ExplainedNode{Query: "and", Checked: 3, Reads: search.Reads{Lists: 1}})
	for i := range nodes {
		x.Nodes = append(x.Nodes, &search.ExplainedNode{
			Query: fmt.Sprint(i, strings.Repeat("é", 100)), Depth: 1, Methods: []string{search.ByWords, search.ByNames}, Reads: search.Reads{Lists: 1},
		})
	}
	x.Repo, x.Repos = fmt.Sprint("repo", number), 2
	return searchapi.Explanation(x, searchapi.Digest{})
}

// TestExplanationsOfManyShards: the sum of many explanations is as large as one.
func TestExplanationsOfManyShards(t *testing.T) {
	const shards, nodes = 300, 130
	sum := &searchv1.Explanation{}
	for i := range shards {
		searchapi.AddExplanation(sum, explained(i, nodes))
		call := &searchv1.ExplainedCall{Searcher: fmt.Sprint(i)}
		searchapi.AddExplanation(sum, &searchv1.Explanation{Calls: 1, SlowestCalls: []*searchv1.ExplainedCall{call}})
	}
	if size := proto.Size(sum); size > 40_000 || len(sum.Nodes) != 128 || sum.NodesLeftOut != nodes+1-128 {
		t.Errorf("%d bytes, %d nodes and %d left out", size, len(sum.Nodes), sum.NodesLeftOut)
	}
	lists := sum.Other.PostingLists
	for _, n := range sum.Nodes {
		lists += n.Reads.PostingLists
	}
	if lists != shards*(nodes+1) {
		t.Errorf("%d lists were read", lists)
	}
	if sum.Shards != shards || sum.Candidates != 2*shards || sum.CountedInBulk != shards ||
		sum.Inexact != shards || sum.Calls != shards {
		t.Errorf("the sums are %v", sum)
	}
	if n := sum.Nodes[1]; len(n.Methods) != 2 || n.Methods[0].Shards != shards || n.Methods[0].Name != search.ByWords {
		t.Errorf("a node is answered by %v", n.Methods)
	}
	if s := sum.SlowestShards; len(s) != 3 || s[0].Repo != fmt.Sprint("repo", shards-1) || s[2].Repo != fmt.Sprint("repo", shards-3) || s[0].Repos != 2 {
		t.Errorf("the slowest are %v", s)
	}
	for room := proto.Size(sum); room > 0; room /= 3 {
		if size := proto.Size(searchapi.TrimExplanation(proto.CloneOf(sum), room)); size > room {
			t.Errorf("%d bytes where there is room for %d", size, room)
		}
	}
}

// TestExplanationsOfDifferentTrees: where trees differ, each node stays below its own.
func TestExplanationsOfDifferentTrees(t *testing.T) {
	tree := func(nodes string) *searchv1.Explanation {
		e := &searchv1.Explanation{}
		for n := range strings.FieldsSeq(nodes) {
			name := strings.TrimLeft(n, ".")
			e.Nodes = append(e.Nodes, &searchv1.ExplainedNode{Query: name, Depth: uint32(len(n) - len(name)), Checked: 1})
		}
		return e
	}
	for _, tt := range []struct{ one, two, want string }{
		{"and .a .b", "and .a .b", "and=2 .a=2 .b=2"},
		{"and .or ..a ..b .c", "and .or ..b ..d .c", "and=2 .or=2 ..a=1 ..b=2 ..d=1 .c=2"},
		{"and .a .a", "and .a", "and=2 .a=2 .a=1"},
		{"none", "and .a", "and=1 .a=1 none=1"},
		{"", "a", "a=1"},
	} {
		sum := tree(tt.one)
		searchapi.AddExplanation(sum, tree(tt.two))
		searchapi.AddExplanation(sum, nil)
		var got []string
		for _, n := range sum.Nodes {
			got = append(got, fmt.Sprintf("%s%s=%d", strings.Repeat(".", int(n.Depth)), n.Query, n.Checked))
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s and %s: %s, want %s", tt.one, tt.two, got, tt.want)
		}
	}
}

// TestExplanationsWithoutOther: the reads of nodes that are left out count, also if nothing else was read.
func TestExplanationsWithoutOther(t *testing.T) {
	e := &searchv1.Explanation{}
	for i := range 200 {
		e.Nodes = append(e.Nodes, &searchv1.ExplainedNode{Query: fmt.Sprint(i), Reads: &searchv1.Reads{Words: 1}})
	}
	sum := &searchv1.Explanation{}
	searchapi.AddExplanation(sum, e)
	if len(sum.Nodes) != 128 || sum.NodesLeftOut != 72 || sum.Other.GetWords() != 72 {
		t.Errorf("%d nodes, %d left out, %v", len(sum.Nodes), sum.NodesLeftOut, sum.Other)
	}
}
