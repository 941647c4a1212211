package search

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/lazyregexp"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// maxHints bounds the hints of an answer. hintedTerms bounds the terms that are examined for hints, since
// each may be compared with every name. hintBytes bounds the part of a query that a hint repeats.
const (
	maxHints    = 5
	hintedTerms = 16
	hintBytes   = 200
)

// hints say what may be wrong with a query that finds nothing. They name only what the caller is
// allowed to see. They end after nearestTime, all together, and when ctx ends.
func (e *execution) hints(ctx context.Context) (hints []*searchv1.Hint) {
	if e.asked == nil || e.asked.tree != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, nearestTime)
	defer cancel()
	ctx, end := e.within(ctx)
	defer end()
	h := hinter{execution: e, text: e.asked.written, version: int(e.asked.version)}
	if h.layout.repos == 0 {
		return []*searchv1.Hint{{Text: "no repo that you may see is indexed yet: trawl index URL indexes one"}}
	}
	terms := query.Terms(h.text, h.version)
	for _, t := range terms[:min(len(terms), hintedTerms)] {
		if len(h.hints) >= maxHints || ctx.Err() != nil {
			break
		}
		switch t.Field {
		case "repo:", "r:":
			h.repo(ctx, t)
		case "lang:":
			h.language(t)
		case "branch:", "b:":
			h.branch(ctx, t)
		case "type:", "t:":
			if t.Value == "repo" {
				h.addf(t, "", "type:repo asks for repos by their files; r: asks by their names")
			}
		case "file:", "f:", "path:":
			h.path(ctx, t)
		case "", "regex:", "content:", "c:":
			h.content(ctx, t)
		}
	}
	if len(h.hints) == 0 && e.coverage.Coverage().Complete {
		h.name(ctx, e.asked.text)
	}
	return h.hints
}

// hinter collects hints about the query of an execution.
type hinter struct {
	*execution

	text    string
	version int
	hints   []*searchv1.Hint
	// cased: the query was tried in any case.
	cased bool
}

// addf adds a hint. Instead is what the term should have been; empty if unknown.
func (h *hinter) addf(t query.Term, instead, format string, args ...any) {
	hint := &searchv1.Hint{Text: fmt.Sprintf(format, args...)}
	if instead != "" {
		hint.Query = h.text[:t.Start] + instead + h.text[t.End:]
	}
	h.hints = append(h.hints, hint)
}

// quoted is a value within a hint.
func quoted(value string) string {
	if len(value) > hintBytes {
		value = strings.ToValidUTF8(value[:hintBytes], "") + "…"
	}
	return `"` + value + `"`
}

// nearestTo suggests the names that come closest to one, or returns the empty text if there are
// none.
func nearestTo(name string, names []string) (text string, best []string) {
	return suggested(searchapi.Nearest(name, names))
}

// suggested is a text with names, empty if there are none.
func suggested(best []string) (string, []string) {
	if len(best) == 0 {
		return "", nil
	}
	shown := make([]string, len(best))
	for i, n := range best {
		shown[i] = quoted(n)
	}
	return "; the nearest: " + strings.Join(shown, ", "), best
}

func (h *hinter) repo(ctx context.Context, t query.Term) {
	q, err := h.parse(t)
	if err != nil {
		return
	}
	memory, err := h.service.memoryFor(q)
	if err != nil {
		return
	}
	defer memory.Close()
	x := newExpressions(memory)
	evaluate, err := x.compile(q)
	if err != nil {
		return
	}
	some := false
	if err := h.layout.eachRepo(ctx, "", evaluate, func(*chunk, catalog.Record) bool { some = true; return false }); some || err != nil {
		return
	}
	likely := strings.NewReplacer(`\`, "", "^", "", "$", "", "(?i)", "", ".*", "").Replace(t.Value)
	text, partly := h.service.Unindexed(ctx, likely), ""
	if r, ok := q.(*query.Repo); ok && text == "" {
		text, partly = h.unindexedLike(ctx, x.of[r].matcher)
	}
	if text != "" {
		h.addf(t, "", "%s", text)
		return
	}
	near, best := suggested(h.layout.nearest(likely))
	instead := ""
	if len(best) > 0 {
		instead = t.Field + query.Quote("^"+regexp.QuoteMeta(best[0])+"$")
	}
	h.addf(t, instead, "no indexed repo that you may see has %s in its name%s%s", quoted(t.Value), near, partly)
}

// unindexedLike is Unindexed for the first registered repo whose name an expression matches; none of those that a search sees does. Without
// one, partly says if not all were looked at, which is only for callers who see all.
func (h *hinter) unindexedLike(ctx context.Context, matcher regex.Matcher) (text, partly string) {
	if h.service.cfg.Names == nil {
		return "", ""
	}
	names, more, err := h.service.cfg.Names(ctx)
	if err != nil {
		return "", ""
	}
	for _, name := range names {
		if _, _, matches := matcher.Find([]byte(name), 0); matches && access.Sees(ctx, name) {
			return h.service.Unindexed(ctx, name), ""
		}
	}
	if caller, err := access.From(ctx); more && err == nil && access.SeesAll(caller) {
		partly = fmt.Sprintf("; only the first %d registered repos were looked at for one without an index", len(names))
	}
	return "", partly
}

// parse parses a term.
func (h *hinter) parse(t query.Term) (query.Q, error) {
	return (&question{text: t.Field + query.Quote(t.Value), version: uint32(h.version)}).parse()
}

func (h *hinter) branch(ctx context.Context, t query.Term) {
	names, none := h.layout.branchesLike(ctx, t.Value)
	if !none {
		return
	}
	text, best := nearestTo(t.Value, names)
	instead := ""
	if len(best) > 0 {
		instead = t.Field + query.Quote(best[0])
	}
	h.addf(t, instead, "no branch that you may see has %s in its name%s", quoted(t.Value), text)
}

func (h *hinter) language(t query.Term) {
	languages, unknown := h.layout.languages()
	q, err := h.parse(t)
	l, known := q.(*query.Language)
	if err != nil || known && (languages[l.Name] > 0 || unknown) {
		return
	}
	if known { // it is no misspelling of another one
		h.addf(t, "", "no file that you may see is in %s", l.Name)
		return
	}
	text, best := nearestTo(t.Value, slices.Sorted(maps.Keys(languages)))
	instead := ""
	if len(best) > 0 {
		instead = t.Field + query.Quote(best[0])
	}
	h.addf(t, instead, "unknown language %s%s", quoted(t.Value), text)
}

// elsewhere maps the fields of other search engines to the fields with the same meaning
// here.
var elsewhere = map[string]string{
	"language:": "lang:", "l:": "lang:", "repository:": "repo:", "repositories:": "repo:", "project:": "repo:", "org:": "repo:", "user:": "repo:",
	"filename:": "file:", "filepath:": "file:", "symbol:": "sym:", "def:": "sym:", "function:": "sym:", "class:": "sym:", "text:": "content:",
	"in:": "", "ext:": "", "extension:": "", "rev:": "branch:", "ref:": "sym:", "path:": "file:",
}

var (
	looksLikeField = lazyregexp.New(`^[A-Za-z][A-Za-z.]*:`)
	literalCall    = lazyregexp.New(`^[\w.:>-]*\w\([\w., &*-]*\)[;{]?$`)
	folder         = lazyregexp.New(`^(?:\./)?[\w@-][\w.@-]*(?:/[\w.@-]+)*/$`)
	literalIndex   = lazyregexp.New(`^[\w.]+\[\w+\]$`)
	escapes        = strings.NewReplacer("(", `\(`, ")", `\)`, "[", `\[`, "]", `\]`, "*", `\*`, ".", `\.`, "{", `\{`)
)

// globs are the characters that a glob has and a plain path has not.
const globs = `*?[{\`

// typographic maps the characters that word processors and chat programs put in the place of those of code.
var typographic = strings.NewReplacer("“", `"`, "”", `"`, "„", `"`, "‘", "'", "’", "'", "–", "-", "—", "-", "\u00a0", " ")

// lineEnd finds the first unescaped ^ or $ of an expression at which no line can begin or end, or else its last $. It returns
// -1 if there is none. A text before ^, or after $, is never in the same line.
func lineEnd(expression string) (at int, inside bool) {
	at = -1
	for i := 0; i < len(expression); i++ {
		rest := expression[i+1:]
		switch expression[i] {
		case '\\':
			i++
		case '[':
			i += max(strings.IndexByte(rest, ']'), 0) // close enough for a hint
		case '^':
			if i > 0 && !strings.ContainsRune("(|:)\n", rune(expression[i-1])) {
				return i, true
			}
		case '$':
			if rest != "" && !strings.ContainsRune("()|?*{[.\\\n", rune(rest[0])) {
				return i, true
			}
			at = i
		}
	}
	return at, false
}

// usual is the query with the characters of a keyboard. It is empty if that is no query.
func (h *hinter) usual() string {
	var b strings.Builder
	end := 0
	for _, t := range query.Terms(h.text, h.version) {
		if !t.Quoted { // its quotes become those of the query language
			continue
		}
		b.WriteString(typographic.Replace(h.text[end:t.Start]))
		if usual := typographic.Replace(t.Value); usual != t.Value {
			b.WriteString(t.Field + query.Quote(usual))
		} else {
			b.WriteString(h.text[t.Start:t.End])
		}
		end = t.End
	}
	b.WriteString(typographic.Replace(h.text[end:]))
	if _, err := (&question{text: b.String(), version: uint32(h.version)}).parse(); err != nil {
		return ""
	}
	return b.String()
}

// quotedFilters are fields within a quoted text, as in -w 'needle r:pond' of the command line, and the text before them.
var quotedFilters = lazyregexp.New(`^(.*?) +((?:-?(?:r|repo|f|file|path|lang|b|branch):[^\s:/]\S*(?: +|$))+)$`)

// The group of a search for whole words, which -w of the command line writes.
var wholeWord = lazyregexp.New(`^(\(\?P<` + regex.WholeWord + `>(?:\\b)?)(.*?)((?:\\b)?\))$`)

// hasCapital reports whether a capital of the term makes its letters count. An escape, such as \x41, can be one.
func (h *hinter) hasCapital(t query.Term) (found bool) {
	if t.Value == strings.ToLower(t.Value) && !strings.Contains(t.Value, `\`) {
		return false
	}
	q, err := (&question{text: h.text[t.Start:t.End], version: uint32(h.version)}).parse()
	if err != nil {
		return false
	}
	query.Walk(q, func(n query.Q) bool {
		switch n := n.(type) {
		case *query.Substring:
			found = found || n.CaseSensitive
		case *query.Regexp:
			found = found || n.CaseSensitive && literalCapital(n.Tree)
		}
		return !found
	})
	return found
}

// literalCapital reports whether an expression has a capital as a literal, and not in a class such as \W.
func literalCapital(tree *syntax.Regexp) bool {
	capital := func(r rune) bool { return 'A' <= r && r <= 'Z' }
	return tree.Op == syntax.OpLiteral && tree.Flags&syntax.FoldCase == 0 && slices.ContainsFunc(tree.Rune, capital) || slices.ContainsFunc(tree.Sub, literalCapital)
}

// content adds hints about a text.
func (h *hinter) content(ctx context.Context, t query.Term) {
	if typographic.Replace(t.Value) != t.Value && len(h.hints) == 0 {
		h.hints = append(h.hints, &searchv1.Hint{Text: fmt.Sprintf(`the quotation marks, dashes or spaces in %s are not those of a keyboard; "..." quotes a text`, quoted(t.Value)), Query: h.usual()})
		return
	}
	again := func(value string) string { return t.Field + query.Quote(value) }
	group := wholeWord().FindStringSubmatch(t.Value)
	whole := group != nil
	if whole {
		t.Value = group[2]
		again = func(value string) string { return t.Field + query.Quote(group[1]+value+group[3]) }
	}
	if parts := quotedFilters().FindStringSubmatch(t.Value); parts != nil && t.Quoted {
		h.addf(t, again(parts[1])+" "+parts[2], "%s is part of the text that is looked for; as a filter it stands outside of that text", quoted(parts[2]))
		return
	}
	if whole {
		h.addf(t, t.Field+query.Quote(t.Value), "%s is looked for as a whole word, and not within longer ones", quoted(t.Value))
	}
	if at, inside := lineEnd(t.Value); inside {
		escaped := t.Value[:at] + `\` + t.Value[at:]
		h.addf(t, again(escaped), `the %[2]c of %[1]s is the beginning or the end of a line; \%[2]c is the character`, quoted(t.Value), t.Value[at])
		return
	} else if at >= 0 && !strings.HasSuffix(t.Value[:at], `\r?`) {
		h.addf(t, again(t.Value[:at]+`\r?`+t.Value[at:]), `$ of %s does not match before the carriage return of a line that ends in CRLF; \r?$ does`, quoted(t.Value))
	}
	prefix := looksLikeField().FindString(t.Value)
	operator, instead := searchapi.OperatorHint(t)
	switch {
	case operator != "":
		h.addf(t, instead, "%s", operator)
	case !t.Quoted && t.Field == "" && prefix != "" && h.field(t, prefix):
	case !t.Quoted && t.Field == "" && folder().MatchString(t.Value) && t.Value != h.text:
		below := "^" + regexp.QuoteMeta(strings.TrimPrefix(t.Value, "./"))
		h.addf(t, "file:"+query.Quote(below), "%s is a text like the others; file:%s finds files below a folder", quoted(t.Value), below)
	case literalCall().MatchString(t.Value):
		h.addf(t, again(escapes.Replace(t.Value)), `the parentheses of %s group an expression; \( and \) are parentheses of the text`, quoted(t.Value))
	case literalIndex().MatchString(t.Value):
		h.addf(t, again(escapes.Replace(t.Value)), `the brackets of %s are a class of characters; \[ and \] are brackets of the text`, quoted(t.Value))
	default:
		h.anyCase(ctx, t)
	}
}

// field suggests the field that a text was probably meant to be, if the text starts like
// one.
func (h *hinter) field(t query.Term, prefix string) bool {
	lower, value := strings.ToLower(prefix), t.Value[len(prefix):]
	if strings.HasPrefix(value, "//") || strings.HasPrefix(value, ":") || lower == "near:" {
		return false // an address, a scope, or what no version has
	}
	fields := query.Fields(h.version)
	own := query.Fields(query.MaxSyntaxVersion)
	meant, known := elsewhere[lower]
	switch {
	case slices.Contains(fields, lower):
		meant = lower
	case slices.Contains(own, lower) && lower != "rev:": // which is an error there
		instead := ""
		if lower == "path:" && value != "" && !strings.ContainsAny(value, globs) {
			instead = "file:" + query.Quote(regexp.QuoteMeta(value))
		}
		h.addf(t, instead, "%s is a field of syntax version %d of the query language, and a text in version %d, which this request asks for: set syntax_version to %[2]d",
			quoted(lower), query.MaxSyntaxVersion, h.version)
		return true
	case known && meant == "" && value != "" && lower != "in:":
		h.addf(t, "file:"+query.Quote(`\.`+regexp.QuoteMeta(strings.TrimPrefix(value, "."))+"$"), `there is no field %s; file:\.go$ finds files by the end of their names`, quoted(lower))
		return true
	case !known:
		best := searchapi.Nearest(lower, slices.DeleteFunc(fields, func(f string) bool { return len(f) < 4 }))
		if len(best) == 0 {
			return false
		}
		if meant = best[0]; searchapi.EditDistance(lower, meant) > 1 && letters(lower) != letters(meant) {
			return false
		}
	}
	if meant == "" {
		return false
	}
	h.addf(t, meant+query.Quote(value), "there is no field %s; %s is one", quoted(prefix), quoted(meant))
	return true
}

// letters returns the letters of a word in sorted order. Words that differ only in the order of
// their letters have the same result.
func letters(word string) string {
	sorted := []byte(word)
	slices.Sort(sorted)
	return string(sorted)
}
