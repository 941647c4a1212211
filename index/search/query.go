package search

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"runtime"
	"slices"

	"github.com/trawl-search/trawl/index/literal"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// Query is a query prepared once for any number of shards, with its expressions compiled. It is
// immutable and safe for concurrent use.
type Query struct {
	tree   query.Q
	memory *regex.Memory              // nil if there is no bound
	texts  map[query.Q]*matching      // by Substring and Regexp
	repos  map[query.Q]*regexp.Regexp // by Repo and Meta
	// inContent says that a document can have ranges in its content.
	inContent bool
	// terms is the most texts that count for a document's score. asksForLow says that one of them
	// asks for documents of low priority.
	terms      int
	asksForLow bool
	// allMatch says that all of them have a range in each document. showsAll says that the ranges of all that match are shown.
	allMatch, showsAll bool
	// windows are those of all literals that the texts need. They are the same in all shards.
	windows map[regex.Literal][]ngram.Window
	// compound are the names that the words of the query make up.
	compound []*matching
	// line finds these words in one line; nil if there are none.
	line *rank.Line
	// bare are the texts that may match anywhere and must match, in their order.
	bare []*query.Substring
	// loose are the words of a match:any, in their order.
	loose []*rank.LooseWord
	// branches are those of the query outside of a Not.
	branches []*query.Branch
}

// Prepare makes a query ready. The error says why no shard can answer it: query.ErrUnresolved for a
// type:repo, or an expression that cannot be compiled.
func Prepare(q query.Q) (*Query, error) {
	return PrepareIn(nil, q)
}

// ErrMemory is returned by PrepareIn if other queries occupy the memory that the query's
// expressions need.
var ErrMemory = errors.New("other queries take the memory that the expressions of this one need")

// Estimated bytes that a query takes during and after compilation, for each of its instructions and
// each node.
const (
	instructionBytes = 1 << 10
	nodeBytes        = 4 << 10
)

// statesOfQuery is the most bytes for the states of all automata of a query, unless a single
// expression on all processors may take more.
const statesOfQuery = 16 << 20

// memoryFor reserves the memory that a query needs, and bounds the memory of its states.
func memoryFor(process *regex.Memory, q query.Q) (m *regex.Memory, ok bool) {
	if process == nil {
		return nil, true
	}
	need := instructionBytes * query.Instructions(q)
	query.Walk(q, func(query.Q) bool {
		need += nodeBytes
		return true
	})
	states := max(statesOfQuery, runtime.GOMAXPROCS(0)*regex.SearchBytes)
	m = process.Within(2 * (need + states)) // half of it is for states
	return m, m.Reserve(need)
}

// PrepareIn is Prepare within the memory of a process, which also bounds the automata. The caller
// closes the query when no search uses it any more.
func PrepareIn(process *regex.Memory, q query.Q) (*Query, error) {
	memory, ok := memoryFor(process, q)
	if !ok {
		return nil, ErrMemory
	}
	p := &Query{tree: q, memory: memory, texts: map[query.Q]*matching{}, inContent: showsContent(q), allMatch: allMatch(q), showsAll: showsAll(q)}
	p.prepareBare()
	var failed error
	query.Walk(q, func(q query.Q) bool {
		if failed == nil {
			failed = p.prepare(q)
		}
		return failed == nil
	})
	if failed != nil {
		p.Close()
		return nil, fmt.Errorf("prepare query: %w", failed)
	}
	query.WalkShown(q, p.note)
	p.windows = map[regex.Literal][]ngram.Window{}
	for _, m := range p.texts {
		for l := range regex.Literals(m.needs) {
			p.windows[l] = ngram.LiteralWindows(l.Text, l.CaseSensitive)
		}
	}
	return p, nil
}

// literalWindows returns the windows of a literal, which the caller may change.
func (s *search) literalWindows(l regex.Literal) []ngram.Window {
	if known, ok := s.query.windows[l]; ok {
		return slices.Clone(known)
	}
	return ngram.LiteralWindows(l.Text, l.CaseSensitive)
}

// note notes what a prepared node outside of a Not means for scores and results.
func (p *Query) note(q query.Q) {
	switch q := q.(type) {
	case *query.Substring:
		p.terms++
		p.asksForLow = p.asksForLow || rank.AsksForLow(q.Pattern)
	case *query.Regexp, *query.Symbol, *query.Reference:
		p.terms++
	case *query.Branch:
		p.branches = append(p.branches, q)
	case *query.Or:
		for i, text := range q.Words {
			switch c := q.Children[i]; c.(type) {
			case *query.Substring, *query.Regexp:
				word := rank.NewLooseWord(text)
				p.texts[c].loose, p.loose = word, append(p.loose, word)
			}
		}
	}
}

// prepareBare prepares what scores the texts that may match anywhere and must match: the names that
// they make up, and how close together they are.
func (p *Query) prepareBare() {
	and, ok := p.tree.(*query.And)
	if !ok {
		return
	}
	var texts []string
	var words []rank.LineWord
	for _, c := range and.Children {
		if s, ok := c.(*query.Substring); ok && s.Scope == query.Either {
			p.bare, texts = append(p.bare, s), append(texts, s.Pattern)
			words = append(words, rank.LineWord{Text: s.Pattern, CaseSensitive: s.CaseSensitive})
		}
	}
	for _, name := range rank.Compounds(texts) {
		p.compound = append(p.compound, literalMatching(name, false, query.Content))
	}
	p.line = rank.NewLine(words)
}

// Close returns the memory that PrepareIn reserved.
func (p *Query) Close() { p.memory.Close() }

// String returns the tree as text.
func (p *Query) String() string { return p.tree.String() }

func (p *Query) prepare(q query.Q) (err error) {
	switch q := q.(type) {
	case *query.Substring, *query.Regexp:
		p.texts[q], err = newMatching(q, p.memory)
	case *query.Repo:
		err = p.prepareRepo(q, q.Tree)
	case *query.Meta:
		err = p.prepareRepo(q, q.Tree)
	case *query.Symbol:
		p.texts[q], err = symbolMatching(q, p.memory)
	case *query.Reference:
		if p.texts[q], err = newMatching(q.Child, p.memory); err == nil {
			p.texts[q].outside, p.texts[q].scope = true, query.Content
			p.texts[q].maybeEmpty = false // an empty match refers to nothing
		}
	case *query.Type:
		if q.Kind == query.KindRepo {
			err = fmt.Errorf("%s: %w", q, query.ErrUnresolved)
		}
	}
	if m := p.texts[q]; m != nil {
		m.number = int32(len(p.texts))
		if m.inNames != nil {
			m.inNames.number = m.number
		}
	}
	return err
}

// prepareRepo compiles an expression that is matched with names or facts of repos.
func (p *Query) prepareRepo(q query.Q, tree *syntax.Regexp) error {
	re, err := regex.Compile(tree, true)
	if p.repos == nil {
		p.repos = map[query.Q]*regexp.Regexp{}
	}
	p.repos[q] = re
	return err
}

// showsContent reports whether a text can have ranges that are shown in the content of a document.
func showsContent(q query.Q) (shown bool) {
	query.Walk(q, func(q query.Q) bool {
		switch q := q.(type) {
		case *query.Not:
			return false // the ranges of the child are not shown
		case *query.Type:
			return q.Kind != query.KindFileName
		default:
			shown = shown || looksAtContent(q)
		}
		return true
	})
	return shown
}

// looksAtContent reports whether q is an atom that searches contents.
func looksAtContent(q query.Q) bool {
	switch q := q.(type) {
	case *query.Symbol, *query.Reference:
		return true
	case *query.Substring:
		return q.Scope != query.FileName
	case *query.Regexp:
		return q.Scope != query.FileName
	}
	return false
}

// matching says how to find the text of an atom.
type matching struct {
	// number is that of the text in the query.
	number  int32
	scope   query.Scope
	matcher regex.Matcher
	needs   regex.Needs
	reach   regex.Reach
	// maybeEmpty says that the empty text can match, sprawls that a match may go on through any lines.
	maybeEmpty, sprawls bool
	// most bounds the bytes of a match; 0 if a match may be longer than a piece.
	most int
	// literals are all texts that can match, in any context, if there are only a few.
	literals []regex.Literal
	// withinWords says that an index of words knows all matches.
	withinWords bool
	inWords     wordMatcher // finds them in words
	// inNames says how to find the text in the names of symbols, if the atom asks for those. The
	// other fields then say how to find it in the content.
	inNames *matching
	// outside excludes matches that overlap the name of a symbol.
	outside bool
	// followed says that a match may depend on the text after it.
	followed bool
	// loose is set for a word of a match:any.
	loose *rank.LooseWord
}

func newMatching(q query.Q, memory *regex.Memory) (m *matching, err error) {
	switch q := q.(type) {
	case *query.Substring:
		return literalMatching(q.Pattern, q.CaseSensitive, q.Scope), nil
	case *query.Regexp:
		m = &matching{
			scope: q.Scope, reach: regex.ReachOf(q.Tree, q.CaseSensitive), maybeEmpty: regex.MinLen(q.Tree, q.CaseSensitive) == 0, sprawls: regex.Sprawls(q.Tree),
			withinWords: regex.WithinWords(q.Tree, q.CaseSensitive), followed: true,
		}
		if most, bounded := regex.MaxLen(q.Tree, q.CaseSensitive); bounded && most <= pieceBytes && !regex.IsWholeWord(q.Tree) {
			m.most = most
		}
		if m.needs, err = regex.Analyze(q.Tree, q.CaseSensitive); err != nil {
			return nil, err
		}
		if literals, ok := regex.LiteralsOf(q.Tree, q.CaseSensitive); ok && len(literals) <= mostAlternatives {
			m.literals = literals
		}
		m.matcher, err = regex.NewMatcherIn(memory, q.Tree, q.CaseSensitive)
		m.inWords = wordMatcher{m.matcher, false}
	}
	return m, err
}

// mostAlternatives is the most texts that an expression may choose from for the search to look for
// each as a literal.
const mostAlternatives = 16

func literalMatching(text string, caseSensitive bool, scope query.Scope) *matching {
	l := regex.Literal{Text: text, CaseSensitive: caseSensitive}
	m := &matching{
		scope: scope, matcher: literal.New(text, caseSensitive), needs: l, literals: []regex.Literal{l},
		withinWords: regex.WithinWords(&syntax.Regexp{Op: syntax.OpLiteral, Rune: []rune(text)}, caseSensitive),
	}
	m.inWords = literalInWords(l)
	if most := literal.MaxLen(text, caseSensitive); most <= pieceBytes {
		m.most = most
	}
	return m
}
