package search

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
)

// GetFile implements searchv1.SearchServiceServer. It asks all shards of the
// repo at once: roots do not record which shard holds a path.
func (s *Service) GetFile(ctx context.Context, req *searchv1.GetFileRequest) (resp *searchv1.GetFileResponse, err error) {
	start := s.metrics.begin()
	defer func() { s.metrics.observe("get_file", start, nil, err) }()
	if err := refusePlan(req.Plan); err != nil {
		return nil, err
	}
	asking, l, err := s.lookup(ctx, "get_file", start, req.Consistency, 0)
	if err != nil {
		return nil, err
	}
	defer l.end()
	if resp, err = l.file(asking, req); err != nil {
		return nil, l.withNearest(asking, req, err)
	}
	resp.RevisionToken = l.layout.token()
	content := resp.Content
	resp.Content = nil
	besides := proto.Size(resp) + searchapi.ContentField
	room := s.cfg.Limits.bytes(req.MaxBytes) - besides
	switch {
	case req.Offset > resp.SizeBytes:
		return nil, searchapi.FieldError(codes.OutOfRange, "offset", fmt.Sprintf("the file has only %d bytes", resp.SizeBytes))
	case len(content) > 0 && room < 1: // who follows the offset would never come to the end
		return nil, searchapi.FieldError(codes.OutOfRange, "max_bytes", fmt.Sprintf("no room for one byte of content: the other fields of this answer take %d bytes", besides))
	}
	resp.Content = content[:min(max(room, 0), len(content))]
	return resp, nil
}

// file is the file of a request.
func (l *lookup) file(ctx context.Context, req *searchv1.GetFileRequest) (*searchv1.GetFileResponse, error) {
	_, branch, err := l.root(req.Repo, req.Branch)
	if err != nil {
		return nil, err
	}
	req = proto.CloneOf(req)
	req.Branch = branch
	if path := searchapi.TreePath(req.Path); len(path) > 0 {
		req.Path = path
	}
	resp, err := l.service.findFile(ctx, l.ticket, req, l.layout)
	if err != nil {
		return nil, err
	}
	if len(resp.Branches) > 0 {
		resp.Commit = l.layout.Commit(req.Repo, resp.Branches[0], resp.Commit)
	}
	return resp, nil
}

// responseOverhead is room for the fields of a searcher's response besides its content, in bytes.
const responseOverhead = 4 << 10

// contentRoom is how many bytes of content fit a response of that many bytes.
func contentRoom(response int) int { return response - min(response/2, responseOverhead) }

// findFile asks for the file on the branch of the request. Without one it is that of the repo's first branch that
// has the file, each shard knowing only its own.
func (s *Service) findFile(ctx context.Context, ticket *ticket, req *searchv1.GetFileRequest, layout *Layout) (*searchv1.GetFileResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	shards := layout.ShardsOf(req.Repo)
	root, _ := layout.Root(req.Repo)
	place := func(resp *searchv1.GetFileResponse) int {
		if req.Branch != "" || len(resp.Branches) == 0 {
			return 0
		}
		return slices.IndexFunc(root.Branches, func(b *catalogv1.Branch) bool { return b.Name == resp.Branches[0] })
	}
	found := make([]*searchv1.GetFileResponse, len(shards))
	missed := make([]error, len(shards))
	var asked sync.WaitGroup
	for i, shard := range shards {
		asked.Go(func() {
			resp, err := s.fileIn(ctx, ticket, req, layout, shard)
			if err != nil {
				missed[i] = err
				return
			}
			if found[i] = resp; place(resp) <= 0 {
				cancel() // only one shard of a repo holds a path on a branch
			}
		})
	}
	asked.Wait()
	var best *searchv1.GetFileResponse
	for _, resp := range found {
		if resp != nil && (best == nil || place(resp) < place(best)) {
			best = resp
		}
	}
	if best != nil && place(best) <= 0 {
		return best, nil
	}
	if err := missing(req, missed); best == nil || status.Code(err) != codes.NotFound {
		return nil, err
	}
	return best, nil
}

// missing reports NOT_FOUND only if every shard reported it.
func missing(req *searchv1.GetFileRequest, missed []error) error {
	for _, err := range missed {
		if err != nil && status.Code(err) != codes.NotFound {
			return err
		}
	}
	return searchapi.FileNotFound(req, "", nil)
}

// fileIn asks the searchers of one shard until one has searched it.
func (s *Service) fileIn(ctx context.Context, ticket *ticket, req *searchv1.GetFileRequest, layout *Layout, shard searchapi.Shard) (found *searchv1.GetFileResponse, err error) {
	asked := &searchv1.GetFileRequest{
		Repo: req.Repo, Path: req.Path, Branch: req.Branch,
		Offset: req.Offset, MaxBytes: uint64(contentRoom(s.cfg.Limits.bytes(req.MaxBytes))),
		Plan: &searchv1.Plan{
			Revision: layout.Revision,
			Shards:   []*searchv1.PlannedShard{shard.Planned()},
		},
	}
	shards := []searchapi.Shard{shard}
	e := &execution{
		service: s, ticket: ticket, layout: layout, coverage: searchapi.NewAccount(shards),
		fingerprint: textFingerprint("file", req.Repo+"\x00"+string(req.Path), 0),
	}
	var tooLarge atomic.Pointer[error] // the file is there, but exceeds what the searcher may send
	ask := func(ctx context.Context, c searchv1.SearchServiceClient, _ []searchapi.Shard, result *callResult) (fanout.Reply[*searchv1.GetFileResponse], error) {
		resp, err := c.GetFile(ctx, asked, result.options()...)
		if status.Code(err) == codes.FailedPrecondition {
			tooLarge.Store(&err)
		}
		coverage, err := fileCoverage(shard, err, result)
		return fanout.Reply[*searchv1.GetFileResponse]{Value: resp, Coverage: coverage}, err
	}
	fanOut(ctx, e, "get file", shards, ask, func(resp *searchv1.GetFileResponse) { found = resp })
	if err := tooLarge.Load(); err != nil && found == nil {
		return nil, *err
	}
	coverage := e.coverage.Coverage()
	if err := ticket.checkOverload(coverage); err != nil {
		return nil, err
	}
	switch {
	case coverage.NotReached > 0:
		return nil, status.Error(codes.DeadlineExceeded, coverage.Uncovered[0].Message)
	case coverage.Failed > 0:
		return nil, status.Error(codes.Unavailable, coverage.Uncovered[0].Message)
	case found == nil:
		return nil, status.Error(codes.NotFound, "no such file in this shard")
	}
	return found, nil
}

// fileCoverage turns the result of a searcher's GetFile into coverage: the shard
// was searched, or the searcher could not read it. Any other error is one of the call.
func fileCoverage(shard searchapi.Shard, err error, result *callResult) (*searchv1.Coverage, error) {
	account := searchapi.NewAccount([]searchapi.Shard{shard})
	code := status.Code(err)
	switch {
	case code == codes.OK || code == codes.NotFound:
		account.Searched(shard.Digest)
	case code == codes.Unavailable && result.answered():
		account.Uncovered(shard.Digest, searchv1.UncoveredReason_UNCOVERED_REASON_NOT_COVERED, status.Convert(err).Message())
	default:
		return nil, err
	}
	return account.Coverage(), nil
}
