package serve

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

// question is a search request, parsed.
type question struct {
	plan   *searchv1.Plan
	shards []searchapi.Shard
	tree   query.Q
	// query is the tree, compiled once the call is admitted.
	query   *search.Query
	options *searchv1.SearchOptions
	facets  []search.Facet
	// best are the best hits so far, once the call is admitted.
	best *best
}

func newQuestion(req *searchv1.SearchRequest) (*question, error) {
	shards, err := planned(req.Plan)
	if err != nil {
		return nil, err
	}
	q := &question{plan: req.Plan, shards: shards, options: searchapi.WithDefaults(req.Options)}
	tree, next, err := parse(req.Query, req.Tree, q.options.SyntaxVersion, req.Plan)
	if err != nil {
		return nil, err
	}
	if next != nil {
		return nil, searchapi.FieldError(codes.FailedPrecondition, "plan.resolved", "the plan does not say which repos a type:repo stands for")
	}
	q.tree, q.facets = tree, searchapi.ShardFacets(q.options)
	q.options.Symbols = q.options.Symbols || query.AsksForSymbols(tree)
	return q, nil
}

// close frees the memory of the question.
func (q *question) close() {
	if q.query != nil {
		q.query.Close()
	}
}

// find finds the best hits of one shard that come before the worst of the best so far, and counts its files by facets.
func (q *question) find(ctx context.Context, h *shardcache.Handle, planned searchapi.Shard, overlays map[int]search.Overlay) (incomplete, err error) {
	opts := searchapi.ShardOptions(q.options, searchapi.KeyFromProto(q.plan.After), planned.Repos)
	opts.Floor, opts.FloorNow, opts.Overlays = q.best.floor(), q.best.floor, overlays
	found, err := h.Shard.Find(ctx, q.query, opts)
	if err != nil {
		return nil, err
	}
	var facets []search.FacetCounts
	if len(q.facets) > 0 && found.Incomplete == nil {
		counted, err := h.Shard.Count(ctx, q.query, opts, q.facets)
		if err != nil {
			return nil, err
		}
		found.Stats.Add(counted.Stats)
		found.Incomplete, facets = counted.Incomplete, counted.Facets
	}
	q.best.add(h, planned, found, facets)
	return found.Incomplete, nil
}

// search finds the best files of all planned shards, and then shows them.
func (s *Service) search(ctx context.Context, q *question) (*answer, *searchapi.Account, error) {
	call, err := s.admit(ctx, len(q.shards))
	if err != nil {
		return nil, nil, err
	}
	defer call.end()
	if q.query, err = s.compile(ctx, q.tree); err != nil {
		return nil, nil, err
	}
	b := newBest(q.options)
	q.best = b
	defer b.release()
	finding, cancel := beforeShowing(ctx)
	defer cancel()
	account := s.each(finding, call, visits{span: "search shard", revision: q.plan.GetRevision(), shards: q.shards, visit: q.find})
	s.show(ctx, call, b, account)
	s.metrics.count(account.Coverage())
	found := b.answer()
	call.decoded(found.Stats.BytesDecoded)
	return found, account, nil
}

// show decodes the best files, several shards at a time. It accounts for shards whose
// files cannot be shown, or not all of them in time.
func (s *Service) show(ctx context.Context, call *admitted, b *best, account *searchapi.Account) {
	var mu sync.Mutex
	s.spread(len(b.parts), func(i int) {
		p := &b.parts[i]
		n := b.count(p)
		if n == 0 {
			return
		}
		reason, err := s.showPart(ctx, call, b, p, n)
		switch {
		case err == nil:
			return
		case reason == deadline:
			b.shown(p, &search.Result{}) // files shown before stay, and all that were found count
			err = fmt.Errorf("%w: %w", errInPart, err)
		default:
			b.drop(p)
		}
		mu.Lock()
		defer mu.Unlock()
		mark(account, p.planned.Digest, reason, err)
	})
}

// showPart shows the first n hits of a part. It takes a processor before searches that have
// not started: the results would be lost if the deadline passed while it waits.
func (s *Service) showPart(ctx context.Context, call *admitted, b *best, p *part, n int) (reason searchv1.UncoveredReason, err error) {
	ctx, span := s.startSpan(ctx, "show files", p.planned)
	defer func() { endSpan(span, reason, err) }()
	ctx, slot, err := s.slots.TakeFirst(ctx)
	if err != nil {
		return deadline, err
	}
	defer func() { call.tookAlso(slot.Release()) }()
	return s.guarded(ctx, p.handle, p.planned.Digest, func() (incomplete, err error) {
		shown, err := p.handle.Shard.Show(ctx, p.found, n)
		if err != nil {
			return nil, err
		}
		b.shown(p, shown)
		return shown.Incomplete, nil
	})
}

// StreamSearch implements searchv1.SearchServiceServer: the best files of all
// shards go out when these are searched, in the total order.
func (s *Service) StreamSearch(req *searchv1.StreamSearchRequest, stream grpc.ServerStreamingServer[searchv1.StreamSearchResponse]) error {
	start := time.Now()
	defer s.metrics.begin("stream_search")()
	if err := understood(req); err != nil {
		return err
	}
	q, err := newQuestion(req.Search)
	if err != nil {
		return err
	}
	defer q.close()
	ctx, cancel := budget(stream.Context())
	defer cancel()
	found, account, err := s.search(ctx, q)
	if err != nil {
		return err
	}
	last := &searchv1.StreamSearchResponse{Statistics: searchapi.Statistics(found.Stats), Coverage: account.Coverage(), Explanation: found.explanation}
	last.Statistics.Duration = durationpb.New(time.Since(start))
	if found.Cut {
		last.Cut = searchv1.CutReason_CUT_REASON_MAX_BYTES
	}
	for _, counts := range searchapi.Facets(q.facets, found.facets, 0) {
		if err := stream.Send(&searchv1.StreamSearchResponse{Facets: []*searchv1.FacetCounts{counts}}); err != nil {
			return err
		}
	}
	// Messages are made one at a time. All at once would take many times the memory of
	// the results.
	for piece := range searchapi.Pieces(searchapi.Files(found.Files)) {
		if last.Files != nil {
			if err := stream.Send(&searchv1.StreamSearchResponse{Files: last.Files}); err != nil {
				return err
			}
		}
		last.Files = piece
	}
	return stream.Send(last)
}
