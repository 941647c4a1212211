package serve

import (
	"context"
	"errors"
	"slices"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/index/shard"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

// StreamList implements searchv1.SearchServiceServer. It sends one entry for each repo of
// each planned shard, as soon as that shard is searched. If the plan resolves fewer
// type:repo than the query has, it lists the repos of the first unresolved one.
func (s *Service) StreamList(req *searchv1.StreamListRequest, stream grpc.ServerStreamingServer[searchv1.StreamListResponse]) error {
	defer s.metrics.begin("stream_list")()
	if err := understood(req); err != nil {
		return err
	}
	coverage, err := s.list(stream.Context(), req.List, func(entries []*searchv1.RepoEntry) error {
		for piece := range searchapi.EntryPieces(slices.Values(entries)) {
			if err := stream.Send(&searchv1.StreamListResponse{Repos: piece}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return stream.Send(&searchv1.StreamListResponse{Coverage: coverage})
}

// list passes the entries of each shard to send, one call at a time and without holding a
// processor. An error of send ends it.
func (s *Service) list(ctx context.Context, req *searchv1.ListRequest, send func([]*searchv1.RepoEntry) error) (*searchv1.Coverage, error) {
	shards, err := planned(req.Plan)
	if err != nil {
		return nil, err
	}
	tree, next, err := parse(req.Query, req.Tree, req.SyntaxVersion, req.Plan)
	if err != nil {
		return nil, err
	}
	if next != nil {
		tree = next
	}
	ctx, cancel := budget(ctx)
	defer cancel()
	call, err := s.admit(ctx, len(shards))
	if err != nil {
		return nil, err
	}
	defer call.end()
	q, err := s.compile(ctx, tree)
	if err != nil {
		return nil, err
	}
	defer q.Close()
	out := &outbox{send: send, failed: cancel}
	list := func(ctx context.Context, h *shardcache.Handle, planned searchapi.Shard, overlays map[int]search.Overlay) (error, error) {
		r, err := h.Shard.List(ctx, q, search.ListOptions{
			Repos: planned.Repos.Filter(), Overlays: overlays, MaxSkippedFiles: int(req.MaxSkippedFiles),
			After: req.Plan.GetSpan().GetAfter(), Last: req.Plan.GetSpan().GetLast(),
		})
		if err != nil {
			return nil, err
		}
		call.decoded(r.BytesDecoded)
		out.put(r.Repos)
		return r.Incomplete, nil
	}
	coverage := s.each(ctx, call, visits{span: "list shard", revision: req.Plan.GetRevision(), shards: shards, visit: list, then: out.flush}).Coverage()
	s.metrics.count(coverage)
	return coverage, out.err
}

// outbox collects entries while a processor is held, and sends them after that.
type outbox struct {
	send func([]*searchv1.RepoEntry) error
	// failed cancels the call.
	failed func()

	mu      sync.Mutex
	waiting []*searchv1.RepoEntry

	sending sync.Mutex
	err     error
}

func (o *outbox) put(repos []shard.RepoStats) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range repos {
		o.waiting = append(o.waiting, searchapi.Entry(&repos[i]))
	}
}

// flush sends the collected entries.
func (o *outbox) flush() {
	o.sending.Lock()
	defer o.sending.Unlock()
	o.mu.Lock()
	entries := o.waiting
	o.waiting = nil
	o.mu.Unlock()
	if o.err != nil || len(entries) == 0 {
		return
	}
	if o.err = o.send(entries); o.err != nil {
		o.failed()
	}
}

// GetFile implements searchv1.SearchServiceServer. NOT_FOUND means that no planned shard
// holds the file. If a shard could not be read the status is UNAVAILABLE: another
// searcher may have the file.
func (s *Service) GetFile(ctx context.Context, req *searchv1.GetFileRequest) (*searchv1.GetFileResponse, error) {
	defer s.metrics.begin("get_file")()
	if err := understood(req); err != nil {
		return nil, err
	}
	shards, err := planned(req.Plan)
	if err != nil {
		return nil, err
	}
	ctx, cancel := budget(ctx)
	defer cancel()
	call, err := s.admit(ctx, len(shards))
	if err != nil {
		return nil, err
	}
	defer call.end()
	var mu sync.Mutex
	var found *search.File
	get := func(ctx context.Context, h *shardcache.Handle, planned searchapi.Shard, overlays map[int]search.Overlay) (error, error) {
		f, err := h.Shard.File(ctx, req.Repo, req.Path, req.Branch, search.Options{Repos: planned.Repos.Filter(), Overlays: overlays}, s.part(req))
		if errors.Is(err, search.ErrNoFile) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		call.decoded(uint64(len(f.Content)))
		mu.Lock()
		defer mu.Unlock()
		found = f
		return nil, nil
	}
	coverage := s.each(ctx, call, visits{span: "get file", revision: req.Plan.GetRevision(), shards: shards, visit: get}).Coverage()
	s.metrics.count(coverage)
	if found != nil {
		return s.file(found), nil
	}
	if !coverage.Complete {
		return nil, status.Errorf(codes.Unavailable, "%s: %s", searchapi.ReasonText(coverage.Uncovered[0].Reason), coverage.Uncovered[0].Message)
	}
	return nil, searchapi.FileNotFound(req, "", nil)
}

// part is the part of a document to read. It is no longer than an answer can be.
func (s *Service) part(req *searchv1.GetFileRequest) search.Part {
	p := search.Part{Offset: req.Offset, MaxBytes: req.MaxBytes}
	if most := uint64(max(s.cfg.MaxAnswer, 0)); most > 0 && (p.MaxBytes == 0 || p.MaxBytes > most) {
		p.MaxBytes = most
	}
	return p
}

// file answers with the part of a document that was read, as far as it fits.
func (s *Service) file(f *search.File) *searchv1.GetFileResponse {
	resp := &searchv1.GetFileResponse{
		Language: f.Language, Commit: f.Commit, Blob: f.Blob, Branches: f.Branches,
		SkipReason: searchv1.SkipReason(f.Skip), SizeBytes: f.Size,
	}
	room := len(f.Content)
	if s.cfg.MaxAnswer > 0 {
		room = min(room, max(s.cfg.MaxAnswer-proto.Size(resp)-searchapi.ContentField, 0))
	}
	resp.Content = f.Content[:room]
	return resp
}
