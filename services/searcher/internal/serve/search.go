package serve

import (
	"context"
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

// search finds the best files of all shards of the question.
func (s *Service) search(ctx context.Context, q *question) (*best, *searchwire.Account, error) {
	b := &best{limit: int(q.options.MaxFiles), maxBytes: int64(q.options.MaxBytes)}
	account, err := s.each(ctx, "search shard", q.plan, q.shards, func(ctx context.Context, sh store.Shard, planned searchwire.Shard) (error, error) {
		r, err := q.in(ctx, sh, planned, b.floor())
		if err != nil {
			return nil, err
		}
		b.add(r)
		return r.Incomplete, nil
	}, nil)
	return b, account, err
}

// StreamSearch implements searchv1.SearchServiceServer: the best files of all
// shards go out when these are searched, in the total order.
func (s *Service) StreamSearch(req *searchv1.StreamSearchRequest, stream grpc.ServerStreamingServer[searchv1.StreamSearchResponse]) error {
	start := time.Now()
	defer s.metrics.begin("stream_search")()
	q, err := newQuestion(req.Search)
	if err != nil {
		return err
	}
	ctx, cancel := budget(stream.Context())
	defer cancel()
	found, account, err := s.search(ctx, q)
	if err != nil {
		return err
	}
	last := &searchv1.StreamSearchResponse{Statistics: searchwire.Statistics(found.stats), Coverage: account.Coverage()}
	last.Statistics.Duration = durationpb.New(time.Since(start))
	if found.cut() {
		last.Cut = searchv1.CutReason_CUT_REASON_MAX_BYTES
	}
	// Messages are made one after the other: all at once would take many times the
	// memory of what was found.
	for piece := range searchwire.Pieces(searchwire.Files(found.files)) {
		if last.Files != nil {
			if err := stream.Send(&searchv1.StreamSearchResponse{Files: last.Files}); err != nil {
				return err
			}
		}
		last.Files = piece
	}
	return stream.Send(last)
}
