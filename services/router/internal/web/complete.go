package web

import (
	"context"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	indexquery "github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/lazyregexp"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

const (
	// completeTime bounds the time for completions. Completions that take longer are not offered.
	completeTime = 500 * time.Millisecond
	// maxOffers bounds the completions of a term, maxFieldOffers the fields among them.
	maxOffers, maxFieldOffers = 8, 3
	// leastName is how long the beginning of an identifier must be to be completed.
	leastName = 3
	// offerFiles and offerMatches bound the definitions that identifiers are taken from, offerPaths the files that paths are.
	offerFiles, offerMatches, offerPaths = 20, 20, 100
	// completedBytes bounds the query whose last term is completed.
	completedBytes = 2000
)

// completions are ways to go on with the query before the caret.
type completions struct {
	frame

	Offers []offer
}

// offer is one way to go on.
type offer struct {
	// Text is the query with it, as far as the caret.
	Text string
	// Shown is the part that is offered, and Note what it is.
	Shown, Note string
}

// complete offers fields, repos, paths, languages, values of fields and identifiers for the last term of a query.
func (p *Pages) complete(ctx context.Context, r *http.Request) reply {
	ctx, cancel := context.WithTimeout(ctx, completeTime)
	defer cancel()
	page := completions{frame: p.frame(r, "Completions", "")}
	if query := param(r, queryParam); len(query) <= completedBytes {
		page.Offers = newCompleter(p.cfg.Open(), query).offers(ctx)
	}
	return reply{status: http.StatusOK, template: "complete", data: page}
}

// completer completes the last term of a query.
type completer struct {
	answers Answers
	// before is the query without the term, field the prefix of the term, value what follows it.
	before, field, value string
	found                []offer
}

// newCompleter takes a query apart. A term with quotes is not completed.
func newCompleter(answers Answers, query string) *completer {
	start, quoted, hasQuotes := 0, false, false
	for i := 0; i < len(query); i++ {
		switch c := query[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted, hasQuotes = !quoted, true
		case !quoted && (c == ' ' || c == '\t'):
			start, hasQuotes = i+1, false
		}
	}
	term := strings.TrimLeft(query[start:], "-(")
	c := &completer{answers: answers, before: query[:len(query)-len(term)], value: term}
	if hasQuotes {
		c.value = ""
		return c
	}
	for _, prefix := range indexquery.Fields(syntaxVersion) {
		if value, ok := strings.CutPrefix(term, prefix); ok && len(prefix) > len(c.field) {
			c.field, c.value = prefix, value
		}
	}
	return c
}

func (c *completer) offers(ctx context.Context) []offer {
	switch c.field {
	case "repo:", "r:":
		c.repos(ctx)
	case "lang:":
		c.languages(ctx)
	case "file:", "f:":
		c.files(ctx)
	case "":
		c.fields()
		c.names(ctx)
	case "content:", "c:", "regex:", "sym:", "ref:":
		c.names(ctx)
	default:
		for _, value := range valuesOf[c.field] {
			if strings.HasPrefix(value, c.value) {
				c.add(c.field+value, value, "")
			}
		}
	}
	return c.found[:min(len(c.found), maxOffers)]
}

func (c *completer) add(term, shown, note string) {
	c.found = append(c.found, offer{Text: c.before + term, Shown: plain(cutFront(shown, nameBytes)), Note: note})
}

// fieldNotes are the fields that are offered, in order, with what they find.
var fieldNotes = []struct{ prefix, note string }{
	{"repo:", "repos by name"}, {"file:", "files by path"}, {"lang:", "files in a language"}, {"sym:", "definitions by name"},
	{"path:", "paths by a glob"}, {"content:", "text in contents"}, {"branch:", "branches by name"}, {"ref:", "uses of a name"},
	{"case:", "yes, no or auto"}, {"type:", "file, repo or symbol"}, {"select:", "list repos, folders or symbols"}, {"count:", "most files listed"},
	{"timeout:", "most time"}, {"match:", "any or all of the words"}, {"sym.kind:", "kind of definition"}, {"regex:", "text in content or path"},
	{"archived:", "archived repos"}, {"fork:", "forks"}, {"public:", "public repos"},
}

// valuesOf are the values of fields that have few.
var valuesOf = map[string][]string{
	"case:": {"yes", "no", "auto"}, "type:": {"file", "filename", "filematch", "repo", "symbol"}, "t:": {"file", "filename", "filematch", "repo", "symbol"},
	"select:": {"repo", "dir", "file", "symbol"}, "match:": {"any", "all"}, "archived:": {"yes", "no"}, "fork:": {"yes", "no"}, "public:": {"yes", "no"},
	"sym.kind:": {"function", "method", "type", "constant", "macro", "field", "variable", "module"}, "branch:": {"HEAD"}, "b:": {"HEAD"},
}

// fields offers the fields that begin with the term.
func (c *completer) fields() {
	for _, f := range fieldNotes {
		if c.value != "" && strings.HasPrefix(f.prefix, c.value) && len(c.found) < maxFieldOffers {
			c.add(f.prefix, f.prefix, f.note)
		}
	}
}

// typed is the value without what an expression adds to a name.
func (c *completer) typed() string {
	return strings.NewReplacer(`\`, "", "^", "", "$", "").Replace(c.value)
}

// repos offers the repos in whose name the value is, first those with a last part that begins with it.
func (c *completer) repos(ctx context.Context) {
	typed := c.typed()
	names, err := c.answers.RepoNames(ctx, typed)
	if err != nil {
		return
	}
	var first, others []string
	for name := range names {
		if strings.HasPrefix(path.Base(name), typed) {
			first = append(first, name)
		} else if len(others) < maxOffers {
			others = append(others, name)
		}
		if len(first) == maxOffers {
			break
		}
	}
	for _, name := range append(first, others...) {
		c.add(c.field+quote("^"+indexquery.Literal(name)+"$"), name, "repo")
	}
}

// isPath holds for a part of a path, as it stands in an expression.
var isPath = lazyregexp.New(`^\^?[\w./\\-]+$`)

// files offers the paths in which the value is, of those where the query looks: as a shell does, each as far as the next slash.
func (c *completer) files(ctx context.Context) {
	if !isPath().MatchString(c.value) {
		return
	}
	resp, err := c.answers.Search(ctx, &searchv1.SearchRequest{Query: "f:" + quote(c.value) + c.scope(), Options: &searchv1.SearchOptions{
		Mode: searchv1.Mode_MODE_TOP_K, MaxFiles: offerPaths, MaxBytes: answerBytes, SyntaxVersion: syntaxVersion,
	}})
	if err != nil {
		return
	}
	typed := c.typed()
	for _, f := range resp.GetFiles() {
		p, note, end := string(f.GetPath()), "file", "$"
		at := 0
		for at+len(typed) <= len(p) && !strings.EqualFold(p[at:at+len(typed)], typed) {
			at++
		}
		if at += len(typed); at > len(p) || !utf8.ValidString(p) {
			continue
		}
		if n := strings.IndexByte(p[at:], '/'); n >= 0 {
			p, note, end = p[:at+n+1], "folder", ""
		}
		term := c.field + quote("^"+indexquery.Literal(p)+end)
		if !slices.ContainsFunc(c.found, func(o offer) bool { return o.Text == c.before+term }) {
			c.add(term, p, note)
		}
	}
}

// languages offers the indexed languages that begin with the value.
func (c *completer) languages(ctx context.Context) {
	languages, err := c.answers.Languages(ctx)
	if err != nil {
		return
	}
	for _, name := range languages {
		if len(name) >= len(c.value) && strings.EqualFold(name[:len(c.value)], c.value) {
			c.add(c.field+quote(name), name, "language")
		}
	}
}

// isName holds for the beginning of an identifier, as it stands in an expression.
var isName = lazyregexp.New(`^\^?[A-Za-z_]\w*$`)

// names offers identifiers that begin with the value, of those that are defined where the query looks.
func (c *completer) names(ctx context.Context) {
	typed := strings.TrimPrefix(c.value, "^")
	if len(typed) < leastName || !isName().MatchString(c.value) {
		return
	}
	query := "sym:^" + typed + c.scope()
	resp, err := c.answers.Search(ctx, &searchv1.SearchRequest{Query: query, Options: &searchv1.SearchOptions{
		Mode: searchv1.Mode_MODE_TOP_K, MaxFiles: offerFiles, MaxMatchesPerFile: offerMatches, MaxBytes: answerBytes, SyntaxVersion: syntaxVersion, Symbols: true,
	}})
	if err != nil {
		return
	}
	for _, f := range resp.GetFiles() {
		for _, chunk := range f.GetChunks() {
			for _, r := range chunk.GetRanges() {
				c.name(typed, searchapi.SymbolOf(f, r))
			}
		}
	}
}

// name offers the name of a symbol once.
func (c *completer) name(typed string, s *searchv1.Symbol) {
	name := s.GetName()
	known := func(o offer) bool { return o.Shown == name }
	if len(name) < len(typed) || !strings.EqualFold(name[:len(typed)], typed) || !isName().MatchString(name) || slices.ContainsFunc(c.found, known) {
		return
	}
	text := c.field + name
	switch c.field {
	case "sym:":
		text = c.field + "^" + name + "$"
	case "ref:":
		text = c.field + `\b` + name + `\b`
	}
	c.add(text, name, searchapi.SymbolKind(s.GetKind()))
}

// scope are the terms of the query that say where it looks; none of a query with alternatives.
func (c *completer) scope() (terms string) {
	if orWord().MatchString(c.before) || strings.ContainsAny(c.before, "()") {
		return ""
	}
	for _, t := range indexquery.Terms(c.before, syntaxVersion) {
		switch t.Field {
		case "repo:", "r:", "file:", "f:", "lang:", "path:", "branch:", "b:":
			terms += " " + c.before[t.Start:t.End]
		}
	}
	return terms
}
