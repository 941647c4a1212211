package query

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/symbols"
)

// Parse reads a query and simplifies it. The empty query matches everything.
// Its errors are *SyntaxError and *LimitError.
func Parse(input string, opts ParseOptions) (Q, error) {
	q, _, err := ParseAnswer(input, opts)
	return q, err
}

// ParseAnswer is Parse for a caller that shapes the answer: it also returns what the query asks for about it.
func ParseAnswer(input string, opts ParseOptions) (Q, Answer, error) {
	p := newParser(input, opts)
	switch {
	case opts.SyntaxVersion < 0 || opts.SyntaxVersion > MaxSyntaxVersion:
		return nil, Answer{}, &LimitError{LimitVersion, opts.SyntaxVersion, MaxSyntaxVersion}
	case len(input) > p.limits.Bytes:
		return nil, Answer{}, &LimitError{LimitBytes, len(input), p.limits.Bytes}
	case !utf8.ValidString(input):
		return nil, Answer{}, &SyntaxError{validPrefix(input), "a byte that is not UTF-8", `UTF-8 text`}
	}
	q, err := p.query()
	if err != nil {
		return nil, Answer{}, err
	}
	return Simplify(q), p.answer, nil
}

func validPrefix(s string) int {
	n := 0
	for n < len(s) {
		r, size := utf8.DecodeRuneInString(s[n:])
		if r == utf8.RuneError && size == 1 {
			break
		}
		n += size
	}
	return n
}

type parser struct {
	in       string
	fields   []field
	own      bool // the language has Trawl's own fields
	pos      int
	limits   Limits
	language func(string) string
	depth    int
	atoms    int
	spent    spent
	// uncased are the atoms, in the current list and its groups, whose case no case: field has decided yet.
	uncased []Q
	// answer and returns hold the fields that apply to the whole query.
	answer  Answer
	returns settings
}

func newParser(input string, opts ParseOptions) parser {
	p := parser{in: input, fields: fields, own: opts.SyntaxVersion >= 2, language: opts.Language, limits: opts.Limits.withDefaults()}
	if p.own {
		p.fields = ownFields
	}
	if p.language == nil {
		p.language = func(name string) string { return name }
	}
	return p
}

// item is an element of a list: a query, the word or, or a directive that
// applies to the list.
type item struct {
	q        Q
	word     string // the text of q, or its expression as written, if it has no field
	or       bool
	caseMode string
	kind     *Kind
	symbols  bool         // type:symbol
	ofKind   symbols.Kind // of sym.kind:
	match    string       // of match:
	whole    bool         // applies to the whole query and has been recorded
	start    int          // in the input
}

func (p *parser) query() (Q, error) {
	q, err := p.list()
	if err != nil {
		return nil, err
	}
	if p.pos < len(p.in) {
		return nil, p.leftover()
	}
	q, err = p.apply(q, p.returns)
	for _, atom := range p.uncased {
		setCase(atom, "auto")
	}
	return q, err
}

// leftover explains why the outermost list ended before the end of the input.
func (p *parser) leftover() error {
	switch p.in[p.pos] {
	case '\n':
		return &SyntaxError{p.pos, "a line break", `a space or tab between terms; write \n or quotes to search for a line break`}
	case ')':
		return &SyntaxError{p.pos, `")"`, `a "(" somewhere before it; write \) to search for a parenthesis`}
	}
	tok, err := scan(p.in, p.fields, p.pos)
	if err == nil && tok.kind == tokenClose {
		return &SyntaxError{p.pos, quote(p.in[tok.start:tok.end]), `a "(" somewhere before it; write "\\)" to search for a quoted parenthesis`}
	}
	return &SyntaxError{p.pos, "empty quotes", "text between the quotes; leave them out to match everything"}
}

// list reads expressions up to the end or to a closing parenthesis, which it does not consume, and applies the directives
// among them.
func (p *parser) list() (Q, error) {
	outer := p.uncased
	p.uncased = nil
	items, err := p.items()
	if err != nil {
		return nil, err
	}
	operands, set := directives(items)
	if set.caseMode != "" {
		for _, atom := range p.uncased {
			setCase(atom, set.caseMode)
		}
		p.uncased = nil
	}
	p.uncased = append(outer, p.uncased...)
	q, err := p.operators(operands)
	if err == nil && set.any {
		q, err = anyText(q, operands)
	}
	if err != nil {
		return nil, err
	}
	return p.apply(q, set)
}

// apply applies the settings for symbols and for returned results to a list.
func (p *parser) apply(q Q, set settings) (_ Q, err error) {
	if set.symbols || set.kinds != 0 {
		q, err = p.onlySymbols(q, set)
	}
	if err == nil && set.kind != nil {
		q = &Type{Kind: *set.kind, Child: q}
	}
	return q, err
}

// settings are the effects of a list's directives.
type settings struct {
	caseMode string
	kind     *Kind
	symbols  bool            // texts are names of symbols
	kinds    symbols.KindSet // of symbols
	any      bool            // of the texts
}

// directives separates the settings from the operands of a list. The last case: counts, the first type: in the order of
// kinds, and every sym.kind:.
func directives(items []item) (operands []item, set settings) {
	for _, it := range items {
		switch {
		case it.whole:
		case it.caseMode != "":
			set.caseMode = it.caseMode
		case it.symbols:
			set.symbols = true
		case it.ofKind != 0:
			set.kinds.Add(it.ofKind)
		case it.match != "":
			set.any = it.match == "any"
		case it.kind != nil:
			if set.kind == nil || *it.kind < *set.kind {
				set.kind = it.kind
			}
		default:
			operands = append(operands, it)
		}
	}
	return operands, set
}

func (p *parser) items() ([]item, error) {
	var items []item
	for {
		p.skipSpace()
		tok, err := scan(p.in, p.fields, p.pos)
		if err != nil {
			return nil, err
		}
		switch tok.kind {
		case tokenNone, tokenClose:
			return items, nil
		case tokenOr:
			items = append(items, item{or: true, start: tok.start})
			p.pos = tok.end
			continue
		}
		it, err := p.expression(tok)
		if err != nil {
			return nil, err
		}
		items = append(items, it)
	}
}

func (p *parser) skipSpace() {
	for p.pos < len(p.in) && (p.in[p.pos] == ' ' || p.in[p.pos] == '\t') {
		p.pos++
	}
}

// operators makes a disjunction of conjunctions from the operands of a list.
func (p *parser) operators(items []item) (Q, error) {
	or, and := &Or{}, &And{}
	var last *item
	for i := range items {
		it := &items[i]
		if !it.or {
			and.Children = append(and.Children, it.q)
			continue
		}
		if len(and.Children) == 0 {
			return nil, &SyntaxError{it.start, `"or" with nothing to its left`, orAdvice}
		}
		or.Children = append(or.Children, and)
		and, last = &And{}, it
	}
	if last != nil && len(and.Children) == 0 {
		return nil, &SyntaxError{last.start, `"or" with nothing to its right`, orAdvice}
	}
	or.Children = append(or.Children, and)
	return or, nil
}

const orAdvice = `a term on each side of it (case: and type: are none, they apply to the whole list); write "or" in quotes to search for the word`

// anyText turns the texts of a list that have no field into alternatives: one of them is enough, and rarer ones count more.
func anyText(list Q, operands []item) (Q, error) {
	loose, and := &Or{}, &And{}
	for i := range operands {
		it := &operands[i]
		if it.or {
			return nil, &SyntaxError{it.start, `"or" in a list with match:any`, `words alone: any of them may match, so leave out the or`}
		}
		if it.word != "" {
			loose.Words, loose.Children = append(loose.Words, it.word), append(loose.Children, it.q)
		} else {
			and.Children = append(and.Children, it.q)
		}
	}
	if len(loose.Children) == 0 {
		return list, nil
	}
	and.Children = append(and.Children, loose)
	return and, nil
}

// expression reads the expression that begins with tok.
func (p *parser) expression(tok token) (item, error) {
	p.pos = tok.end
	it := item{start: tok.start}
	var err error
	switch tok.kind {
	case tokenMinus:
		it.q, err = p.negation(tok)
	case tokenOpen:
		it.q, err = p.group(tok)
	case tokenCase:
		it.caseMode, err = choose(tok, "yes", "no", "auto")
	case tokenType:
		if it.symbols = p.own && string(tok.text) == "symbol"; !it.symbols {
			it.kind, err = p.kind(tok)
		}
	case tokenMatch:
		it.match, err = choose(tok, "any", "all")
	case tokenSymKind:
		var name string
		name, err = choose(tok, symbols.Kinds()...)
		it.ofKind, _ = symbols.KindOf(name)
	case tokenCount, tokenTimeout, tokenSelect:
		it.whole, err = true, p.ofAnswer(tok)
	default:
		it.q, err = p.atom(tok)
		it.word = wordOf(it.q, tok)
	}
	return it, err
}

// wordOf returns the word that the atom of a token is for match:any.
func wordOf(q Q, tok token) string {
	switch q := q.(type) {
	case *Substring:
		if q.Scope == Either {
			return q.Pattern
		}
	case *Regexp:
		if q.Scope == Either {
			return string(tok.text)
		}
	}
	return ""
}

func (p *parser) negation(minus token) (Q, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	p.skipSpace()
	tok, err := scan(p.in, p.fields, p.pos)
	if err != nil {
		return nil, err
	}
	switch tok.kind {
	case tokenNone, tokenClose, tokenOr:
		return nil, &SyntaxError{minus.start, `"-" with nothing to negate`, `a term after it, as in -file:test; write \- to search for a dash`}
	}
	it, err := p.expression(tok)
	if err != nil {
		return nil, err
	}
	if it.q == nil {
		return nil, &SyntaxError{minus.start, fmt.Sprintf(`"-" before %s`, tok.field),
			tok.field + " without the dash: it is a setting of its list and cannot be negated"}
	}
	return &Not{Child: it.q}, nil
}

func (p *parser) group(open token) (Q, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	q, err := p.list()
	if err != nil {
		return nil, err
	}
	tok, err := scan(p.in, p.fields, p.pos)
	if err != nil {
		return nil, err
	}
	switch {
	case tok.kind == tokenClose:
	case p.pos < len(p.in):
		return nil, p.leftover()
	default:
		return nil, &SyntaxError{p.pos, "the end of the query", fmt.Sprintf(`")" for the "(" at byte %d; write \( to search for a parenthesis`, open.start)}
	}
	p.pos = tok.end
	return q, nil
}

func (p *parser) enter() error {
	if p.depth++; p.depth > p.limits.Depth {
		return &LimitError{LimitDepth, p.depth, p.limits.Depth}
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

func (p *parser) kind(tok token) (*Kind, error) {
	names := []string{"filematch", "filename", "file", "repo"}
	if p.own {
		names = append(names, "symbol")
	}
	name, err := choose(tok, names...)
	kinds := map[string]Kind{"filematch": KindFileMatch, "filename": KindFileName, "file": KindFileName, "repo": KindRepo}
	kind := kinds[name]
	if err == nil && kind == KindRepo {
		err = p.spent.typeRepo(p.limits)
	}
	return &kind, err
}

// choose returns the token's text if it is one of the values.
func choose(tok token, values ...string) (string, error) {
	for _, v := range values {
		if string(tok.text) == v {
			return v, nil
		}
	}
	n := len(values) - 1
	return "", &SyntaxError{tok.at[0], quote(string(tok.text)) + " after " + tok.field,
		strings.Join(values[:n], ", ") + " or " + values[n]}
}

// quote quotes text for a message. It cuts long text.
func quote(text string) string {
	const most = 40
	if text == "" {
		return "nothing"
	}
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r == '"' || !unicode.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return `"` + text + `"`
}

// parseRegexp parses the text of a token within the limits.
func (p *parser) parseRegexp(tok token, flags syntax.Flags) (*syntax.Regexp, error) {
	if err := p.spent.text(tok.text, p.limits); err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(string(tok.text), flags)
	if bad, ok := errors.AsType[*syntax.Error](err); ok {
		return nil, p.regexpError(tok, flags, bad)
	} else if err != nil {
		return nil, &SyntaxError{tok.start, quote(string(tok.text)), "a regular expression: " + err.Error()}
	}
	return tree, p.spent.expression(tree, tok.kind, p.limits)
}
