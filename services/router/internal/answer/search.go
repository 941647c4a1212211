package answer

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/index/shard"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/searchwire"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/admission"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
	"github.com/trawl-search/trawl/services/router/internal/page"
	"github.com/trawl-search/trawl/services/router/internal/plan"
)

// Search implements searchv1.SearchServiceServer.
func (s *Service) Search(ctx context.Context, req *searchv1.SearchRequest) (resp *searchv1.SearchResponse, err error) {
	start := s.metrics.begin()
	defer func() { s.metrics.observe("search", start, resp.GetCoverage(), err) }()
	whole, asking, cancel := s.cfg.Budget.split(ctx)
	defer cancel()
	p, err := s.newPage(req)
	if err != nil {
		return nil, err
	}
	turn, err := s.admit(whole, "search", start, admission.Interactive)
	if err != nil {
		return nil, err
	}
	defer turn.end()
	q, err := s.begin(asking, turn, req.Query, p.options.SyntaxVersion, p.options.Consistency, p.atLeast)
	if err != nil {
		return nil, err
	}
	var lists [][]*searchv1.FileMatch
	q.search(asking, p, func(r *searchv1.SearchResponse) {
		lists = append(lists, r.Files)
		searchwire.AddStatistics(p.statistics, r.Statistics)
	})
	_, span := s.tracer.Start(whole, "merge")
	defer span.End()
	resp = &searchv1.SearchResponse{Statistics: p.statistics, RevisionToken: catalog.EncodeToken(q.layout.Revision)}
	if resp.Coverage, err = q.close(whole, p.options.RequireComplete); err != nil {
		return nil, err
	}
	if resp.Files, resp.NextPageToken, err = p.cut(lists, q.layout.Revision); err != nil {
		return nil, err
	}
	p.finish(start, q.layout)
	return resp, nil
}

// search asks for the page in all wanted shards.
func (q *inquiry) search(ctx context.Context, p *searchPage, accept func(*searchv1.SearchResponse)) {
	call := func(ctx context.Context, c searchv1.SearchServiceClient, shards []searchwire.Shard, h *hearing) (fanout.Reply[*searchv1.SearchResponse], error) {
		r, err := c.Search(ctx, &searchv1.SearchRequest{
			Query: q.text, Options: p.perSearcher(), Plan: q.plan(q.text, shards, p.after),
		}, h.options()...)
		return fanout.Reply[*searchv1.SearchResponse]{Value: r, Coverage: r.GetCoverage()}, err
	}
	ask(ctx, q, "fan out", q.wanted, call, func(r *searchv1.SearchResponse) {
		for _, f := range r.Files {
			if len(f.Branches) > 0 {
				f.Commit = q.layout.Commit(f.Repo, f.Branches[0], f.Commit)
			}
		}
		accept(r)
	})
}

// searchPage is the page of an answer that a request asks for.
type searchPage struct {
	options    *searchv1.SearchOptions
	question   page.Question
	after      *shard.Key
	atLeast    int64
	statistics *searchv1.Statistics
}

func (s *Service) newPage(req *searchv1.SearchRequest) (*searchPage, error) {
	if err := refusePlan(req.Plan); err != nil {
		return nil, err
	}
	p := &searchPage{options: searchwire.WithDefaults(req.Options)}
	p.statistics = &searchv1.Statistics{CountsExact: true, Clamped: s.cfg.Limits.lower(p.options)}
	p.question = page.Question{Query: req.Query, Mode: p.options.Mode, SyntaxVersion: p.options.SyntaxVersion}
	if len(req.PageToken) == 0 {
		return p, nil
	}
	c, err := page.Decode(p.question, req.PageToken)
	if err != nil {
		if errors.Is(err, page.ErrOther) || errors.Is(err, page.ErrToken) {
			return nil, searchwire.FieldError(codes.InvalidArgument, "page_token", err.Error())
		}
		return nil, err
	}
	p.after, p.atLeast = &c.After, c.Revision
	return p, nil
}

// perSearcher asks every searcher for one file more than the page has, to know
// whether another page follows.
func (p *searchPage) perSearcher() *searchv1.SearchOptions {
	o := proto.Clone(p.options).(*searchv1.SearchOptions)
	o.MaxFiles = min(o.MaxFiles+1, searchwire.MaxFiles)
	o.Consistency, o.RequireComplete = nil, false
	return o
}

// cut makes the page out of what all searchers gave, and the token of the next
// one. The largest page of all may be followed by an empty one.
func (p *searchPage) cut(lists [][]*searchv1.FileMatch, revision int64) (files []*searchv1.FileMatch, next []byte, err error) {
	limit := int(p.options.MaxFiles)
	files = searchwire.Merge(limit+1, lists...)
	more := len(files) > limit || limit == searchwire.MaxFiles && len(files) == limit
	files = files[:min(limit, len(files))]
	if more {
		if files, next = p.endAt(files, revision); next == nil {
			return nil, nil, searchwire.FieldError(codes.FailedPrecondition, "options.max_files",
				"the next page cannot be named, the paths here are too long; ask for more files at once")
		}
	}
	searchwire.LimitBytes(files, p.options.MaxBytes)
	return files, next, nil
}

// endAt ends the page at its last file, or before files whose path is too long
// for a token: those begin the next page.
func (p *searchPage) endAt(files []*searchv1.FileMatch, revision int64) (kept []*searchv1.FileMatch, next []byte) {
	for n := len(files); n > 0 && next == nil; n-- {
		kept = files[:n]
		next = page.Encode(p.question, page.Cursor{After: searchwire.Key(files[n-1]), Revision: revision})
	}
	return kept, next
}

// finish ends the statistics. In a shard that the caller sees a part of, what was
// looked at depends on the rest of it too, and is not told.
func (p *searchPage) finish(start time.Time, layout *plan.Layout) {
	if s := p.statistics; layout.Partial {
		s.FilesConsidered, s.BytesDecoded, s.UnitsDecoded, s.PostingListsRead, s.ShardsScanned = 0, 0, 0, 0, 0
	}
	p.statistics.Duration = durationpb.New(time.Since(start))
}
