package searchapi

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
)

// DefinitionsOf is the query of syntax version 2 for the definitions of a name, which must not
// be empty, in files that the query within matches; an empty one matches all. The matches of
// within are not shown, and do not count for the order.
func DefinitionsOf(name, within string) string { return placesOf("sym:", name, within) }

// ReferencesOf is the query for all places of a name in contents except its definitions.
func ReferencesOf(name, within string) string { return placesOf("ref:", name, within) }

func placesOf(field, name, within string) string {
	text := regexp.QuoteMeta(name)
	first, last := name[0], name[len(name)-1]
	if ngram.IsWord(first) {
		text = `\b` + text
	}
	if ngram.IsWord(last) {
		text += `\b`
	}
	if max(first, last) >= utf8.RuneSelf { // for \b, words are ASCII
		text = "(?P<" + regex.WholeWord + ">" + text + ")"
	}
	places := "(case:yes " + field + query.Quote(text) + " )"
	if strings.Trim(within, " \t") == "" {
		return places
	}
	return places + " -(-(" + within + " ) )" // matches of a negated query are not shown
}
