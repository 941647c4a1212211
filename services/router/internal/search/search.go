package search

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Search implements searchv1.SearchServiceServer: it plans the query, fans it out to
// searchers, merges their files, and accounts for every shard.
func (s *Service) Search(ctx context.Context, req *searchv1.SearchRequest) (resp *searchv1.SearchResponse, err error) {
	return s.searchFor(ctx, req, req.Query)
}

// searchFor is Search for a query that was derived from written, the query of the caller.
func (s *Service) searchFor(ctx context.Context, req *searchv1.SearchRequest, written string) (resp *searchv1.SearchResponse, err error) {
	start := s.metrics.begin()
	defer func() { s.metrics.observe("search", start, resp.GetCoverage(), err) }()
	p, err := s.newPage(req, searchapi.WithDefaults(req.Options))
	if err != nil {
		return nil, err
	}
	p.asked.written = written
	e, asking, end, err := s.begin(ctx, "search", start, interactive, p)
	if err != nil {
		return nil, err
	}
	defer end()
	searching, stop := e.within(asking)
	defer stop()
	results := s.newFileSet()
	var lists []*fileList
	e.search(searching, p, results, func(r *searchReply) {
		p.add(r)
		lists = append(lists, r.files)
	})
	p.explain.ends("fan out")
	_, span := s.tracer.Start(e.ticket.whole, "merge")
	defer span.End()
	files, cut := results.merge(int(p.options.MaxFiles)+1, lists...)
	p.answer(files, cut == notCut && len(files) <= int(p.options.MaxFiles))
	e.setCommits(files)
	coverage, err := e.account(p.options.RequireComplete)
	if err != nil {
		return nil, err
	}
	p.finish(start, e.layout, coverage)
	resp = &searchv1.SearchResponse{
		Statistics: p.statistics, Coverage: coverage, RevisionToken: e.layout.token(), Facets: p.counted(), Selected: p.selected,
		Empty: e.empty(asking, p),
	}
	p.explain.ends("merge")
	resp.Explanation = p.explain.explained(e.layout, int(p.options.MaxBytes))
	if err := p.fill(resp, files, cut, e.layout.Revision); err != nil {
		return nil, err
	}
	return resp, nil
}

// begin admits and plans the search of a page. Asking is the context for asking searchers. End must be called.
func (s *Service) begin(ctx context.Context, method string, start time.Time, class queryClass, p *searchPage) (e *execution, asking context.Context, end func(), err error) {
	asking, ticket, leave, err := s.letIn(ctx, method, start, class, p.options.Consistency, p.atLeast)
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if e == nil { // it could not be planned
			leave()
		}
	}()
	ticket.explain = p.explain
	if e, err = s.plan(asking, ticket, p.asked, p.options.Consistency, p.atLeast); err != nil {
		return nil, nil, nil, err
	}
	p.shape(e.asked.answer)
	return e, asking, leave, nil
}

// searchPage is the page of an answer that a request asks for.
type searchPage struct {
	options *searchv1.SearchOptions
	// searcherOptions are the options of every call to a searcher. Calls share them, so
	// they must not change.
	searcherOptions *searchv1.SearchOptions

	asked *question
	// mark binds the token of the next page to the question.
	mark    pageQuestion
	after   *search.Key
	atLeast int64
	// left bounds the files of this page and all following pages together; 0 is no bound.
	left       int
	selected   searchv1.Facet
	facets     []search.FacetCounts // of the options, in their order
	statistics *searchv1.Statistics
	// answered counts the files of the answer and their matches.
	answered struct {
		files, matches uint64
		exact          bool
	}
	explain *explainer
}

// newPage starts the page that the request asks for. It lowers the options, which have
// their defaults, to the limits of this server.
func (s *Service) newPage(req *searchv1.SearchRequest, options *searchv1.SearchOptions) (*searchPage, error) {
	if err := refusePlan(req.Plan); err != nil {
		return nil, err
	}
	p := &searchPage{options: options}
	p.explain = newExplainer(p.options)
	p.statistics = &searchv1.Statistics{CountsExact: true, Clamped: s.cfg.Limits.lower(p.options)}
	p.asked = &question{text: req.Query, written: req.Query, tree: req.Tree, version: p.options.SyntaxVersion}
	p.mark = pageQuestion{Query: p.asked.key(), Mode: p.options.Mode, SyntaxVersion: p.options.SyntaxVersion}
	if len(req.PageToken) == 0 {
		return p, nil
	}
	c, err := decodePageToken(p.mark, req.PageToken)
	if err != nil {
		if errors.Is(err, errOtherPage) || errors.Is(err, errPageToken) {
			return nil, searchapi.FieldError(codes.InvalidArgument, "page_token", err.Error())
		}
		return nil, err
	}
	p.after, p.atLeast, p.left = &c.After, c.Revision, c.Left
	return p, nil
}

// shape shapes the page as the query asks, once that is parsed.
func (p *searchPage) shape(a query.Answer) {
	if p.after != nil && a.Select == query.SelectFiles {
		a.Count = p.left
	}
	p.left, p.selected = a.Count, searchapi.ApplyAnswer(p.options, a)
	p.facets = make([]search.FacetCounts, len(p.options.Facets))
	p.searcherOptions = searcherOptions(p.options)
}

// searcherOptions ask a searcher for one file more than the page has, which shows
// whether another page follows.
func searcherOptions(page *searchv1.SearchOptions) *searchv1.SearchOptions {
	o := searchapi.CopyOptions(page)
	o.MaxFiles = min(o.MaxFiles+1, searchapi.MaxFiles)
	o.Consistency, o.RequireComplete = nil, false
	return o
}

// add adds the statistics and the explanation of one call.
func (p *searchPage) add(r *searchReply) {
	searchapi.AddStatistics(p.statistics, r.statistics)
	for i, counts := range r.facets {
		if i < len(p.facets) {
			searchapi.AddFacet(&p.facets[i], counts)
		}
	}
	p.explain.add(r)
}

// counted are the files of the whole answer by facets. A quarter of the answer is room for them.
func (p *searchPage) counted() []*searchv1.FacetCounts {
	counted := searchapi.Facets(searchapi.ShardFacets(p.options), p.facets, int(p.options.MaxFacetValues))
	searchapi.TrimFacets(counted, int(p.options.MaxBytes/4))
	return counted
}

// tokenRoom is the room for the next page token and the fields that are set last, in
// bytes.
const tokenRoom = maxPageToken + 64

// fill puts the best files of all searchers into the page, and the token of the next
// page. Files has one more than the page may have if there are that many. The largest
// page possible may be followed by an empty one.
func (p *searchPage) fill(resp *searchv1.SearchResponse, files []*searchv1.FileMatch, cut cut, revision int64) error {
	limit, maxBytes := searchapi.FilesOf(p.options), int(p.options.MaxBytes)
	more := len(files) > limit || cut != notCut || limit == searchapi.MaxFiles && len(files) == limit
	files = files[:min(limit, len(files))]
	if len(files) < limit {
		resp.Cut = cutReasons[cut]
	}
	resp.Coverage = searchapi.TrimCoverage(resp.Coverage, maxBytes/2)
	room := maxBytes - proto.Size(resp) - tokenRoom
	if n := searchapi.FittingFiles(files, room); n < len(files) {
		if n == 0 {
			searchapi.CutFile(files[0], room) // an empty page could have no next page
			n = 1
		}
		if n < len(files) {
			files, more, resp.Cut = files[:n], true, searchv1.CutReason_CUT_REASON_MAX_BYTES
		}
	}
	resp.Files = files
	if !more || len(files) == 0 || len(files) == p.left {
		return nil
	}
	kept, next := p.endAt(files, revision)
	switch {
	case next != nil:
		resp.Files, resp.NextPageToken = kept, next
	case resp.Cut == searchv1.CutReason_CUT_REASON_UNSPECIFIED:
		return searchapi.FieldError(codes.FailedPrecondition, "options.max_files",
			"a page token cannot hold the paths at the end of this page: raise max_files")
	}
	return nil
}

// endAt ends the page at its last file, or before files whose paths are too long for a
// token. Those start the next page.
func (p *searchPage) endAt(files []*searchv1.FileMatch, revision int64) (kept []*searchv1.FileMatch, next []byte) {
	for n := len(files); n > 0 && next == nil; n-- {
		kept = files[:n]
		next = encodePageToken(p.mark, pageCursor{After: searchapi.Key(files[n-1]), Revision: revision, Left: max(p.left-n, 0)})
	}
	return kept, next
}

// answer counts files of the answer. All says that they end it, and that no other file matches.
func (p *searchPage) answer(files []*searchv1.FileMatch, all bool) {
	a := &p.answered
	a.files, a.exact = a.files+uint64(len(files)), all && p.after == nil
	for _, f := range files {
		a.matches += f.MatchCount
	}
}

// finish completes the statistics. If the caller sees only part of a shard, the way of the
// search depends on the rest of it too. What searchers read is hidden then, and counts of
// MODE_TOP_K, which say how many files a search met before it could stop, become those of
// the answer.
func (p *searchPage) finish(start time.Time, layout *Layout, coverage *searchv1.Coverage) {
	s := p.statistics
	if layout.Partial {
		s.FilesConsidered, s.BytesDecoded, s.UnitsDecoded, s.PostingListsRead, s.ShardsScanned = 0, 0, 0, 0, 0
		if p.options.Mode == searchv1.Mode_MODE_TOP_K && !p.options.CountOnly {
			s.FilesMatched, s.Matches, s.CountsExact = p.answered.files, p.answered.matches, p.answered.exact
		}
	}
	s.CountsExact = s.CountsExact && coverage.Complete
	s.Duration = durationpb.New(time.Since(start))
}
