package search

import (
	"cmp"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
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
	search.Options.MaxFiles = cmp.Or(search.Options.MaxFiles, searchapi.MaxFiles)
	search.Options.MaxBytes = cmp.Or(search.Options.MaxBytes, s.cfg.Limits.MaxBytes, searchapi.MaxBytes)
	p, err := s.newPage(search)
	if err != nil {
		return err
	}
	turn, err := s.admit(whole, "stream_search", start, streamClass(p.options.Mode))
	if err != nil {
		return err
	}
	defer turn.end()
	turn.explain = p.explain
	q, err := s.begin(asking, turn, search.Query, p.options.SyntaxVersion, p.options.Consistency, p.atLeast)
	if err != nil {
		return err
	}
	out := &pieces{stream: stream, inquiry: q, page: p, set: s.newFileSet()}
	q.search(asking, p, out.set, out.take)
	p.explain.ends("fan out")
	if err := out.rest(); err != nil {
		return err
	}
	p.explain.ends("merge")
	if coverage, err = q.close(whole, p.options.RequireComplete); err != nil {
		return err
	}
	p.finish(start, q.layout)
	return stream.Send(&searchv1.StreamSearchResponse{
		Statistics: p.statistics, Coverage: searchapi.TrimCoverage(coverage, lastPiece), RevisionToken: catalog.EncodeToken(q.layout.Revision),
		Cut: out.reason(), Explanation: p.explain.explained(q.layout, lastPiece),
	})
}

// lastPiece is the most that the account in the last message of a stream takes.
const lastPiece = 1 << 20

// streamClass takes a stream of everything for a program's, which can wait.
func streamClass(m searchv1.Mode) queryClass {
	if m == searchv1.Mode_MODE_TOP_K {
		return interactive
	}
	return batch
}

// pieces sends files in messages of a bounded size.
type pieces struct {
	stream  grpc.ServerStreamingServer[searchv1.StreamSearchResponse]
	inquiry *inquiry
	page    *searchPage
	set     *fileSet
	// held are the lists that top_k must see all of before it sends one.
	held []*fileList
	// files and bytes sent so far.
	files, bytes int
	// cut is why files were left out.
	cut searchv1.CutReason
	// err is the first of sending.
	err error
}

// take sends a searcher's files, or holds them. After an error it does nothing.
func (p *pieces) take(f *found) {
	searchapi.AddStatistics(p.page.statistics, f.statistics)
	p.page.explain.add(f)
	p.held = append(p.held, f.files)
	if p.page.options.Mode != searchv1.Mode_MODE_TOP_K {
		p.sendHeld()
	}
}

// rest sends what was held.
func (p *pieces) rest() error {
	p.sendHeld()
	return p.err
}

// sendHeld sends the files held, as far as the limits of the answer go, and lets go of them.
func (p *pieces) sendHeld() {
	files, cut := p.set.merge(int(p.page.options.MaxFiles)-p.files, p.held...)
	if cut != notCut {
		p.cut = cutReasons[cut]
	}
	p.send(files)
	for _, l := range p.held {
		l.drop()
	}
	p.held = nil
}

func (p *pieces) send(files []*searchv1.FileMatch) {
	p.inquiry.commit(files)
	room := int(p.page.options.MaxBytes) - p.bytes
	if n := searchapi.FittingFiles(files, room); n < len(files) {
		if n == 0 && p.files == 0 {
			searchapi.CutFile(files[0], room)
			n = 1
		}
		if n < len(files) {
			p.cut = searchv1.CutReason_CUT_REASON_MAX_BYTES
			p.bytes = int(p.page.options.MaxBytes) // what is found from now on has no room either
		}
		files = files[:n]
	}
	p.files += len(files)
	for piece := range searchapi.Pieces(slices.Values(files)) {
		if p.err == nil {
			message := &searchv1.StreamSearchResponse{Files: piece}
			p.bytes += proto.Size(message)
			p.err = p.stream.Send(message)
		}
	}
}

// reason is why files are left out that max_files has room for.
func (p *pieces) reason() searchv1.CutReason {
	if p.files >= int(p.page.options.MaxFiles) {
		return searchv1.CutReason_CUT_REASON_UNSPECIFIED
	}
	return p.cut
}
