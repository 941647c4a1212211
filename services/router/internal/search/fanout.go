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

	"github.com/trawl-search/trawl/index/shard"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/fanout"
)

// The files of a query, and those of one call to a searcher.
type (
	fileSet  = resultSet[*searchv1.FileMatch]
	fileList = resultList[*searchv1.FileMatch]
)

func (s *Service) newFileSet() *fileSet {
	return newResultSet(s.cfg.Limits.queryBytes(), func(a, b *searchv1.FileMatch) int {
		return shard.Compare(searchapi.Key(a), searchapi.Key(b))
	}, searchapi.FileMemory)
}

// cutReasons are how callers are told of a cut.
var cutReasons = map[cut]searchv1.CutReason{
	cutBySearcher: searchv1.CutReason_CUT_REASON_MAX_BYTES,
	cutByMemory:   searchv1.CutReason_CUT_REASON_MEMORY,
}

// found is what one call to a searcher brought.
type found struct {
	files      *fileList
	statistics *searchv1.Statistics
	// explanation is nil unless one is asked for. The searcher took that long for so many shards.
	explanation *searchv1.Explanation
	searcher    string
	shards      uint64
	took        time.Duration
}

// search asks for the page in all wanted shards. What it accepts is in the set.
func (q *inquiry) search(ctx context.Context, p *searchPage, set *fileSet, accept func(*found)) {
	call := func(ctx context.Context, c searchv1.SearchServiceClient, shards []searchapi.Shard, h *hearing) (fanout.Reply[*found], error) {
		f, began := &found{files: set.open(), searcher: h.searcher, shards: uint64(len(shards))}, time.Now()
		stream, err := c.StreamSearch(ctx, &searchv1.StreamSearchRequest{Search: &searchv1.SearchRequest{
			Query: q.text, Options: p.perSearcher(), Plan: q.plan(q.text, shards, p.after),
		}}, h.options()...)
		var coverage *searchv1.Coverage
		if err == nil {
			coverage, err = f.receive(stream, h)
		}
		if err != nil {
			f.files.drop() // a part of an answer is none
			return fanout.Reply[*found]{}, err
		}
		f.took = time.Since(began)
		return fanout.Reply[*found]{Value: f, Coverage: coverage}, nil
	}
	ask(ctx, q, "fan out", q.wanted, call, accept)
}

// receive takes the stream of a searcher to its end.
func (f *found) receive(stream grpc.ServerStreamingClient[searchv1.StreamSearchResponse], h *hearing) (*searchv1.Coverage, error) {
	return receive(stream, h, func(m *searchv1.StreamSearchResponse) error {
		for _, file := range m.Files {
			if err := f.take(file); err != nil {
				return err
			}
		}
		if m.Coverage != nil {
			f.statistics, f.explanation = m.Statistics, m.Explanation
		}
		if m.Cut != searchv1.CutReason_CUT_REASON_UNSPECIFIED {
			f.files.end()
		}
		return nil
	})
}

// receive gives the messages of a searcher to take, until the last one, which has the
// coverage. A stream that ends without is an error.
func receive[M interface{ GetCoverage() *searchv1.Coverage }](stream interface{ Recv() (M, error) }, h *hearing, take func(M) error) (*searchv1.Coverage, error) {
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil, status.Error(codes.Internal, "its answer ended before its account")
		}
		if err != nil {
			return nil, err
		}
		h.begun = true
		if err := take(m); err != nil {
			return nil, err
		}
		if m.GetCoverage() == nil {
			continue
		}
		if _, err := stream.Recv(); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		return m.GetCoverage(), nil
	}
}

var errParts = errors.New("it sent a part of a file that does not follow the one before")

// take adds a file, or a part of the file before.
func (f *found) take(file *searchv1.FileMatch) (err error) {
	if !file.Continued {
		f.files.add(file)
		return nil
	}
	f.files.extend(searchapi.FileMemory(file), func(whole *searchv1.FileMatch, room bool) {
		switch {
		case whole.Repo != file.Repo || !bytes.Equal(whole.Path, file.Path):
			err = errParts
		case whole.Cut:
			// What follows a part without room has none either.
		case !room:
			whole.Cut = true
			if n := len(whole.Chunks); n > 0 && len(whole.Chunks[n-1].Ranges) == 0 {
				whole.Chunks = whole.Chunks[:n-1] // its ranges were still to come
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

// commit names the commits that files are served at.
func (q *inquiry) commit(files []*searchv1.FileMatch) {
	for _, f := range files {
		if len(f.Branches) > 0 {
			f.Commit = q.layout.Commit(f.Repo, f.Branches[0], f.Commit)
		}
	}
}
