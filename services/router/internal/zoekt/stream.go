package zoekt

import (
	"context"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	webserverv1 "github.com/trawl-search/trawl/proto/zoekt/webserver/v1"
)

// maxPiece bounds a message of a stream in bytes, unless a single file is larger.
const maxPiece = 1 << 20

// StreamSearch implements webserverv1.WebserverServiceServer. Files are sent as they are found. Those that are found
// within FlushWallTime are held until then and sent in order. Statistics are known at the end, and in the last message.
func (s *Service) StreamSearch(req *webserverv1.StreamSearchRequest, stream grpc.ServerStreamingServer[webserverv1.StreamSearchResponse]) error {
	options := optionsOf(req.GetRequest().GetOpts())
	if options.EstimateDocCount {
		result, err := s.search(stream.Context(), req.GetRequest())
		if err != nil {
			return err
		}
		stream.SetTrailer(result.Trawl.trailer())
		return stream.Send(&webserverv1.StreamSearchResponse{ResponseChunk: &webserverv1.SearchResponse{Stats: result.message(), Progress: finished()}})
	}
	if err := options.check(); err != nil {
		return err
	}
	ctx, cancel := s.limits.within(stream.Context(), options.MaxWallTime)
	defer cancel()
	answers := s.open(nil)
	tree, err := translate(ctx, answers, req.GetRequest().GetQuery())
	if err != nil {
		return err
	}
	hold := options.FlushWallTime
	options.FlushWallTime = 0 // it is not ignored here
	out := &flow{ctx: ctx, answers: answers, stream: stream, options: options, view: options.newView(newRoom(s.limits.Bytes, &searchResult{}), ""), flowing: hold <= 0}
	if hold > 0 {
		timer := time.AfterFunc(hold, out.begin)
		defer timer.Stop()
	}
	err = answers.EachBatch(ctx, options.ask(question{tree: tree}, s.limits), out.add)
	return out.end(s.limits, err)
}

// flow sends the files of an answer while it comes.
type flow struct {
	ctx     context.Context //nolint:containedctx // that of the call, which the flow is a part of
	answers Answers
	stream  grpc.ServerStreamingServer[webserverv1.StreamSearchResponse]
	options *searchOptions

	// mu guards what follows, since begin may run at the same time as add and end.
	mu     sync.Mutex
	choice choice
	view   *view
	// held are files that are not sent yet. Nothing is held once the answer is flowing.
	held    []*searchv1.FileMatch
	flowing bool
	came    received
	// contents that are missing although they were asked for.
	missing int
	last    *searchv1.StreamSearchResponse
	err     error
}

// begin sends what is held, and makes the rest flow.
func (f *flow) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flowing = true
	f.release()
}

// add takes a message of the answer.
func (f *flow) add(m *searchv1.StreamSearchResponse) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = append(f.held, m.GetFiles()...)
	if m.GetStatistics() != nil {
		f.last = m
	}
	if f.flowing {
		f.release()
	}
	return f.err
}

// release sends what is held, the best first.
func (f *flow) release() {
	files := f.held
	f.held = nil
	if f.err != nil || len(files) == 0 {
		return
	}
	if f.view.id == nil {
		if f.view.id, f.err = f.answers.RepoIDs(f.ctx); f.err != nil {
			return
		}
	}
	slices.SortFunc(files, func(a, b *searchv1.FileMatch) int { return search.Compare(searchapi.Key(a), searchapi.Key(b)) })
	f.came.files += len(files)
	f.came.short = f.came.short || slices.ContainsFunc(files, f.options.cutShort)
	chosen := f.options.choose(&f.choice, files)
	part := &searchResult{Files: f.view.show(chosen)}
	if f.options.Whole {
		addContents(f.ctx, f.answers, chosen, part, f.view.room)
		f.missing += part.Trawl.ContentsMissing
		for i := range part.Files {
			f.view.room.left -= base64Size(len(part.Files[i].Content))
		}
	}
	f.err = f.send(part.Files)
}

// send sends files in pieces.
func (f *flow) send(files []fileMatch) error {
	piece, size := &webserverv1.SearchResponse{Progress: pending()}, 0
	for i := range files {
		file := files[i].message()
		files[i] = fileMatch{} // it is sent once
		n := proto.Size(file)
		if len(piece.Files) > 0 && size+n >= maxPiece {
			if err := f.stream.Send(&webserverv1.StreamSearchResponse{ResponseChunk: piece}); err != nil {
				return err
			}
			piece, size = &webserverv1.SearchResponse{Progress: pending()}, 0
		}
		piece.Files = append(piece.Files, file)
		size += n
	}
	if len(piece.Files) == 0 {
		return nil
	}
	return f.stream.Send(&webserverv1.StreamSearchResponse{ResponseChunk: piece})
}

// end sends what is held and then the statistics of the whole answer, unless it failed. Nothing is sent after it.
func (f *flow) end(limits Limits, failed error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if failed != nil {
		f.err, f.held = failed, nil
	}
	f.release()
	if f.err != nil {
		return f.err
	}
	result := limits.newResult(f.options, f.last.GetStatistics(), f.last.GetCoverage())
	result.Trawl.CountsAtLeast = !f.last.GetStatistics().GetCountsExact()
	result.FilesSkipped, result.Trawl.ContentsMissing = f.choice.skipped, f.missing
	f.came.shown, f.came.cut, f.came.more = f.view.files, f.last.GetCut(), result.FileCount > f.came.files
	f.options.reportLimits(result, f.came, f.view.room)
	f.stream.SetTrailer(result.Trawl.trailer())
	return f.stream.Send(&webserverv1.StreamSearchResponse{ResponseChunk: &webserverv1.SearchResponse{Stats: result.message(), Progress: finished()}})
}
