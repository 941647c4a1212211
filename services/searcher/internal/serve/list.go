package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/shard"
	"github.com/trawl-search/trawl/internal/searchwire"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/store"
)

// List implements searchv1.SearchServiceServer. Entries are of the planned
// shards only, one for each repo and shard. When the plan resolves fewer
// type:repo than the query has, it lists the repos of the next one.
func (s *Service) List(ctx context.Context, req *searchv1.ListRequest) (*searchv1.ListResponse, error) {
	defer s.metrics.begin("list")()
	shards, err := planned(req.Plan)
	if err != nil {
		return nil, err
	}
	tree, next, err := parse(req.Query, req.SyntaxVersion, req.Plan)
	if err != nil {
		return nil, err
	}
	if next != nil {
		tree = next
	}
	q, err := prepare(tree)
	if err != nil {
		return nil, err
	}
	ctx, cancel := budget(ctx)
	defer cancel()
	var mu sync.Mutex
	resp := &searchv1.ListResponse{}
	account, err := s.each(ctx, "list shard", req.Plan, shards, func(ctx context.Context, sh store.Shard, planned searchwire.Shard) (error, error) {
		overlays, err := planned.ShardOverlays()
		if err != nil {
			return nil, err
		}
		r, err := sh.List(ctx, q, shard.ListOptions{
			Repos: searchwire.Only(planned.Repos), Overlays: overlays, MaxSkippedFiles: int(req.MaxSkippedFiles),
		})
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		for i := range r.Repos {
			resp.Repos = append(resp.Repos, searchwire.Entry(&r.Repos[i]))
		}
		return r.Incomplete, nil
	})
	if err != nil {
		return nil, err
	}
	resp.Coverage = account.Coverage()
	return resp, nil
}

// GetFile implements searchv1.SearchServiceServer. NOT_FOUND means that none of
// the planned shards holds the file; when one could not be read the answer is
// UNAVAILABLE, for another searcher may know. A file that is too large for an answer
// is FAILED_PRECONDITION.
func (s *Service) GetFile(ctx context.Context, req *searchv1.GetFileRequest) (*searchv1.GetFileResponse, error) {
	defer s.metrics.begin("get_file")()
	shards, err := planned(req.Plan)
	if err != nil {
		return nil, err
	}
	shards = slices.DeleteFunc(shards, func(sh searchwire.Shard) bool { return !slices.Contains(sh.Repos, req.Repo) })
	ctx, cancel := budget(ctx)
	defer cancel()
	var mu sync.Mutex
	var found *shard.File
	account, err := s.each(ctx, "get file", req.Plan, shards, func(ctx context.Context, sh store.Shard, planned searchwire.Shard) (error, error) {
		overlays, err := planned.ShardOverlays()
		if err != nil {
			return nil, err
		}
		f, err := sh.File(ctx, req.Repo, req.Path, req.Branch, overlays[req.Repo])
		if errors.Is(err, shard.ErrNoFile) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		found = f
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	if found != nil {
		resp := file(found)
		if size := proto.Size(resp); s.cfg.MaxAnswer > 0 && size > s.cfg.MaxAnswer {
			return nil, searchwire.FieldError(codes.FailedPrecondition, "path", fmt.Sprintf(
				"file %q in %s takes an answer of %d bytes; searchers send at most %d (max-response-bytes)", req.Path, req.Repo, size, s.cfg.MaxAnswer))
		}
		return resp, nil
	}
	if c := account.Coverage(); !c.Complete {
		return nil, status.Errorf(codes.Unavailable, "%s: %s", c.Uncovered[0].Reason, c.Uncovered[0].Message)
	}
	return nil, searchwire.FieldError(codes.NotFound, "path", fmt.Sprintf("no file %q in %s on branch %q", req.Path, req.Repo, req.Branch))
}

func file(f *shard.File) *searchv1.GetFileResponse {
	return &searchv1.GetFileResponse{
		Content: f.Content, Language: f.Language, Commit: f.Commit, Blob: f.Blob, Branches: f.Branches,
		SkipReason: searchv1.SkipReason(f.Skip),
	}
}
