package mcptools

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

const (
	// candidateBytes and candidateFiles bound the names that are compared with a
	// nonexistent one.
	candidateBytes = 1 << 20
	candidateFiles = 300
)

// unknownRepos returns a note for each repo of the scope that does not exist, with the
// names of similar repos. It does not check the repos that were seen in answers.
func (c *call) unknownRepos(ctx context.Context, scope Scope, seen map[string]bool) (notes []string, err error) {
	var unseen []string
	for _, name := range scope.exactRepos() {
		if !seen[strings.ToLower(name)] {
			unseen = append(unseen, name)
		}
	}
	if len(unseen) == 0 {
		return nil, nil
	}
	list, err := c.api.List(ctx, &searchv1.ListRequest{
		Query: anyOf("r:", unseen, query.RepoGlob), SyntaxVersion: syntaxVersion, MaxBytes: candidateBytes,
	})
	if err != nil {
		return nil, fmt.Errorf("look for the repos named: %w", err)
	}
	for _, name := range unseen {
		if slices.ContainsFunc(list.GetRepos(), func(r *searchv1.RepoEntry) bool { return strings.EqualFold(r.GetName(), name) }) {
			continue
		}
		// A list has only repos with files.
		_, err := c.api.ListTree(ctx, &searchv1.ListTreeRequest{Repo: name, MaxEntries: 1})
		if searchapi.NotFoundOf(err).GetField() == "repo" || status.Code(err) == codes.InvalidArgument { // such as that of an empty name
			notes = append(notes, missing(err).Error())
		}
	}
	return notes, nil
}

// unknownRepo says of a repo that is in no list why it is not, with advice.
func (c *call) unknownRepo(ctx context.Context, name string) string {
	if _, err := c.api.ListTree(ctx, &searchv1.ListTreeRequest{Repo: name, MaxEntries: 1}); err != nil {
		return missing(err).Error()
	}
	return "the repo " + shown(name, 200) + " has no files"
}

// wholeName is the name of the only repo whose last parts are name, after an error that there is no repo with just this name; otherwise it is
// empty.
func (c *call) wholeName(ctx context.Context, name string, err error) string {
	if searchapi.NotFoundOf(err).GetField() != "repo" {
		return ""
	}
	list, err := c.api.List(ctx, &searchv1.ListRequest{Query: "r:" + query.Quote("/"+regexp.QuoteMeta(strings.Trim(name, "/"))+"$"), SyntaxVersion: syntaxVersion, MaxBytes: candidateBytes})
	if err != nil || len(list.GetRepos()) != 1 {
		return ""
	}
	return list.GetRepos()[0].GetName()
}

// unmatched returns a note that the scope holds no documents, with paths similar to the
// requested ones.
func (c *call) unmatched(ctx context.Context, scope Scope) ([]string, error) {
	if len(scope.Paths) == 0 && scope.Lang == "" && scope.Branch == "" {
		return nil, nil
	}
	inScope, err := c.first(ctx, join(scope.query(), "type:file"))
	if err != nil {
		return nil, fmt.Errorf("look for files in scope: %w", err)
	}
	if inScope.GetStatistics().GetFilesMatched() > 0 || !inScope.GetCoverage().GetComplete() {
		return nil, nil
	}
	text := "no file is in scope: repos, paths, branch and lang together match none"
	if len(scope.Paths) == 0 {
		text += "; check branch and lang"
	} else {
		wide := scope
		wide.Paths, wide.Lang = nil, ""
		if names := c.nearestPaths(ctx, wide, scope.Paths[0]); len(names) > 0 {
			text += "; the nearest paths: " + strings.Join(names, ", ")
		}
		if resp, err := c.first(ctx, join(scope.query(), "type:file", "case:no")); err == nil && resp.GetStatistics().GetFilesMatched() > 0 {
			text += "; a capital makes a glob case-sensitive, and paths match in another case"
		}
	}
	return append([]string{text}, c.unknownNames(ctx, Scope{Branch: scope.Branch, Lang: scope.Lang})...), nil
}

// unknownNames returns the hints of the router about a branch and a language.
func (c *call) unknownNames(ctx context.Context, of Scope) (notes []string) {
	if of.query() == "" {
		return nil
	}
	resp, _ := c.first(ctx, join(of.query(), "type:file")) // without hints the answer is as true
	for _, h := range resp.GetEmpty().GetHints() {
		notes = append(notes, cut(h.GetText(), 500))
	}
	return notes
}

// first searches for any file that a query matches.
func (c *call) first(ctx context.Context, query string) (*searchv1.SearchResponse, error) {
	return c.api.Search(ctx, &searchv1.SearchRequest{Query: query, Options: &searchv1.SearchOptions{
		SyntaxVersion: syntaxVersion, MaxFiles: 1, MaxMatchesPerFile: 1, Mode: searchv1.Mode_MODE_TOP_K,
	}})
}

// otherCase returns a note for each pattern of a case-sensitive search that is found in another case.
func (c *call) otherCase(ctx context.Context, empty []*finding) (notes []string) {
	notes = make([]string, len(empty))
	var asking sync.WaitGroup
	for i, f := range empty {
		if f.anyCase == "" {
			continue
		}
		asking.Go(func() {
			if resp, err := c.first(ctx, f.anyCase); err == nil && resp.GetStatistics().GetFilesMatched() > 0 {
				notes[i] = shown(f.text, 200) + " is found in another case: set ignore_case"
			}
		})
	}
	asking.Wait()
	return slices.DeleteFunc(notes, func(note string) bool { return note == "" })
}

// nearestPaths are the paths of files in scope that are most similar to a path or glob.
func (c *call) nearestPaths(ctx context.Context, scope Scope, name string) []string {
	name = strings.NewReplacer("**/", "", "*", "", "?", "").Replace(meant(name))
	resp, err := c.api.Search(ctx, &searchv1.SearchRequest{
		Query:   join(scope.query(), "type:file", "f:"+query.Quote(`(?i:`+parts(path.Base(name))+`)[^/]*$`)),
		Options: &searchv1.SearchOptions{SyntaxVersion: syntaxVersion, MaxFiles: candidateFiles},
	})
	if err != nil {
		return nil
	}
	var names []string
	for _, f := range resp.GetFiles() {
		names = append(names, string(f.GetPath()))
	}
	slices.Sort(names)
	return c.shownNames(searchapi.Nearest(name, slices.Compact(names)))
}

func (c *call) shownNames(names []string) []string {
	for i, n := range names {
		names[i] = shown(n, 200)
	}
	return names
}

// parts are three parts of a name, as alternatives of an expression.
func parts(name string) string {
	thirds := searchapi.Thirds(name)
	for i, third := range thirds {
		thirds[i] = regexp.QuoteMeta(third)
	}
	return strings.Join(thirds, "|")
}
