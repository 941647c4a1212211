package answer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/searchwire"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/plan"
)

// GetFile implements searchv1.SearchServiceServer. It asks all shards of the
// repo at once: roots do not tell which of them holds a path.
func (s *Service) GetFile(ctx context.Context, req *searchv1.GetFileRequest) (resp *searchv1.GetFileResponse, err error) {
	defer func(start time.Time) { s.metrics.observe("get_file", start, nil, err) }(s.metrics.begin())
	if err := refusePlan(req.Plan); err != nil {
		return nil, err
	}
	_, asking, cancel := s.cfg.Budget.split(ctx)
	defer cancel()
	layout, err := s.layouts.At(asking, req.Consistency, 0)
	if err != nil {
		return nil, err
	}
	if _, ok := layout.Root(req.Repo); !ok {
		return nil, searchwire.FieldError(codes.NotFound, "repo", fmt.Sprintf("no repo %q is published", req.Repo))
	}
	if resp, err = s.findFile(asking, req, layout); err != nil {
		return nil, err
	}
	resp.RevisionToken = catalog.EncodeToken(layout.Revision)
	return resp, nil
}

func (s *Service) findFile(ctx context.Context, req *searchv1.GetFileRequest, layout *plan.Layout) (*searchv1.GetFileResponse, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	shards := layout.ShardsOf(req.Repo)
	found := make(chan *searchv1.GetFileResponse, len(shards))
	missed := make([]error, len(shards))
	var asked sync.WaitGroup
	for i, shard := range shards {
		asked.Go(func() {
			resp, err := s.fileIn(ctx, req, layout.Revision, shard)
			if err != nil {
				missed[i] = err
				return
			}
			found <- resp
			cancel() // a path is in one shard of its repo
		})
	}
	asked.Wait()
	select {
	case resp := <-found:
		return resp, nil
	default:
		return nil, missing(req, missed)
	}
}

// missing says that the file is not there only if every shard said so.
func missing(req *searchv1.GetFileRequest, missed []error) error {
	for _, err := range missed {
		if status.Code(err) != codes.NotFound {
			return err
		}
	}
	return searchwire.FieldError(codes.NotFound, "path", fmt.Sprintf("no file %q in %s on branch %q", req.Path, req.Repo, req.Branch))
}

// fileIn asks the searchers of one shard, one after the other, for as long as
// they cannot tell.
func (s *Service) fileIn(ctx context.Context, req *searchv1.GetFileRequest, revision int64, shard searchwire.Shard) (*searchv1.GetFileResponse, error) {
	asked := &searchv1.GetFileRequest{
		Repo: req.Repo, Path: req.Path, Branch: req.Branch,
		Plan: &searchv1.Plan{
			Revision: revision,
			Shards:   []*searchv1.PlannedShard{{Digest: shard.Digest[:], Repos: shard.Repos}},
		},
	}
	err := status.Error(codes.Unavailable, "no searcher is live")
	pause, started := s.cfg.Policy.Pause, time.Now()
	for {
		for _, target := range s.searchers.Candidates(shard.Digest) {
			client, dialErr := s.searchers.Client(target.Address)
			if dialErr != nil {
				err = status.Error(codes.Unavailable, dialErr.Error())
				continue
			}
			var resp *searchv1.GetFileResponse
			if resp, err = client.GetFile(ctx, asked); err == nil || status.Code(err) == codes.NotFound || ctx.Err() != nil {
				return resp, err
			}
		}
		if status.Code(err) != codes.Unavailable || time.Since(started)+pause > s.cfg.Policy.CoverWait {
			return nil, err
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, 10*s.cfg.Policy.Pause)
		case <-ctx.Done():
			return nil, err
		}
	}
}
