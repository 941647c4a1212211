package search

import (
	"context"

	"google.golang.org/grpc/codes"

	indexquery "github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Definitions implements searchv1.SearchServiceServer.
func (s *Service) Definitions(ctx context.Context, req *searchv1.DefinitionsRequest) (*searchv1.DefinitionsResponse, error) {
	if req.From != nil {
		return s.definitionsFrom(ctx, req)
	}
	found, err := s.places(ctx, req, searchapi.DefinitionsOf)
	if err != nil {
		return nil, err
	}
	return &searchv1.DefinitionsResponse{
		Repos: byRepo(found.Files), Statistics: found.Statistics, Coverage: found.Coverage, NextPageToken: found.NextPageToken,
		RevisionToken: found.RevisionToken, Cut: found.Cut, Explanation: found.Explanation, Empty: found.Empty,
	}, nil
}

// References implements searchv1.SearchServiceServer.
func (s *Service) References(ctx context.Context, req *searchv1.ReferencesRequest) (*searchv1.ReferencesResponse, error) {
	found, err := s.places(ctx, req, searchapi.ReferencesOf)
	if err != nil {
		return nil, err
	}
	return &searchv1.ReferencesResponse{
		Repos: byRepo(found.Files), Statistics: found.Statistics, Coverage: found.Coverage, NextPageToken: found.NextPageToken,
		RevisionToken: found.RevisionToken, Cut: found.Cut, Explanation: found.Explanation, Empty: found.Empty,
	}, nil
}

// nameRequest is a request for the places of a name.
type nameRequest interface {
	GetName() string
	GetQuery() string
	GetOptions() *searchv1.SearchOptions
	GetPageToken() []byte
}

// ownFields is the version of the query language with Trawl's own fields.
const ownFields = 2

// groupBytes bounds the bytes that a message takes for a group of files besides the files
// themselves.
const groupBytes = 8

// places is the search for the places of a name.
func (s *Service) places(ctx context.Context, req nameRequest, query func(name, within string) string) (*searchv1.SearchResponse, error) {
	if err := checkWithin(req.GetQuery()); err != nil {
		return nil, err
	}
	options := searchapi.WithDefaults(req.GetOptions())
	options.SyntaxVersion, options.Symbols = ownFields, true
	options.MaxBytes -= min(groupBytes*uint64(options.MaxFiles), options.MaxBytes/2)
	return s.searchFor(ctx, &searchv1.SearchRequest{
		Query: query(req.GetName(), req.GetQuery()), Options: options, PageToken: req.GetPageToken(),
	}, req.GetQuery())
}

// checkWithin checks the caller's own query for the files with places of a name.
func checkWithin(query string) error {
	_, answer, err := searchapi.ParseAnswer(query, ownFields)
	if err != nil {
		return err
	}
	if answer.Select != indexquery.SelectFiles {
		return searchapi.FieldError(codes.InvalidArgument, "query", "places of a name are listed, not repos or folders: leave select: out")
	}
	return nil
}

// byRepo groups files by repo. A repo stands at the place of its best file. The name of the
// repo moves from the files to the group.
func byRepo(files []*searchv1.FileMatch) (repos []*searchv1.RepoMatches) {
	groups := make(map[string]*searchv1.RepoMatches)
	for _, f := range files {
		group := groups[f.Repo]
		if group == nil {
			group = &searchv1.RepoMatches{Repo: f.Repo}
			groups[f.Repo], repos = group, append(repos, group)
		}
		f.Repo = ""
		group.Files = append(group.Files, f)
	}
	return repos
}
