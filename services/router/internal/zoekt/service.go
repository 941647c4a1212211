package zoekt

import (
	"context"
	"encoding/json"
	"math"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	webserverv1 "github.com/trawl-search/trawl/proto/zoekt/webserver/v1"
)

// Service serves zoekt's WebserverService. It is safe for concurrent use.
type Service struct {
	webserverv1.UnimplementedWebserverServiceServer
	open   Open
	limits Limits
}

// NewService returns a service that calls open once for each request.
func NewService(open Open, limits Limits) *Service { return &Service{open: open, limits: limits} }

// Search implements webserverv1.WebserverServiceServer.
func (s *Service) Search(ctx context.Context, req *webserverv1.SearchRequest) (*webserverv1.SearchResponse, error) {
	result, err := s.search(ctx, req)
	if err != nil {
		return nil, err
	}
	resp := &webserverv1.SearchResponse{
		Stats: result.message(), Progress: finished(), Files: make([]*webserverv1.FileMatch, len(result.Files)),
	}
	for i := range result.Files {
		resp.Files[i] = result.Files[i].message()
	}
	return resp, grpc.SetTrailer(ctx, result.Trawl.trailer())
}

// All files have the priority zero. Finished says that nothing follows, and pending that files
// of that priority do: clients that merge streams wait for them.
func finished() *webserverv1.Progress {
	return &webserverv1.Progress{MaxPendingPriority: math.Inf(-1)}
}

func pending() *webserverv1.Progress { return &webserverv1.Progress{} }

// List implements webserverv1.WebserverServiceServer.
func (s *Service) List(ctx context.Context, req *webserverv1.ListRequest) (*webserverv1.ListResponse, error) {
	field := listRepos
	switch f := req.GetOpts().GetField(); f {
	case webserverv1.ListOptions_REPO_LIST_FIELD_UNKNOWN_UNSPECIFIED, webserverv1.ListOptions_REPO_LIST_FIELD_REPOS:
	case webserverv1.ListOptions_REPO_LIST_FIELD_REPOS_MAP:
		field = listReposMap
	default:
		return nil, refuse("opts.field", "unknown form "+f.String()+": want REPO_LIST_FIELD_REPOS or REPO_LIST_FIELD_REPOS_MAP")
	}
	bounded, cancel := s.limits.within(ctx, 0)
	defer cancel()
	answers := s.open(nil)
	tree, err := translate(bounded, answers, req.GetQuery())
	if err != nil {
		return nil, err
	}
	list, err := s.limits.list(bounded, answers, question{tree: tree}, field)
	if err != nil {
		return nil, err
	}
	return list.message(), grpc.SetTrailer(ctx, list.Trawl.trailer())
}

func (s *Service) search(ctx context.Context, req *webserverv1.SearchRequest) (*searchResult, error) {
	options := optionsOf(req.GetOpts())
	if err := options.check(); err != nil {
		return nil, err
	}
	ctx, cancel := s.limits.within(ctx, options.MaxWallTime)
	defer cancel()
	answers := s.open(nil)
	tree, err := translate(ctx, answers, req.GetQuery())
	if err != nil {
		return nil, err
	}
	return s.limits.search(ctx, answers, question{tree: tree}, options)
}

// accountKey is the trailer with what zoekt's messages cannot express, as JSON.
const accountKey = "trawl-account"

// maxTrailer bounds the account in bytes: proxies commonly refuse more than 8 KiB.
const maxTrailer = 4 << 10

// trailer is the account without the shards that were not covered, which it counts.
func (a account) trailer() metadata.MD {
	a.Uncovered = nil
	encoded, err := json.Marshal(a)
	if err != nil || len(encoded) > maxTrailer {
		a.SharedIDs = nil
		encoded, err = json.Marshal(a)
	}
	if err != nil { // not known to happen
		return nil
	}
	return metadata.Pairs(accountKey, string(encoded))
}
