package searchapi

import (
	"regexp"
	"strings"

	"github.com/trawl-search/trawl/index/ngram"
)

// DefinitionsOf is the query of syntax version 2 for the definitions of a name, which has not to
// be empty, in files that another query matches; an empty one matches all. Nothing that this one
// finds is shown, or counts for the order.
func DefinitionsOf(name, within string) string { return placesOf("sym:", name, within) }

// ReferencesOf is the query for all places of a name in contents but those of DefinitionsOf.
func ReferencesOf(name, within string) string { return placesOf("ref:", name, within) }

func placesOf(field, name, within string) string {
	text := regexp.QuoteMeta(name)
	if ngram.IsWord(name[0]) {
		text = `\b` + text
	}
	if ngram.IsWord(name[len(name)-1]) {
		text += `\b`
	}
	quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
	places := "(case:yes " + field + quoted + " )"
	if strings.Trim(within, " \t") == "" {
		return places
	}
	return places + " -(-(" + within + " ) )" // what is negated is not shown
}
