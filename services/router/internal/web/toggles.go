package web

import (
	"regexp"
	"slices"
	"strings"

	indexquery "github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/lazyregexp"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// toggle is a way to read the texts of a query, which a link turns on or off by writing the query anew.
type toggle struct {
	Name, Title string
	On          bool
	URL         string
}

// toggles are those that make another query of this one.
func toggles(query string) (all []toggle) {
	add := func(name, title string, on bool, changed string) {
		if _, err := searchapi.Parse(changed, syntaxVersion); err != nil || changed == "" || changed == query || len(changed) > maxURL {
			return
		}
		all = append(all, toggle{name, title, on, searchURL(changed)})
	}
	terms := indexquery.Terms(query, syntaxVersion)
	on, changed := matchCase(query, terms)
	add("Aa", "Match the case of letters", on, changed)
	on, changed = wholeWords(query, terms)
	add("\\b", "Match whole words", on, changed)
	on, changed = asItIs(query, terms)
	add("“ ”", "Match the text as it is, not as a regular expression", on, changed)
	return all
}

// matchCase adds case:yes, or leaves it out.
func matchCase(query string, terms []indexquery.Term) (on bool, changed string) {
	for _, t := range slices.Backward(terms) {
		if t.Field == "case:" {
			on = on || t.Value == "yes"
			query = query[:t.Start] + query[t.End:]
		}
	}
	if on {
		return on, strings.TrimSpace(query)
	}
	return on, narrow(query, "case:yes")
}

var (
	word        = lazyregexp.New(`^\w+$`)
	bordered    = lazyregexp.New(`^\\b(\w+)\\b$`)
	ofTexts     = []string{"", "content:", "c:"}
	escapedByte = lazyregexp.New(`\\([^\w\s])`)
)

// wholeWords puts borders at the texts that are words, or takes them away.
func wholeWords(query string, terms []indexquery.Term) (on bool, changed string) {
	texts := slices.DeleteFunc(slices.Clone(terms), func(t indexquery.Term) bool {
		return !slices.Contains(ofTexts, t.Field) || !word().MatchString(t.Value) && !bordered().MatchString(t.Value)
	})
	on = len(texts) > 0 && !slices.ContainsFunc(texts, func(t indexquery.Term) bool { return word().MatchString(t.Value) })
	for _, t := range slices.Backward(texts) {
		value := bordered().ReplaceAllString(t.Value, "$1")
		if !on {
			value = `\b` + value + `\b`
		}
		query = query[:t.Start] + t.Field + quote(value) + query[t.End:]
	}
	return on, query
}

// asItIs makes a query of texts one text without operators, or the other way round.
func asItIs(query string, terms []indexquery.Term) (on bool, changed string) {
	if len(terms) == 1 && terms[0].Field == "" && terms[0].Quoted && terms[0].Start == 0 && terms[0].End == len(query) {
		text := escapedByte().ReplaceAllString(terms[0].Value, "$1")
		if on = regexp.QuoteMeta(text) == terms[0].Value; !on {
			text = ""
		}
		return on, text
	}
	if slices.ContainsFunc(terms, func(t indexquery.Term) bool { return t.Field != "" || t.Quoted }) {
		return false, ""
	}
	return false, quote(regexp.QuoteMeta(strings.TrimSpace(query)))
}
