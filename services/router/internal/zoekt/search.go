package zoekt

import (
	"cmp"
	"context"
	"slices"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// search answers /api/search.
func (h *Handler) search(ctx context.Context, to links, req *searchRequest) (*searchReply, error) {
	if err := req.check(); err != nil {
		return nil, err
	}
	ctx, cancel := h.limits.within(ctx, cmp.Or(req.Opts.MaxWallTime, defaultWallTime))
	defer cancel()
	result, err := h.limits.search(ctx, h.open(req.keep()), question{text: req.Q, links: to}, &req.Opts)
	if err != nil {
		return nil, err
	}
	return &searchReply{Result: *result}, nil
}

// question is what is looked for: a text or a tree.
type question struct {
	text  string
	tree  *searchv1.Query
	links links
}

// search finds files, and shows them within the limits.
func (l Limits) search(ctx context.Context, answers Answers, q question, o *searchOptions) (*searchResult, error) {
	if o.EstimateDocCount {
		return l.estimate(ctx, answers, q, o)
	}
	resp, err := answers.Search(ctx, o.ask(q, l))
	if err != nil {
		return nil, err
	}
	result := l.newResult(o, resp.Statistics, resp.Coverage)
	result.Trawl.CountsAtLeast = !resp.Statistics.GetCountsExact()
	var c choice
	files := o.choose(&c, resp.Files)
	result.FilesSkipped = c.skipped
	room := newRoom(l.Bytes, result)
	v := o.newView(room, q.links)
	if len(files) > 0 {
		if v.id, err = answers.RepoIDs(ctx); err != nil {
			return nil, err
		}
	}
	result.Files = v.show(files)
	for repo, to := range v.linked {
		result.RepoURLs[repo], result.LineFragments[repo] = to.file, to.line
	}
	o.reportLimits(result, received{
		files: len(resp.Files), shown: v.files, more: len(resp.NextPageToken) > 0, cut: resp.Cut, short: slices.ContainsFunc(resp.Files, o.cutShort),
	}, room)
	if o.Whole {
		addContents(ctx, answers, files, result, room)
	}
	return result, nil
}

// estimate answers with an upper bound of the matching documents: all documents of the
// repos in which something matches.
func (l Limits) estimate(ctx context.Context, answers Answers, q question, o *searchOptions) (*searchResult, error) {
	documents := 0
	coverage, err := answers.EachRepo(ctx, &searchv1.ListRequest{Query: q.text, Tree: q.tree}, func(entries []*searchv1.RepoEntry) error {
		for _, e := range entries {
			documents += int(e.Documents)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	result := l.newResult(o, nil, coverage)
	result.ShardFilesConsidered = documents
	return result, nil
}

// newResult is a result without files.
func (l Limits) newResult(o *searchOptions, s *searchv1.Statistics, c *searchv1.Coverage) *searchResult {
	result := &searchResult{
		stats: newStats(s, c), Trawl: newAccount(c),
		Files: []fileMatch{}, RepoURLs: map[string]string{}, LineFragments: map[string]string{},
	}
	result.Trawl.Clamped, result.Trawl.Ignored = o.clamped(l), o.ignored()
	return result
}

// received describes the part of an answer that has arrived.
type received struct {
	// files that came, and how many of them are shown.
	files, shown int
	// more files match.
	more bool
	// cut is why those have not arrived.
	cut searchv1.CutReason
	// short is set if a file has fewer matches than it should.
	short bool
}

// reportLimits reports that this server's limits of files or bytes made the answer shorter
// than requested.
func (o *searchOptions) reportLimits(result *searchResult, came received, room *room) {
	const files = "MaxDocDisplayCount"
	asked := o.MaxDocDisplayCount
	cut := room.files > 0 || came.more && (asked <= 0 || asked > came.files)
	if cut && !slices.Contains(result.Trawl.Clamped, files) {
		result.Trawl.Clamped = append(result.Trawl.Clamped, files)
	}
	if cut && came.cut != searchv1.CutReason_CUT_REASON_UNSPECIFIED || room.files > 0 {
		result.Trawl.FilesLeftOut = leftOut(result, came.shown, asked)
	}
	short := room.matches || came.short
	if short {
		result.Trawl.Clamped = append(result.Trawl.Clamped, "MaxMatchDisplayCount")
	}
	if (cut || short) && result.FlushReason == 0 {
		result.FlushReason = flushSize
	}
}

// leftOut is the number of matching files within the limits of the request that are not
// shown.
func leftOut(result *searchResult, shown, asked int) int {
	due := result.FileCount - result.FilesSkipped
	if asked > 0 {
		due = min(due, asked)
	}
	return max(due-shown, 0)
}

// cutShort reports whether the file has fewer ranges than the limit of matches explains.
func (o *searchOptions) cutShort(f *searchv1.FileMatch) bool {
	limit := o.matchLimit()
	shown := uint64(0)
	for _, c := range f.Chunks {
		shown += uint64(len(c.Ranges))
	}
	return shown < f.MatchCount && (limit <= 0 || shown < uint64(limit))
}

// choice is what was chosen so far of an answer that comes in pieces.
type choice struct {
	matches int
	ofRepo  map[string]int
	// chosen files, and those skipped by a limit of matches.
	chosen, skipped int
}

// choose applies the limits of matches, for each repo and in total, and then the limit of
// files. The file that reaches a limit of matches is the last.
func (o *searchOptions) choose(c *choice, files []*searchv1.FileMatch) (chosen []*searchv1.FileMatch) {
	if c.ofRepo == nil {
		c.ofRepo = make(map[string]int)
	}
	for _, f := range files {
		if full(c.matches, o.TotalMaxMatchCount) || full(c.ofRepo[f.Repo], o.ShardRepoMaxMatchCount) {
			c.skipped++
			continue
		}
		n := max(int(f.MatchCount), 1)
		c.matches += n
		c.ofRepo[f.Repo] += n
		if !full(c.chosen, o.MaxDocDisplayCount) {
			c.chosen++
			chosen = append(chosen, f)
		}
	}
	return chosen
}

func full(n, limit int) bool { return limit > 0 && n >= limit }
