package search

import (
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// question is what a query asks: a text or a tree.
type question struct {
	text string
	// written is the text as the caller wrote it, which hints are about.
	written string
	tree    *searchv1.Query
	version uint32
	// sets is the number of sets of repos in the tree.
	sets int
	// answer is what the text asks of its answer, once it is parsed.
	answer query.Answer
}

// everything is a query that matches every document.
var everything = &question{}

// key identifies the question. That of a tree begins with a line break, which no query
// in the query language does.
func (q *question) key() string {
	if q.tree == nil {
		return q.text
	}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(q.tree)
	if err != nil { // a message that has been received can be sent
		return "\n" + q.tree.String()
	}
	return "\n" + string(encoded)
}

// parse parses the question.
func (q *question) parse() (query.Q, error) {
	if q.tree == nil {
		parsed, answer, err := searchapi.ParseAnswer(q.text, q.version)
		q.answer = answer
		return parsed, err
	}
	parsed, err := searchapi.ParseAny(q.text, q.tree, q.version)
	if err != nil {
		return nil, err
	}
	query.Walk(parsed, func(n query.Q) bool {
		if _, ok := n.(*query.RepoSet); ok {
			q.sets++
		}
		return true
	})
	return parsed, nil
}

// treeFor is the tree to send to the searcher of these shards of a layout: its sets name only their
// repos, as others cannot change what it finds.
func (q *question) treeFor(l *Layout, shards []searchapi.Shard) *searchv1.Query {
	if q.sets == 0 {
		return q.tree
	}
	return searchapi.TreeFor(q.tree, l.plannedIn(shards))
}
