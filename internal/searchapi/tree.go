package searchapi

import (
	"errors"
	"regexp"

	"google.golang.org/grpc/codes"

	"github.com/trawl-search/trawl/index/query"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// ParseAny parses a query that is a text or a tree, as every role of this version does.
// Its error is a status.
func ParseAny(text string, tree *searchv1.Query, syntaxVersion uint32) (query.Q, error) {
	if tree == nil {
		return Parse(text, syntaxVersion)
	}
	if text != "" {
		return nil, FieldError(codes.InvalidArgument, "tree", "the request has a query too: send one of them")
	}
	r := treeReader{query.NewBuilder(query.ParseOptions{Language: languageName})}
	q, err := r.read(tree)
	if err != nil {
		return nil, QueryError("tree", err)
	}
	return query.Simplify(q), nil
}

// Errors of trees.
var (
	errNoNode   = errors.New("a node of the tree has no kind: set one of its fields")
	errNoScope  = errors.New("the text has an unknown scope")
	errNoFact   = errors.New("the fact is unknown: want archived, fork or public")
	errNoResult = errors.New("what to return is unknown: want file matches, file names or repos")
)

type treeReader struct{ *query.Builder }

func (r treeReader) read(tree *searchv1.Query) (query.Q, error) {
	switch n := tree.GetNode().(type) {
	case *searchv1.Query_All:
		return r.Const(n.All)
	case *searchv1.Query_And:
		operands, err := r.operands(n.And)
		return &query.And{Children: operands}, err
	case *searchv1.Query_Or:
		operands, err := r.operands(n.Or)
		return &query.Or{Children: operands}, err
	case *searchv1.Query_Not:
		child, err := r.inner(n.Not)
		return &query.Not{Child: child}, err
	case *searchv1.Query_Text:
		return r.text(n.Text)
	case *searchv1.Query_Repo:
		return r.Repo(n.Repo)
	case *searchv1.Query_Repos:
		return r.RepoSet(n.Repos.GetNames())
	case *searchv1.Query_Branch:
		return r.Branch(n.Branch.GetName(), n.Branch.GetExact())
	case *searchv1.Query_Language:
		return r.Language(n.Language)
	case *searchv1.Query_Meta:
		return r.Meta(n.Meta.GetKey(), n.Meta.GetExpression())
	case *searchv1.Query_Fact:
		return r.fact(n.Fact)
	case *searchv1.Query_Returned:
		return r.returned(n.Returned)
	}
	return nil, errNoNode
}

// inner reads an operand, one level down.
func (r treeReader) inner(tree *searchv1.Query) (query.Q, error) {
	if err := r.Enter(); err != nil {
		return nil, err
	}
	defer r.Leave()
	return r.read(tree)
}

func (r treeReader) operands(o *searchv1.Operands) ([]query.Q, error) {
	if len(o.GetQueries()) == 0 {
		_, err := r.Const(true) // it counts as one
		return nil, err
	}
	operands := make([]query.Q, 0, len(o.GetQueries()))
	for _, tree := range o.GetQueries() {
		q, err := r.inner(tree)
		if err != nil {
			return nil, err
		}
		operands = append(operands, q)
	}
	return operands, nil
}

func (r treeReader) text(t *searchv1.Text) (query.Q, error) {
	expression := t.GetPattern()
	if !t.GetRegexp() {
		expression = regexp.QuoteMeta(expression)
	}
	switch t.GetScope() {
	case searchv1.TextScope_TEXT_SCOPE_UNSPECIFIED:
		return r.Regexp(expression, t.GetCaseSensitive(), query.Either)
	case searchv1.TextScope_TEXT_SCOPE_CONTENT:
		return r.Regexp(expression, t.GetCaseSensitive(), query.Content)
	case searchv1.TextScope_TEXT_SCOPE_PATH:
		return r.Regexp(expression, t.GetCaseSensitive(), query.FileName)
	case searchv1.TextScope_TEXT_SCOPE_DEFINITION:
		return r.Symbol(expression, t.GetCaseSensitive())
	}
	return nil, errNoScope
}

func (r treeReader) fact(f *searchv1.RepoFact) (query.Q, error) {
	switch f.GetKind() {
	case searchv1.RepoFact_KIND_ARCHIVED:
		return r.RepoFact(query.Archived, f.GetValue())
	case searchv1.RepoFact_KIND_FORK:
		return r.RepoFact(query.Fork, f.GetValue())
	case searchv1.RepoFact_KIND_PUBLIC:
		return r.RepoFact(query.Public, f.GetValue())
	}
	return nil, errNoFact
}

func (r treeReader) returned(t *searchv1.Returned) (query.Q, error) {
	child, err := r.inner(t.GetQuery())
	if err != nil {
		return nil, err
	}
	switch t.GetKind() {
	case searchv1.Returned_KIND_FILE_MATCH:
		return r.Type(query.KindFileMatch, child)
	case searchv1.Returned_KIND_FILE_NAME:
		return r.Type(query.KindFileName, child)
	case searchv1.Returned_KIND_REPO:
		return r.Type(query.KindRepo, child)
	}
	return nil, errNoResult
}

// TreeFor is the tree with only those names in its sets of repos for which keep holds. It
// shares unchanged parts.
func TreeFor(tree *searchv1.Query, keep func(repo string) bool) *searchv1.Query {
	switch n := tree.GetNode().(type) {
	case *searchv1.Query_And:
		return &searchv1.Query{Node: &searchv1.Query_And{And: operandsFor(n.And, keep)}}
	case *searchv1.Query_Or:
		return &searchv1.Query{Node: &searchv1.Query_Or{Or: operandsFor(n.Or, keep)}}
	case *searchv1.Query_Not:
		return &searchv1.Query{Node: &searchv1.Query_Not{Not: TreeFor(n.Not, keep)}}
	case *searchv1.Query_Returned:
		return &searchv1.Query{Node: &searchv1.Query_Returned{Returned: &searchv1.Returned{
			Kind: n.Returned.GetKind(), Query: TreeFor(n.Returned.GetQuery(), keep),
		}}}
	case *searchv1.Query_Repos:
		kept := &searchv1.RepoNames{}
		for _, name := range n.Repos.GetNames() {
			if keep(name) {
				kept.Names = append(kept.Names, name)
			}
		}
		return &searchv1.Query{Node: &searchv1.Query_Repos{Repos: kept}}
	}
	return tree
}

func operandsFor(o *searchv1.Operands, keep func(repo string) bool) *searchv1.Operands {
	kept := &searchv1.Operands{}
	for _, q := range o.GetQueries() {
		kept.Queries = append(kept.Queries, TreeFor(q, keep))
	}
	return kept
}
