package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/server"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
)

// The files of a query, and the files of one call to a searcher.
type (
	fileSet  = resultSet[*searchv1.FileMatch]
	fileList = resultList[*searchv1.FileMatch]
)

func (s *Service) newFileSet() *fileSet {
	return newResultSet(s.cfg.Limits.queryBytes(), func(a, b *searchv1.FileMatch) int {
		return search.Compare(searchapi.Key(a), searchapi.Key(b))
	}, searchapi.FileMemory)
}

// cutReasons maps why results were cut to what callers get.
var cutReasons = map[cut]searchv1.CutReason{
	cutBySearcher: searchv1.CutReason_CUT_REASON_MAX_BYTES,
	cutByMemory:   searchv1.CutReason_CUT_REASON_MEMORY,
}

// searchReply is what one call to a searcher returned.
type searchReply struct {
	files      *fileList
	statistics *searchv1.Statistics
	// facets are in the order of the options.
	facets []*searchv1.FacetCounts
	// explanation is nil unless the caller asked for one.
	explanation *searchv1.Explanation
	searcher    string // ID of the searcher
	shards      uint64 // number of shards asked for
	took        time.Duration
}

// search fans the query of the page out to the searchers of all wanted shards.
// Results holds the files of the replies that it passes to accept.
func (e *execution) search(ctx context.Context, p *searchPage, results *fileSet, accept func(*searchReply)) {
	resolved := e.resolved
	ask := func(ctx context.Context, c searchv1.SearchServiceClient, shards []searchapi.Shard, result *callResult) (fanout.Reply[*searchReply], error) {
		sent, reply := time.Now(), &searchReply{files: results.open(), searcher: result.searcher, shards: uint64(len(shards))}
		req := &searchv1.StreamSearchRequest{Search: &searchv1.SearchRequest{
			Query: e.asked.text, Tree: e.asked.treeFor(e.layout, shards), Options: p.searcherOptions, Plan: e.planFor(e.asked, resolved, shards, p.after, nil),
		}}
		coverage, err := receive(ctx, c.StreamSearch, req, result, reply.add)
		reply.took = time.Since(sent)
		return fanout.Reply[*searchReply]{Value: reply, Coverage: coverage, Drop: reply.files.drop}, err
	}
	fanOut(ctx, e, "fan out", e.wanted, ask, accept)
}

// add takes one message of the searcher.
func (r *searchReply) add(m *searchv1.StreamSearchResponse) error {
	for _, file := range m.Files {
		if err := r.addFile(file); err != nil {
			return err
		}
	}
	r.facets = append(r.facets, m.Facets...)
	if m.Coverage != nil {
		r.statistics, r.explanation = m.Statistics, m.Explanation
	}
	if m.Cut != searchv1.CutReason_CUT_REASON_UNSPECIFIED {
		r.files.end()
	}
	return nil
}

// receive makes a call and passes the messages of the searcher to take. The last of them has the coverage; a reply
// that ends without it is an error.
func receive[Q, M any, P interface {
	*M
	GetCoverage() *searchv1.Coverage
}](ctx context.Context, open func(context.Context, *Q, ...grpc.CallOption) (grpc.ServerStreamingClient[M], error), req *Q, result *callResult, take func(P) error,
) (coverage *searchv1.Coverage, err error) {
	add := func(m P) error {
		if coverage != nil {
			return nil // nothing belongs after it
		}
		result.started = true
		if err := take(m); err != nil {
			return err
		}
		coverage = m.GetCoverage()
		return nil
	}
	// The searcher of this process passes its messages while open runs.
	stream, err := open(ctx, req, append(result.options(), server.To(add))...)
	for err == nil && coverage == nil {
		var m *M
		if m, err = stream.Recv(); err == nil {
			err = add(m)
		}
	}
	if err == nil {
		_, err = stream.Recv()
	}
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case coverage == nil:
		return nil, status.Error(codes.Internal, "the searcher ended its reply without coverage")
	}
	return coverage, nil
}

var errParts = errors.New("the searcher sent a part of a file that does not continue the previous one")

// addFile adds a file, or the next part of the previous file.
func (r *searchReply) addFile(file *searchv1.FileMatch) (err error) {
	if !file.Continued {
		r.files.add(file)
		return nil
	}
	r.files.extend(searchapi.FileMemory(file), func(whole *searchv1.FileMatch, room bool) {
		switch {
		case whole.Repo != file.Repo || !bytes.Equal(whole.Path, file.Path):
			err = errParts
		case whole.Cut:
			// An earlier part had no room, so this one has none either.
		case !room:
			whole.Cut = true
			if n := len(whole.Chunks); n > 0 && len(whole.Chunks[n-1].Ranges) == 0 {
				whole.Chunks = whole.Chunks[:n-1] // its ranges have not arrived
			}
		default:
			err = searchapi.JoinFile(whole, file)
		}
	})
	if err != nil {
		return fmt.Errorf("%s in %s: %w", file.Path, file.Repo, err)
	}
	return nil
}

// setCommits sets the commits at which the files are served.
func (e *execution) setCommits(files []*searchv1.FileMatch) {
	for _, f := range files {
		if len(f.Branches) > 0 {
			f.Commit = e.layout.Commit(f.Repo, f.Branches[0], f.Commit)
		}
	}
}
