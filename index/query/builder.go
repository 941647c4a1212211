package query

import (
	"fmt"
	"unicode/utf8"
)

// Builder makes the atoms of a query that comes as a tree, within the limits that Parse applies to
// a text. Expressions, names and keys together have at most Limits.Bytes. A Builder is for one
// query and not safe for concurrent use. The caller simplifies the tree that it makes of the atoms.
type Builder struct {
	p     parser
	bytes int
}

// NewBuilder returns a builder. It ignores the syntax version.
func NewBuilder(opts ParseOptions) *Builder {
	return &Builder{p: newParser("", opts)}
}

// Enter begins the operands of a node. Unless it fails, Leave must follow.
func (b *Builder) Enter() error { return b.p.enter() }

// Leave ends the operands of a node.
func (b *Builder) Leave() { b.p.leave() }

// Const makes a Const.
func (b *Builder) Const(value bool) (Q, error) { return &Const{Value: value}, b.take() }

// Regexp makes the atom that looks for an expression: a Substring if that is a plain text.
func (b *Builder) Regexp(expression string, caseSensitive bool, scope Scope) (Q, error) {
	kind := map[Scope]tokenKind{Either: tokenText, Content: tokenContent, FileName: tokenFile}[scope]
	return b.cased(kind, expression, caseSensitive)
}

// Symbol makes the atom that looks for an expression in the names of definitions.
func (b *Builder) Symbol(expression string, caseSensitive bool) (Q, error) {
	if expression == "" {
		return nil, &SyntaxError{0, "an empty name of a symbol", "the name of a symbol or a regular expression"}
	}
	return b.cased(tokenSym, expression, caseSensitive)
}

func (b *Builder) cased(kind tokenKind, expression string, caseSensitive bool) (Q, error) {
	b.p.uncased = b.p.uncased[:0]
	q, err := b.atom(kind, expression)
	if err != nil {
		return nil, fmt.Errorf("the expression %s: %w", quote(expression), err)
	}
	if caseSensitive {
		for _, atom := range b.p.uncased {
			setCase(atom, "yes")
		}
	}
	return q, nil
}

// Repo makes a Repo.
func (b *Builder) Repo(expression string) (Q, error) {
	q, err := b.atom(tokenRepo, expression)
	if err != nil {
		return nil, fmt.Errorf("the expression %s for names of repos: %w", quote(expression), err)
	}
	return q, nil
}

// Meta makes a Meta.
func (b *Builder) Meta(key, expression string) (Q, error) {
	q, err := b.atom(tokenMeta, key+":"+expression)
	if err != nil {
		return nil, fmt.Errorf("the expression %s for the fact %s: %w", quote(expression), quote(key), err)
	}
	if m, ok := q.(*Meta); ok && m.Key != key { // the parser ends a key at its first colon
		return nil, &SyntaxError{0, "the key " + quote(key), "a key without a colon"}
	}
	return q, nil
}

// Branch makes a Branch.
func (b *Builder) Branch(name string, exact bool) (Q, error) {
	return &Branch{Pattern: name, Exact: exact}, b.take(name)
}

// Language makes a Language from a name or alias, or Const{false} if it is unknown.
func (b *Builder) Language(name string) (Q, error) { return b.atom(tokenLang, name) }

// RepoSet makes a RepoSet. The names do not count as bytes.
func (b *Builder) RepoSet(names []string) (Q, error) { return NewRepoSet(names...), b.take() }

// RepoFact makes a RepoFact.
func (b *Builder) RepoFact(fact Fact, value bool) (Q, error) {
	return &RepoFact{Fact: fact, Value: value}, b.take()
}

// Type makes a Type.
func (b *Builder) Type(kind Kind, child Q) (Q, error) {
	if kind == KindRepo {
		if err := b.p.spent.typeRepo(b.p.limits); err != nil {
			return nil, err
		}
	}
	return &Type{Kind: kind, Child: child}, nil
}

// take counts an atom and the bytes of its texts.
func (b *Builder) take(texts ...string) error {
	for _, text := range texts {
		b.bytes += len(text)
		if !utf8.ValidString(text) {
			return &SyntaxError{validPrefix(text), "a byte that is not UTF-8", "UTF-8 text"}
		}
	}
	b.p.atoms++
	if err := over(LimitBytes, b.bytes, b.p.limits.Bytes); err != nil {
		return err
	}
	return over(LimitAtoms, b.p.atoms, b.p.limits.Atoms)
}

// atom makes the atom that the query language has for a field and a value. Positions in its errors
// are offsets in the value.
func (b *Builder) atom(kind tokenKind, value string) (Q, error) {
	if err := b.take(value); err != nil {
		return nil, err
	}
	b.p.atoms-- // the parser counts it too
	tok := token{kind: kind, text: []byte(value), at: make([]int, len(value)+1), end: len(value)}
	for i := range tok.at {
		tok.at[i] = i
	}
	return b.p.atom(tok)
}
