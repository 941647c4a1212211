package searchapi

import (
	"fmt"

	"github.com/trawl-search/trawl/index/query"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// OperatorHint says of a term that is an operator in other search engines that it is a text in the query language, and what the operator is here,
// if there is one. The hint is empty for other terms.
func OperatorHint(t query.Term) (hint, instead string) {
	if t.Quoted {
		return "", ""
	}
	switch t.Value {
	case "OR", "||", "|":
		return fmt.Sprintf(`%q is a text: the operator is "or", in lower case`, t.Value), "or"
	case "AND", "&&", "and":
		return fmt.Sprintf(`%q is a text: terms side by side must all match without it`, t.Value), ""
	case "NOT":
		return `"NOT" is a text: a dash before a term negates it, as in -file:test`, ""
	}
	return "", ""
}

// Misread is the OperatorHint of a query that finds something with its operator as a text; nil if it has none between two terms. In lower
// case, and as a single |, an operator of other search engines is too likely to be meant as a text.
func Misread(text string, syntaxVersion int) *searchv1.Hint {
	terms := query.Terms(text, syntaxVersion)
	for i, t := range terms {
		hint, instead := OperatorHint(t)
		if hint == "" || t.Field != "" || t.Value == "and" || t.Value == "|" || i == 0 || i == len(terms)-1 {
			continue
		}
		h := &searchv1.Hint{Text: hint}
		if instead != "" {
			h.Query = text[:t.Start] + instead + text[t.End:]
		}
		return h
	}
	return nil
}
