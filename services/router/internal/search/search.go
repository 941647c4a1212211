package search

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/index/shard"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
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
	turn, err := s.admit(whole, "search", start, interactive)
	if err != nil {
		return nil, err
	}
	defer turn.end()
	turn.explain = p.explain
	q, err := s.begin(asking, turn, req.Query, p.options.SyntaxVersion, p.options.Consistency, p.atLeast)
	if err != nil {
		return nil, err
	}
	set := s.newFileSet()
	var lists []*fileList
	q.search(asking, p, set, func(f *found) {
		lists = append(lists, f.files)
		searchapi.AddStatistics(p.statistics, f.statistics)
		p.explain.add(f)
	})
	p.explain.ends("fan out")
	_, span := s.tracer.Start(whole, "merge")
	defer span.End()
	resp = &searchv1.SearchResponse{Statistics: p.statistics, RevisionToken: catalog.EncodeToken(q.layout.Revision)}
	if resp.Coverage, err = q.close(whole, p.options.RequireComplete); err != nil {
		return nil, err
	}
	p.finish(start, q.layout)
	files, cut := set.merge(int(p.options.MaxFiles)+1, lists...)
	q.commit(files)
	p.explain.ends("merge")
	resp.Explanation = p.explain.explained(q.layout, int(p.options.MaxBytes))
	if err := p.fill(resp, files, cut, q.layout.Revision); err != nil {
		return nil, err
	}
	return resp, nil
}

// searchPage is the page of an answer that a request asks for.
type searchPage struct {
	options    *searchv1.SearchOptions
	question   pageQuestion
	after      *shard.Key
	atLeast    int64
	statistics *searchv1.Statistics
	explain    *explainer
}

func (s *Service) newPage(req *searchv1.SearchRequest) (*searchPage, error) {
	if err := refusePlan(req.Plan); err != nil {
		return nil, err
	}
	p := &searchPage{options: searchapi.WithDefaults(req.Options)}
	p.explain = newExplainer(p.options)
	p.statistics = &searchv1.Statistics{CountsExact: true, Clamped: s.cfg.Limits.lower(p.options)}
	p.question = pageQuestion{Query: req.Query, Mode: p.options.Mode, SyntaxVersion: p.options.SyntaxVersion}
	if len(req.PageToken) == 0 {
		return p, nil
	}
	c, err := decodePageToken(p.question, req.PageToken)
	if err != nil {
		if errors.Is(err, errOtherPage) || errors.Is(err, errPageToken) {
			return nil, searchapi.FieldError(codes.InvalidArgument, "page_token", err.Error())
		}
		return nil, err
	}
	p.after, p.atLeast = &c.After, c.Revision
	return p, nil
}

// perSearcher asks every searcher for one file more than the page has, to know
// whether another page follows.
func (p *searchPage) perSearcher() *searchv1.SearchOptions {
	o := searchapi.CopyOptions(p.options)
	o.MaxFiles = min(o.MaxFiles+1, searchapi.MaxFiles)
	o.Consistency, o.RequireComplete = nil, false
	return o
}

// tokenRoom is what a token of the next page may take in a response, and the
// fields that are filled in last.
const tokenRoom = maxPageToken + 64

// fill makes the page out of the best files of all searchers, which are one more
// than the page may have if there are as many, and the token of the next one. The
// largest page of all may be followed by an empty one.
func (p *searchPage) fill(resp *searchv1.SearchResponse, files []*searchv1.FileMatch, cut cut, revision int64) error {
	limit, maxBytes := int(p.options.MaxFiles), int(p.options.MaxBytes)
	more := len(files) > limit || cut != notCut || limit == searchapi.MaxFiles && len(files) == limit
	files = files[:min(limit, len(files))]
	if len(files) < limit {
		resp.Cut = cutReasons[cut]
	}
	resp.Coverage = searchapi.TrimCoverage(resp.Coverage, maxBytes/2)
	room := maxBytes - proto.Size(resp) - tokenRoom
	if n := searchapi.FittingFiles(files, room); n < len(files) {
		if n == 0 {
			searchapi.CutFile(files[0], room) // or else there would be no next page either
			n = 1
		}
		if n < len(files) {
			files, more, resp.Cut = files[:n], true, searchv1.CutReason_CUT_REASON_MAX_BYTES
		}
	}
	resp.Files = files
	if !more || len(files) == 0 {
		return nil
	}
	kept, next := p.endAt(files, revision)
	switch {
	case next != nil:
		resp.Files, resp.NextPageToken = kept, next
	case resp.Cut == searchv1.CutReason_CUT_REASON_UNSPECIFIED:
		return searchapi.FieldError(codes.FailedPrecondition, "options.max_files",
			"the next page cannot be named, the paths here are too long; ask for more files at once")
	}
	return nil
}

// endAt ends the page at its last file, or before files whose path is too long
// for a token: those begin the next page.
func (p *searchPage) endAt(files []*searchv1.FileMatch, revision int64) (kept []*searchv1.FileMatch, next []byte) {
	for n := len(files); n > 0 && next == nil; n-- {
		kept = files[:n]
		next = encodePageToken(p.question, pageCursor{After: searchapi.Key(files[n-1]), Revision: revision})
	}
	return kept, next
}

// finish ends the statistics. In a shard that the caller sees a part of, what was
// looked at depends on the rest of it too, and is not told.
func (p *searchPage) finish(start time.Time, layout *Layout) {
	if s := p.statistics; layout.Partial {
		s.FilesConsidered, s.BytesDecoded, s.UnitsDecoded, s.PostingListsRead, s.ShardsScanned = 0, 0, 0, 0, 0
	}
	p.statistics.Duration = durationpb.New(time.Since(start))
}
