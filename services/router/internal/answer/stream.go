package answer

import (
	"cmp"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/searchwire"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/admission"
)

// StreamSearch implements searchv1.SearchServiceServer. Without max_files it
// sends up to the most that any request may ask for. In exhaustive mode files
// go out as searchers finish, so that beyond max_files it depends on them which
// are sent; in top_k mode the best are sent, in order, when all have finished.
func (s *Service) StreamSearch(req *searchv1.StreamSearchRequest, stream grpc.ServerStreamingServer[searchv1.StreamSearchResponse]) (err error) {
	start := s.metrics.begin()
	var coverage *searchv1.Coverage
	defer func() { s.metrics.observe("stream_search", start, coverage, err) }()
	whole, asking, cancel := s.cfg.Budget.split(stream.Context())
	defer cancel()
	search := proto.Clone(req.Search).(*searchv1.SearchRequest)
	if search.Options == nil {
		search.Options = &searchv1.SearchOptions{}
	}
	search.Options.MaxFiles = cmp.Or(search.Options.MaxFiles, searchwire.MaxFiles)
	p, err := s.newPage(search)
	if err != nil {
		return err
	}
	turn, err := s.admit(whole, "stream_search", start, streamClass(p.options.Mode))
	if err != nil {
		return err
	}
	defer turn.end()
	q, err := s.begin(asking, turn, search.Query, p.options.SyntaxVersion, p.options.Consistency, p.atLeast)
	if err != nil {
		return err
	}
	out := &pieces{stream: stream, page: p}
	q.search(asking, p, out.take)
	if err := out.rest(); err != nil {
		return err
	}
	if coverage, err = q.close(whole, p.options.RequireComplete); err != nil {
		return err
	}
	p.finish(start, q.layout)
	return stream.Send(&searchv1.StreamSearchResponse{
		Statistics: p.statistics, Coverage: coverage, RevisionToken: catalog.EncodeToken(q.layout.Revision),
	})
}

// streamClass takes a stream of everything for a program's, which can wait.
func streamClass(m searchv1.Mode) admission.Class {
	if m == searchv1.Mode_MODE_TOP_K {
		return admission.Interactive
	}
	return admission.Batch
}

// pieces sends files in messages of a bounded size.
type pieces struct {
	stream grpc.ServerStreamingServer[searchv1.StreamSearchResponse]
	page   *searchPage
	// held are the lists that top_k must see all of before it sends one.
	held [][]*searchv1.FileMatch
	// files and bytes sent so far.
	files int
	bytes uint64
	// err is the first of sending.
	err error
}

// take sends a searcher's files, or holds them. After an error it does nothing.
func (p *pieces) take(r *searchv1.SearchResponse) {
	searchwire.AddStatistics(p.page.statistics, r.Statistics)
	if p.page.options.Mode == searchv1.Mode_MODE_TOP_K {
		p.held = append(p.held, r.Files)
		return
	}
	p.send(r.Files)
}

// rest sends what was held.
func (p *pieces) rest() error {
	p.send(searchwire.Merge(int(p.page.options.MaxFiles), p.held...))
	return p.err
}

func (p *pieces) send(files []*searchv1.FileMatch) {
	files = files[:min(len(files), int(p.page.options.MaxFiles)-p.files)]
	p.files += len(files)
	searchwire.LimitBytes(files, p.page.options.MaxBytes-p.bytes)
	for piece := range searchwire.Pieces(files) {
		if p.err == nil {
			p.err = p.stream.Send(&searchv1.StreamSearchResponse{Files: piece})
		}
	}
	for _, f := range files {
		p.bytes += contentBytes(f)
	}
}

func contentBytes(f *searchv1.FileMatch) (sum uint64) {
	for _, c := range f.Chunks {
		sum += uint64(len(c.Content))
	}
	return sum
}
