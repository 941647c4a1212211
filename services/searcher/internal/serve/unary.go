package serve

import (
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/index/shard"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// The calls of this file answer routers of older versions, which do not stream, while a
// cluster is upgraded.

// Search implements searchv1.SearchServiceServer. Older routers expect every file that
// max_files allows. Files that do not fit into max_bytes follow without their matches.
func (s *Service) Search(ctx context.Context, req *searchv1.SearchRequest) (*searchv1.SearchResponse, error) {
	start := time.Now()
	defer s.metrics.begin("search")()
	if err := understood(req); err != nil {
		return nil, err
	}
	q, err := newQuestion(req)
	if err != nil {
		return nil, err
	}
	defer q.close()
	ctx, cancel := budget(ctx)
	defer cancel()
	found, account, err := s.search(ctx, q)
	if err != nil {
		return nil, err
	}
	files := found.Files
	if found.Cut {
		more, again, err := s.search(ctx, q.withoutMatches())
		if err != nil {
			return nil, err
		}
		for _, u := range account.Coverage().Uncovered {
			again.Uncovered(searchapi.Digest(u.Digest), u.Reason, u.Message)
		}
		// The files that were cut come after all of these.
		account, files = again, append(files, after(more.Files, files)...)
	}
	resp := &searchv1.SearchResponse{
		Files: slices.Collect(searchapi.Files(files)), Statistics: searchapi.Statistics(found.Stats), Coverage: account.Coverage(),
	}
	searchapi.LimitBytes(resp.Files, q.options.MaxBytes)
	resp.Statistics.Duration = durationpb.New(time.Since(start))
	return resp, nil
}

// withoutMatches is the same question without matches and without a limit of bytes.
func (q *question) withoutMatches() *question {
	bare := *q
	bare.options = proto.Clone(q.options).(*searchv1.SearchOptions)
	bare.options.MaxMatchesPerFile, bare.options.MaxBytes = 0, 0
	return &bare
}

// after returns the files that come after all others in the total order.
func after(files, others []shard.FileMatch) []shard.FileMatch {
	if len(others) == 0 {
		return files
	}
	last := others[len(others)-1].Key()
	i := slices.IndexFunc(files, func(f shard.FileMatch) bool { return shard.Compare(f.Key(), last) > 0 })
	if i < 0 {
		return nil
	}
	return files[i:]
}

// List implements searchv1.SearchServiceServer.
func (s *Service) List(ctx context.Context, req *searchv1.ListRequest) (*searchv1.ListResponse, error) {
	defer s.metrics.begin("list")()
	if err := understood(req); err != nil {
		return nil, err
	}
	resp := &searchv1.ListResponse{}
	var err error
	resp.Coverage, err = s.list(ctx, req, func(entries []*searchv1.RepoEntry) error {
		resp.Repos = append(resp.Repos, entries...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}
