package zoekt

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	webserverv1 "github.com/trawl-search/trawl/proto/zoekt/webserver/v1"
)

const (
	// maxSets bounds the sets of ids in one query: each is compared with all repos.
	maxSets = 100
	// maxSetNames bounds the names that the sets of a query stand for together, where they
	// are more than those of all repos.
	maxSetNames = 200_000
	// maxDepth bounds how deep a query is. Trees of Trawl are bounded more closely.
	maxDepth = 1000
)

// translation turns a query of zoekt into one of Trawl.
type translation struct {
	ctx     context.Context //nolint:containedctx // it ends with the translation
	answers Answers
	// repos with ids, once they are needed.
	repos []identified
	known bool
	// sets and names count what the sets of ids take.
	sets, names int
	depth       int
}

type identified struct {
	id   uint32
	name string
}

// translate gives the tree for a query. Its error is a status.
func translate(ctx context.Context, answers Answers, q *webserverv1.Q) (*searchv1.Query, error) {
	t := &translation{ctx: ctx, answers: answers}
	return t.tree(q)
}

func refuse(field, text string) error {
	return searchapi.FieldError(codes.InvalidArgument, field, text)
}

func (t *translation) tree(q *webserverv1.Q) (*searchv1.Query, error) {
	if t.depth++; t.depth > maxDepth {
		return nil, refuse("query", fmt.Sprintf("more than %d nodes are inside each other", maxDepth))
	}
	defer func() { t.depth-- }()
	switch n := q.GetQuery().(type) {
	case *webserverv1.Q_And:
		operands, err := t.operands(n.And.GetChildren())
		return and(operands), err
	case *webserverv1.Q_Or:
		operands, err := t.operands(n.Or.GetChildren())
		return or(operands), err
	case *webserverv1.Q_Not:
		child, err := t.tree(n.Not.GetChild())
		return &searchv1.Query{Node: &searchv1.Query_Not{Not: child}}, err
	case *webserverv1.Q_Type:
		return t.returned(n.Type)
	case *webserverv1.Q_Boost:
		return t.tree(n.Boost.GetChild()) // scores are Trawl's own
	case *webserverv1.Q_Symbol:
		return definition(n.Symbol)
	case *webserverv1.Q_BranchesRepos:
		return t.branchesRepos(n.BranchesRepos)
	case *webserverv1.Q_RepoIds:
		return t.withIDs(n.RepoIds.GetRepos(), "repo_ids.repos")
	case *webserverv1.Q_RawConfig:
		return facts(n.RawConfig)
	}
	return leaf(q)
}

// leaf translates a node without others below it.
func leaf(q *webserverv1.Q) (*searchv1.Query, error) {
	switch n := q.GetQuery().(type) {
	case *webserverv1.Q_Regexp:
		return text(&searchv1.Text{
			Pattern: n.Regexp.GetRegexp(), Regexp: true, CaseSensitive: n.Regexp.GetCaseSensitive(),
			Scope: scope(n.Regexp.GetFileName(), n.Regexp.GetContent()),
		}), nil
	case *webserverv1.Q_Substring:
		return text(&searchv1.Text{
			Pattern: n.Substring.GetPattern(), CaseSensitive: n.Substring.GetCaseSensitive(),
			Scope: scope(n.Substring.GetFileName(), n.Substring.GetContent()),
		}), nil
	case *webserverv1.Q_Language:
		return &searchv1.Query{Node: &searchv1.Query_Language{Language: n.Language.GetLanguage()}}, nil
	case *webserverv1.Q_Const:
		return all(n.Const), nil
	case *webserverv1.Q_Repo:
		return &searchv1.Query{Node: &searchv1.Query_Repo{Repo: n.Repo.GetRegexp()}}, nil
	case *webserverv1.Q_RepoRegexp:
		return &searchv1.Query{Node: &searchv1.Query_Repo{Repo: n.RepoRegexp.GetRegexp()}}, nil
	case *webserverv1.Q_RepoSet:
		return named(n.RepoSet), nil
	case *webserverv1.Q_FileNameSet:
		return paths(n.FileNameSet.GetSet()), nil
	case *webserverv1.Q_Branch:
		return branch(n.Branch.GetPattern(), n.Branch.GetExact()), nil
	case *webserverv1.Q_Meta:
		return &searchv1.Query{Node: &searchv1.Query_Meta{Meta: &searchv1.RepoMeta{Key: n.Meta.GetKey(), Expression: n.Meta.GetValue()}}}, nil
	}
	return nil, refuse("query", "a node is empty, or of a kind that this server does not know")
}

func (t *translation) operands(children []*webserverv1.Q) ([]*searchv1.Query, error) {
	operands := make([]*searchv1.Query, len(children))
	for i, child := range children {
		var err error
		if operands[i], err = t.tree(child); err != nil {
			return nil, err
		}
	}
	return operands, nil
}

func and(operands []*searchv1.Query) *searchv1.Query {
	return &searchv1.Query{Node: &searchv1.Query_And{And: &searchv1.Operands{Queries: operands}}}
}

func or(operands []*searchv1.Query) *searchv1.Query {
	return &searchv1.Query{Node: &searchv1.Query_Or{Or: &searchv1.Operands{Queries: operands}}}
}

func all(value bool) *searchv1.Query { return &searchv1.Query{Node: &searchv1.Query_All{All: value}} }

func text(of *searchv1.Text) *searchv1.Query {
	return &searchv1.Query{Node: &searchv1.Query_Text{Text: of}}
}

func branch(name string, exact bool) *searchv1.Query {
	return &searchv1.Query{Node: &searchv1.Query_Branch{Branch: &searchv1.BranchName{Name: name, Exact: exact}}}
}

func repos(names []string) *searchv1.Query {
	return &searchv1.Query{Node: &searchv1.Query_Repos{Repos: &searchv1.RepoNames{Names: names}}}
}

// scope is where a text is looked for. Both and neither mean the same.
func scope(fileName, content bool) searchv1.TextScope {
	switch {
	case fileName == content:
		return searchv1.TextScope_TEXT_SCOPE_UNSPECIFIED
	case fileName:
		return searchv1.TextScope_TEXT_SCOPE_PATH
	}
	return searchv1.TextScope_TEXT_SCOPE_CONTENT
}

func (t *translation) returned(of *webserverv1.Type) (*searchv1.Query, error) {
	kind, ok := map[webserverv1.Type_Kind]searchv1.Returned_Kind{
		webserverv1.Type_KIND_UNKNOWN_UNSPECIFIED: searchv1.Returned_KIND_FILE_MATCH,
		webserverv1.Type_KIND_FILE_MATCH:          searchv1.Returned_KIND_FILE_MATCH,
		webserverv1.Type_KIND_FILE_NAME:           searchv1.Returned_KIND_FILE_NAME,
		webserverv1.Type_KIND_REPO:                searchv1.Returned_KIND_REPO,
	}[of.GetType()]
	if !ok {
		return nil, refuse("type.type", "unknown kind "+of.GetType().String()+": want KIND_FILE_MATCH, KIND_FILE_NAME or KIND_REPO")
	}
	child, err := t.tree(of.GetChild())
	return &searchv1.Query{Node: &searchv1.Query_Returned{Returned: &searchv1.Returned{Kind: kind, Query: child}}}, err
}

// definition translates a Symbol. zoekt, too, takes no other expressions in it.
func definition(s *webserverv1.Symbol) (*searchv1.Query, error) {
	of := &searchv1.Text{Scope: searchv1.TextScope_TEXT_SCOPE_DEFINITION}
	switch n := s.GetExpr().GetQuery().(type) {
	case *webserverv1.Q_Substring:
		of.Pattern, of.CaseSensitive = n.Substring.GetPattern(), n.Substring.GetCaseSensitive()
	case *webserverv1.Q_Regexp:
		of.Pattern, of.CaseSensitive, of.Regexp = n.Regexp.GetRegexp(), n.Regexp.GetCaseSensitive(), true
	default:
		return nil, refuse("symbol.expr", "want a substring or a regexp: combine several symbols with and, or and not")
	}
	return text(of), nil
}

// facts are what the flags ask for, all of them.
func facts(c *webserverv1.RawConfig) (*searchv1.Query, error) {
	operands := make([]*searchv1.Query, len(c.GetFlags()))
	for i, flag := range c.GetFlags() {
		fact := &searchv1.RepoFact{}
		switch flag {
		case webserverv1.RawConfig_FLAG_ONLY_PUBLIC, webserverv1.RawConfig_FLAG_ONLY_PRIVATE:
			fact.Kind, fact.Value = searchv1.RepoFact_KIND_PUBLIC, flag == webserverv1.RawConfig_FLAG_ONLY_PUBLIC
		case webserverv1.RawConfig_FLAG_ONLY_FORKS, webserverv1.RawConfig_FLAG_NO_FORKS:
			fact.Kind, fact.Value = searchv1.RepoFact_KIND_FORK, flag == webserverv1.RawConfig_FLAG_ONLY_FORKS
		case webserverv1.RawConfig_FLAG_ONLY_ARCHIVED, webserverv1.RawConfig_FLAG_NO_ARCHIVED:
			fact.Kind, fact.Value = searchv1.RepoFact_KIND_ARCHIVED, flag == webserverv1.RawConfig_FLAG_ONLY_ARCHIVED
		default:
			return nil, refuse("raw_config.flags", "unknown flag "+flag.String())
		}
		operands[i] = &searchv1.Query{Node: &searchv1.Query_Fact{Fact: fact}}
	}
	return and(operands), nil
}

// named are the repos that a set maps to true.
func named(set *webserverv1.RepoSet) *searchv1.Query {
	var names []string
	for name, in := range set.GetSet() {
		if in {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return repos(names)
}

// paths are the documents with exactly one of the paths.
func paths(names []string) *searchv1.Query {
	if len(names) == 0 {
		return all(false)
	}
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = regexp.QuoteMeta(name)
	}
	return text(&searchv1.Text{
		Pattern: `\A(?:` + strings.Join(quoted, "|") + `)\z`, Regexp: true, CaseSensitive: true, Scope: searchv1.TextScope_TEXT_SCOPE_PATH,
	})
}

func (t *translation) branchesRepos(of *webserverv1.BranchesRepos) (*searchv1.Query, error) {
	operands := make([]*searchv1.Query, len(of.GetList()))
	for i, pair := range of.GetList() {
		some, err := t.withIDs(pair.GetRepos(), "branches_repos.list.repos")
		if err != nil {
			return nil, err
		}
		operands[i] = and([]*searchv1.Query{branch(pair.GetBranch(), true), some})
	}
	return or(operands), nil
}

// withIDs are the repos whose ids a serialized roaring bitmap holds.
func (t *translation) withIDs(serialized []byte, field string) (*searchv1.Query, error) {
	if t.sets++; t.sets > maxSets {
		return nil, refuse(field, fmt.Sprintf("the query has more than %d sets of repo ids: join those of the same branch", maxSets))
	}
	set, err := parseIDs(serialized)
	if err != nil {
		return nil, refuse(field, "not a serialized roaring bitmap: "+err.Error())
	}
	done, err := t.answers.Looking(t.ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if err := t.identify(); err != nil {
		return nil, err
	}
	var names []string
	for _, repo := range t.repos {
		if set.Contains(repo.id) {
			names = append(names, repo.name)
		}
	}
	if t.names += len(names); t.names > max(maxSetNames, len(t.repos)) {
		return nil, refuse(field, fmt.Sprintf("the sets of the query stand for %d repos together: at most %d", t.names, max(maxSetNames, len(t.repos))))
	}
	return repos(names), nil
}

// parseIDs reads a serialized roaring bitmap. No bytes are the empty set.
func parseIDs(serialized []byte) (*roaring.Bitmap, error) {
	set := roaring.New()
	if len(serialized) == 0 {
		return set, nil
	}
	if err := set.UnmarshalBinary(serialized); err != nil {
		return nil, err
	}
	return set, set.Validate()
}

// identify gets all repos that have ids, once. It fails when the time is over.
func (t *translation) identify() error {
	if t.known {
		return t.over()
	}
	all, err := t.answers.Identified(t.ctx)
	if err != nil {
		return err
	}
	t.known = true
	for id, name := range all {
		t.repos = append(t.repos, identified{id, name})
	}
	return t.over()
}

// over is an error after the time of the translation.
func (t *translation) over() error {
	if err := t.ctx.Err(); err != nil {
		return status.FromContextError(err).Err()
	}
	return nil
}
