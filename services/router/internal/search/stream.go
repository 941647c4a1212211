package search

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// StreamSearch implements searchv1.SearchServiceServer. Without max_files it
// sends as many files as any request may ask for. In exhaustive mode it sends what searchers
// find within firstFiles in order, and other files as searchers finish, so their speed decides
// which files are sent if there are more than max_files. In top_k mode it sends the best files
// in order when all have finished.
func (s *Service) StreamSearch(req *searchv1.StreamSearchRequest, stream grpc.ServerStreamingServer[searchv1.StreamSearchResponse]) error {
	return s.stream(stream.Context(), req.Search, streamClass(req.Search.GetOptions().GetMode()), sink{stream.Send, searchapi.Pieces})
}

// EachBatch passes the messages of a StreamSearch that a person waits for to do, one after the other. They may
// be of any size: no file is divided. It stops at the first error of do.
func (s *Service) EachBatch(ctx context.Context, req *searchv1.SearchRequest, do func(*searchv1.StreamSearchResponse) error) error {
	return s.stream(ctx, req, interactive, sink{do, undivided})
}

// sink takes the messages of a stream, for which it divides files.
type sink struct {
	send   func(*searchv1.StreamSearchResponse) error
	divide func(iter.Seq[*searchv1.FileMatch]) iter.Seq[[]*searchv1.FileMatch]
}

func undivided(files iter.Seq[*searchv1.FileMatch]) iter.Seq[[]*searchv1.FileMatch] {
	return func(yield func([]*searchv1.FileMatch) bool) {
		if all := slices.Collect(files); len(all) > 0 {
			yield(all)
		}
	}
}

func (s *Service) stream(ctx context.Context, search *searchv1.SearchRequest, class queryClass, to sink) (err error) {
	start := s.metrics.begin()
	var coverage *searchv1.Coverage
	defer func() { s.metrics.observe("stream_search", start, coverage, given(ctx, err)) }()
	options := searchapi.WithDefaults(search.GetOptions())
	if search.GetOptions().GetMaxFiles() == 0 {
		options.MaxFiles = searchapi.MaxFiles
	}
	if search.GetOptions().GetMaxBytes() == 0 {
		options.MaxBytes = cmp.Or(s.cfg.Limits.MaxBytes, searchapi.MaxBytes)
	}
	p, err := s.newPage(search, options)
	if err != nil {
		return err
	}
	e, asking, end, err := s.begin(ctx, "stream_search", start, class, p)
	if err != nil {
		return err
	}
	defer end()
	searching, stop := e.within(asking)
	defer stop()
	out := &pieces{to: to, execution: e, page: p, results: s.newFileSet()}
	stopFirst := out.sendFirst()
	e.search(searching, p, out.results, out.add)
	stopFirst()
	p.explain.ends("fan out")
	out.sendHeld()
	if out.err != nil {
		return out.err
	}
	p.explain.ends("merge")
	if coverage, err = e.account(p.options.RequireComplete); err != nil {
		return err
	}
	p.finish(start, e.layout, coverage)
	return to.send(&searchv1.StreamSearchResponse{
		Statistics: p.statistics, Coverage: searchapi.TrimCoverage(coverage, lastPiece), RevisionToken: e.layout.token(),
		Cut: out.reason(), Explanation: p.explain.explained(e.layout, lastPiece),
		Facets: p.counted(), Selected: p.selected, Empty: e.empty(asking, p),
	})
}

// lastPiece bounds the account in the last message of a stream, in bytes.
const lastPiece = 1 << 20

// streamClass is the default class of a stream. A stream of all files is likely a
// program's, which can wait.
func streamClass(m searchv1.Mode) queryClass {
	if m == searchv1.Mode_MODE_TOP_K {
		return interactive
	}
	return batch
}

// firstFiles is how long an exhaustive stream holds the first files that searchers find, so
// that it starts with the best of them.
const firstFiles = 50 * time.Millisecond

// pieces sends files in messages of bounded size.
type pieces struct {
	to        sink
	execution *execution
	page      *searchPage
	results   *fileSet

	// mu guards what follows, since sendFirst and add may run at the same time.
	mu sync.Mutex
	// held are lists that are not sent yet: top_k needs all of them before it sends a file.
	held []*fileList
	// flowing is set when lists are sent as they come.
	flowing bool
	// files and bytes sent so far.
	files, bytes int
	// cut is why files were left out.
	cut searchv1.CutReason
	// err is the first error of sending.
	err error
}

// sendFirst makes an exhaustive stream send what is held when firstFiles are over, and all
// other lists as they come. Stop must follow the last list; it waits until nothing is sent.
func (p *pieces) sendFirst() (stop func()) {
	if p.page.options.Mode == searchv1.Mode_MODE_TOP_K {
		return func() {}
	}
	var waiting sync.WaitGroup
	over := make(chan struct{})
	waiting.Go(func() {
		select {
		case <-time.After(firstFiles):
			p.mu.Lock()
			defer p.mu.Unlock()
			p.flowing = true
			p.sendHeld()
		case <-over:
		}
	})
	return func() {
		close(over)
		waiting.Wait()
	}
}

// add sends the files of one searcher, or holds them. After an error of sending it sends
// nothing.
func (p *pieces) add(r *searchReply) {
	p.page.add(r)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = append(p.held, r.files)
	if p.flowing {
		p.sendHeld()
	}
}

// sendHeld sends the held files within the limits of the answer, and drops the lists.
func (p *pieces) sendHeld() {
	files, cut := p.results.merge(int(p.page.options.MaxFiles)-p.files, p.held...)
	if cut != notCut {
		p.cut = cutReasons[cut]
	}
	p.page.answer(files, cut == notCut && p.files+len(files) < int(p.page.options.MaxFiles))
	p.send(files)
	for _, l := range p.held {
		l.drop()
	}
	p.held = nil
}

func (p *pieces) send(files []*searchv1.FileMatch) {
	p.execution.setCommits(files)
	room := int(p.page.options.MaxBytes) - p.bytes
	if n := searchapi.FittingFiles(files, room); n < len(files) {
		p.bytes = int(p.page.options.MaxBytes) // no later file is sent in the place of one that had no room
		if n == 0 && p.files == 0 {
			searchapi.CutFile(files[0], room)
			n = 1
		}
		if n < len(files) {
			p.cut = searchv1.CutReason_CUT_REASON_MAX_BYTES
		}
		files = files[:n]
	}
	p.files += len(files)
	for piece := range p.to.divide(slices.Values(files)) {
		if p.err == nil {
			message := &searchv1.StreamSearchResponse{Files: piece}
			p.bytes += proto.Size(message)
			p.err = p.to.send(message)
		}
	}
}

// reason is why the stream has fewer files than max_files and than match.
func (p *pieces) reason() searchv1.CutReason {
	if p.files >= int(p.page.options.MaxFiles) {
		return searchv1.CutReason_CUT_REASON_UNSPECIFIED
	}
	return p.cut
}
