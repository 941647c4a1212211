package serve

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/index/shard"
	"github.com/trawl-search/trawl/internal/searchwire"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/store"
)

// question is a search request made ready.
type question struct {
	plan    *searchv1.Plan
	shards  []searchwire.Shard
	query   *shard.Query
	options *searchv1.SearchOptions
}

func newQuestion(req *searchv1.SearchRequest) (*question, error) {
	shards, err := planned(req.Plan)
	if err != nil {
		return nil, err
	}
	q := &question{plan: req.Plan, shards: shards, options: searchwire.WithDefaults(req.Options)}
	tree, next, err := parse(req.Query, q.options.SyntaxVersion, req.Plan)
	if err != nil {
		return nil, err
	}
	if next != nil {
		return nil, searchwire.FieldError(codes.FailedPrecondition, "plan.resolved", "the plan does not say which repos a type:repo stands for")
	}
	q.query, err = prepare(tree)
	return q, err
}

// in searches one shard for files that come before the floor, nil for all.
func (q *question) in(ctx context.Context, sh store.Shard, planned searchwire.Shard, floor *shard.Key) (*shard.Result, error) {
	overlays, err := planned.ShardOverlays()
	if err != nil {
		return nil, err
	}
	opts := searchwire.ShardOptions(q.options, searchwire.KeyFromProto(q.plan.After), planned.Repos)
	opts.Floor, opts.Overlays = floor, overlays
	return sh.Search(ctx, q.query, opts)
}

// Search implements searchv1.SearchServiceServer.
func (s *Service) Search(ctx context.Context, req *searchv1.SearchRequest) (*searchv1.SearchResponse, error) {
	start := time.Now()
	defer s.metrics.begin("search")()
	q, err := newQuestion(req)
	if err != nil {
		return nil, err
	}
	ctx, cancel := budget(ctx)
	defer cancel()
	var mu sync.Mutex
	var best []shard.FileMatch
	var stats shard.Stats
	account, err := s.each(ctx, "search shard", q.plan, q.shards, func(ctx context.Context, sh store.Shard, planned searchwire.Shard) (error, error) {
		mu.Lock()
		floor := shard.Floor(int(q.options.MaxFiles), best)
		mu.Unlock()
		r, err := q.in(ctx, sh, planned, floor)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		best = shard.Merge(int(q.options.MaxFiles), best, r.Files)
		stats.Add(r.Stats)
		return r.Incomplete, nil
	})
	if err != nil {
		return nil, err
	}
	resp := &searchv1.SearchResponse{Files: searchwire.Files(best), Statistics: searchwire.Statistics(stats), Coverage: account.Coverage()}
	searchwire.LimitBytes(resp.Files, q.options.MaxBytes)
	resp.Statistics.Duration = durationpb.New(time.Since(start))
	return resp, nil
}

// StreamSearch implements searchv1.SearchServiceServer: the files of each shard
// go out when it is searched, up to max_files of each.
func (s *Service) StreamSearch(req *searchv1.StreamSearchRequest, stream grpc.ServerStreamingServer[searchv1.StreamSearchResponse]) error {
	start := time.Now()
	defer s.metrics.begin("stream_search")()
	q, err := newQuestion(req.Search)
	if err != nil {
		return err
	}
	ctx, cancel := budget(stream.Context())
	defer cancel()
	var mu sync.Mutex
	var stats shard.Stats
	account, err := s.each(ctx, "search shard", q.plan, q.shards, func(ctx context.Context, sh store.Shard, planned searchwire.Shard) (error, error) {
		r, err := q.in(ctx, sh, planned, nil)
		if err != nil {
			return nil, err
		}
		mu.Lock()
		defer mu.Unlock()
		stats.Add(r.Stats)
		if err := sendPieces(stream, searchwire.Files(r.Files)); err != nil {
			return nil, err
		}
		return r.Incomplete, nil
	})
	if err != nil {
		return err
	}
	last := searchwire.Statistics(stats)
	last.Duration = durationpb.New(time.Since(start))
	return stream.Send(&searchv1.StreamSearchResponse{Statistics: last, Coverage: account.Coverage()})
}

func sendPieces(stream grpc.ServerStreamingServer[searchv1.StreamSearchResponse], files []*searchv1.FileMatch) error {
	for piece := range searchwire.Pieces(files) {
		if err := stream.Send(&searchv1.StreamSearchResponse{Files: piece}); err != nil {
			return err
		}
	}
	return nil
}
