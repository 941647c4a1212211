package query

import (
	"bytes"
	"errors"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/regex"
)

// atom reads a token that stands for a text or a field.
func (p *parser) atom(tok token) (Q, error) {
	if err := p.count(); err != nil {
		return nil, err
	}
	switch tok.kind {
	case tokenArchived:
		return fact(tok, Archived)
	case tokenFork:
		return fact(tok, Fork)
	case tokenPublic:
		return fact(tok, Public)
	case tokenBranch:
		return &Branch{Pattern: string(tok.text)}, nil
	case tokenLang:
		if name := p.language(string(tok.text)); name != "" {
			return &Language{Name: name}, nil
		}
		return &Const{Value: false}, nil
	case tokenMeta:
		return p.meta(tok)
	case tokenRepo:
		tree, err := p.parseRegexp(tok, syntax.Perl)
		return &Repo{Tree: tree}, err
	case tokenSym:
		return p.symbol(tok)
	case tokenRef:
		return p.reference(tok)
	case tokenFile:
		return p.text(tok, FileName)
	case tokenPath:
		return p.path(tok)
	case tokenRev:
		return nil, &SyntaxError{tok.start, "rev:, a field that is not there yet",
			`b: for a branch that is indexed, as in b:release; write "rev:" in quotes to search for the text`}
	case tokenNear:
		return nil, &SyntaxError{tok.start, "near:, a field that is not there",
			`an expression for words within some lines, as in open(.*\n){0,3}.*close; write "near:" in quotes to search for the text`}
	case tokenContent:
		return p.text(tok, Content)
	}
	return p.text(tok, Either)
}

// count counts an atom.
func (p *parser) count() error {
	p.atoms++
	return over(LimitAtoms, p.atoms, p.limits.Atoms)
}

func fact(tok token, f Fact) (Q, error) {
	value, err := choose(tok, "yes", "no")
	return &RepoFact{Fact: f, Value: value == "yes"}, err
}

func (p *parser) meta(tok token) (Q, error) {
	colon := bytes.IndexByte(tok.text, ':')
	if colon < 0 {
		return nil, &SyntaxError{tok.at[len(tok.text)], "meta. without a colon",
			`a colon and a regular expression, as in meta.team:infra; write "meta." in quotes to search for the text`}
	}
	key := string(tok.text[:colon])
	tok.cut(colon + 1)
	tree, err := p.parseRegexp(tok, syntax.Perl)
	return &Meta{Key: key, Tree: tree}, err
}

func (p *parser) symbol(tok token) (*Symbol, error) {
	if len(tok.text) == 0 {
		return nil, &SyntaxError{tok.at[0], "nothing after sym:", "the name of a symbol or a regular expression, as in sym:NewReader"}
	}
	child, err := p.text(tok, Either)
	return &Symbol{Child: child}, err
}

func (p *parser) reference(tok token) (Q, error) {
	if len(tok.text) == 0 {
		return nil, &SyntaxError{tok.at[0], "nothing after ref:", "a name or a regular expression, as in ref:NewReader"}
	}
	child, err := p.text(tok, Content)
	return &Reference{Child: child}, err
}

// path makes the atom that looks for a glob of paths.
func (p *parser) path(tok token) (Q, error) {
	if len(tok.text) == 0 {
		return p.text(tok, FileName)
	}
	glob := string(tok.text)
	expression := tok
	expression.kind, expression.text = tokenFile, []byte(PathGlob(glob))
	expression.at = slices.Repeat(tok.at[:1], len(expression.text)+1)
	q, err := p.text(expression, FileName)
	if _, wrong := errors.AsType[*SyntaxError](err); wrong || CheckGlob(glob) != nil {
		return nil, &SyntaxError{tok.at[0], quote(glob) + " after path:", `a glob such as *.go, src/** or [a-z]*.{c,h}; write f: for a regular expression`}
	}
	return q, err
}

// onlySymbols applies type:symbol and sym.kind: to a list. A list without a text or sym: gets one
// that matches every name.
func (p *parser) onlySymbols(q Q, set settings) (Q, error) {
	some := false
	q = eachText(q, func(atom Q) Q {
		s, ok := atom.(*Symbol)
		switch {
		case !ok && !set.symbols:
			return atom
		case !ok:
			s = &Symbol{Child: atom}
		}
		if some = true; s.Kinds == 0 {
			s.Kinds = set.kinds
		}
		return s
	})
	if some {
		return q, nil
	}
	if err := p.count(); err != nil {
		return nil, err
	}
	every, err := p.symbol(token{kind: tokenSym, text: []byte("(?s:.+)")})
	every.Kinds = set.kinds
	return &And{Children: []Q{every, q}}, err
}

// eachText replaces each symbol and each text of scope Either, in a list and its groups. It leaves
// alone what a group with a type: of its own selects.
func eachText(q Q, f func(Q) Q) Q {
	switch n := q.(type) {
	case *And:
		for i, c := range n.Children {
			n.Children[i] = eachText(c, f)
		}
	case *Or:
		for i, c := range n.Children {
			n.Children[i] = eachText(c, f)
		}
	case *Not:
		n.Child = eachText(n.Child, f)
	case *Symbol:
		return f(q)
	case *Substring:
		if n.Scope == Either {
			return f(q)
		}
	case *Regexp:
		if n.Scope == Either {
			return f(q)
		}
	}
	return q
}

// text makes the atom that looks for the token's regular expression: a Substring if the expression
// is a plain text.
func (p *parser) text(tok token, scope Scope) (Q, error) {
	tree, err := p.parseRegexp(tok, Flags)
	if err != nil {
		return nil, err
	}
	if hasCapture(tree) {
		tree = withoutCaptures(tree)
	}
	if pattern, folded, ok := literal(tree); ok {
		atom := &Substring{Pattern: pattern, Scope: scope}
		if !folded { // (?i) in the pattern has decided
			p.uncased = append(p.uncased, atom)
		}
		return atom, nil
	}
	atom := &Regexp{Tree: tree, Scope: scope}
	p.uncased = append(p.uncased, atom)
	return atom, nil
}

func hasCapture(tree *syntax.Regexp) bool {
	return tree.Op == syntax.OpCapture || slices.ContainsFunc(tree.Sub, hasCapture)
}

// withoutCaptures gives the same expression without capturing groups. It parses the result again,
// so that literals separated by groups are joined: (abc)(de) is abcde.
func withoutCaptures(tree *syntax.Regexp) *syntax.Regexp {
	if regex.IsWholeWord(tree) { // which is no group but what the expression finds
		return &syntax.Regexp{Op: syntax.OpCapture, Flags: tree.Flags, Cap: 1, Name: tree.Name, Sub: []*syntax.Regexp{withoutCaptures(tree.Sub[0])}}
	}
	tree = uncapture(tree)
	// String would take a millisecond for a class such as [^/].
	joined, err := syntax.Parse(regex.Source(tree, true), Flags)
	if err != nil { // should not happen; the tree is correct, only less simple
		return tree
	}
	return joined
}

func uncapture(tree *syntax.Regexp) *syntax.Regexp {
	for i, sub := range tree.Sub {
		tree.Sub[i] = uncapture(sub)
	}
	if tree.Op == syntax.OpCapture {
		return tree.Sub[0]
	}
	return tree
}

// literal gives the text of an expression that is a plain text, in lower case if it is folded. A
// text with U+FFFD or with half of a surrogate pair does not count: matching bytes would differ
// from matching the expression.
func literal(tree *syntax.Regexp) (text string, folded, ok bool) {
	if tree.Op != syntax.OpLiteral {
		return "", false, false
	}
	folded = tree.Flags&syntax.FoldCase != 0
	runes := make([]rune, len(tree.Rune))
	for i, r := range tree.Rune {
		if r == utf8.RuneError || !utf8.ValidRune(r) {
			return "", false, false
		}
		runes[i] = r
		if folded {
			runes[i] = lower(r)
		}
	}
	return string(runes), folded, true
}

// lower gives the lower case of r if simple folding treats both as equal.
func lower(r rune) rune {
	low := unicode.ToLower(r)
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		if f == low {
			return low
		}
	}
	return r
}

// setCase decides whether an atom is case-sensitive: mode is yes, no, or auto.
func setCase(atom Q, mode string) {
	switch a := atom.(type) {
	case *Substring:
		a.CaseSensitive = mode == "yes" || mode == "auto" && hasUpper([]rune(a.Pattern))
	case *Regexp:
		a.CaseSensitive = mode == "yes" || mode == "auto" && treeHasUpper(a.Tree)
	}
}

// treeHasUpper reports whether a literal, or an end of a class's range, is an ASCII capital: \w and
// [^[] have one, \S and [^a] have none. What (?i) covers has none: the pattern has decided, and the parser
// keeps (?i:k) as K.
func treeHasUpper(tree *syntax.Regexp) bool {
	return tree.Flags&syntax.FoldCase == 0 && hasUpper(tree.Rune) || slices.ContainsFunc(tree.Sub, treeHasUpper)
}

func hasUpper(runes []rune) bool {
	return slices.ContainsFunc(runes, func(r rune) bool { return 'A' <= r && r <= 'Z' })
}
