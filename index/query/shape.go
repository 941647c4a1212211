package query

import (
	"fmt"
	"math/bits"
	"regexp/syntax"
	"slices"
	"strings"
)

// plainInstructions is the most instructions of a query without a shape: so small a query cannot be
// expensive because of its structure.
const plainInstructions = 100

// Shape is what queries that differ only in texts and figures have in common: the size of the
// query, and the operators on the path to its costliest expression, with counts rounded to powers
// of two. The other parts of the query change only the size, so that there are few shapes. A query
// of at most 100 instructions has none: its shape is "".
func Shape(q Q) string {
	size := Instructions(q)
	if size <= plainInstructions {
		return ""
	}
	var costliest *syntax.Regexp
	field := "text"
	consider := func(name string, tree *syntax.Regexp) {
		if costliest == nil || instructions(tree) > instructions(costliest) {
			costliest, field = tree, name
		}
	}
	Walk(q, func(q Q) bool {
		switch q := q.(type) {
		case *Regexp:
			consider("text", q.Tree)
		case *Repo:
			consider("repo", q.Tree)
		case *Meta:
			consider("meta", q.Tree)
		}
		return true
	})
	var b strings.Builder
	fmt.Fprintf(&b, "2^%d %s", bits.Len(uint(size)), field)
	if costliest != nil {
		writeSpine(&b, costliest)
	}
	return b.String()
}

// writeSpine writes the operators from the root of an expression to its costliest leaf.
func writeSpine(b *strings.Builder, tree *syntax.Regexp) {
	switch tree.Op {
	case syntax.OpRepeat:
		fmt.Fprintf(b, " {2^%d}", bits.Len(uint(max(tree.Min, tree.Max, 1))))
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		b.WriteString(" loop")
	case syntax.OpAlternate:
		b.WriteString(" |")
	case syntax.OpCapture, syntax.OpConcat:
	case syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteString(" runes")
	default:
		b.WriteString(" place")
	}
	if len(tree.Sub) > 0 {
		writeSpine(b, slices.MaxFunc(tree.Sub, func(x, y *syntax.Regexp) int { return instructions(x) - instructions(y) }))
	}
}
