package search

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Bounds of GetFiles.
const (
	// filesAtOnce is how many files of a request are read at the same time.
	filesAtOnce = 4
	// filesWithNearest is how many files that do not exist get the nearest names, which take a search each, or a read from etcd.
	filesWithNearest = 10
	// answerFrame is the most bytes that a file takes in the answer besides its own fields.
	answerFrame = 8 + searchapi.ContentField
)

// GetFiles implements searchv1.SearchServiceServer. Each file first gets an equal share of the bytes, so that large files leave room for
// small ones and all that is read fits the answer. What small files leave goes to the others, in order.
func (s *Service) GetFiles(ctx context.Context, req *searchv1.GetFilesRequest) (resp *searchv1.GetFilesResponse, err error) {
	start := s.metrics.begin()
	defer func() { s.metrics.observe("get_files", start, nil, err) }()
	asking, l, err := s.lookup(ctx, "get_files", start, req.Consistency, 0)
	if err != nil {
		return nil, err
	}
	defer l.end()
	resp = &searchv1.GetFilesResponse{Files: make([]*searchv1.FileAnswer, len(req.Files)), RevisionToken: l.layout.token()}
	asked, failed := make([]*searchv1.GetFileRequest, len(req.Files)), make([]error, len(req.Files))
	most := s.cfg.Limits.bytes(req.MaxBytes)
	share := contentRoom(most / len(req.Files))
	turn := make(chan struct{}, filesAtOnce)
	var reading sync.WaitGroup
	for i, f := range req.Files {
		asked[i] = &searchv1.GetFileRequest{Repo: f.Repo, Path: f.Path, Branch: f.Branch, MaxBytes: uint64(share + responseOverhead)}
		turn <- struct{}{}
		reading.Go(func() {
			defer func() { <-turn }()
			var file *searchv1.GetFileResponse
			file, failed[i] = l.file(asking, asked[i])
			resp.Files[i] = &searchv1.FileAnswer{Answer: &searchv1.FileAnswer_File{File: file}}
		})
	}
	reading.Wait()
	if asking.Err() != nil {
		return nil, status.FromContextError(asking.Err()).Err()
	}
	missing, room := 0, most-len(resp.RevisionToken)-answerFrame
	for i, answer := range resp.Files {
		err := failed[i]
		if status.Code(err) == codes.NotFound && missing < filesWithNearest {
			missing++
			err = l.withNearest(asking, asked[i], err)
		}
		var content []byte
		if f := answer.GetFile(); f != nil {
			content, f.Content = f.Content, nil
			if size := proto.Size(answer) + answerFrame; size > room {
				err = searchapi.FieldError(codes.OutOfRange, "max_bytes", fmt.Sprintf("no room for this file, whose branches take %d bytes", size))
			}
		}
		if err != nil {
			resp.Files[i] = &searchv1.FileAnswer{Answer: &searchv1.FileAnswer_Error{Error: &searchv1.FileError{
				Code: int32(status.Code(err)), Message: status.Convert(err).Message(), NotFound: searchapi.NotFoundOf(err),
			}}}
		}
		if room -= proto.Size(resp.Files[i]) + answerFrame; err == nil {
			answer.GetFile().Content = content[:max(min(len(content), share, room), 0)]
			room -= len(answer.GetFile().Content)
		}
	}
	for i, answer := range resp.Files {
		if f := answer.GetFile(); f != nil {
			room -= l.extend(asking, asked[i], f, room)
		}
	}
	return resp, nil
}

// extend reads the rest of a file, or as many bytes of it as there is room for, and returns their number.
func (l *lookup) extend(ctx context.Context, req *searchv1.GetFileRequest, f *searchv1.GetFileResponse, room int) (added int) {
	for f.SkipReason == searchv1.SkipReason_SKIP_REASON_UNSPECIFIED && uint64(len(f.Content)) < f.SizeBytes && added < room {
		req.Offset, req.MaxBytes = uint64(len(f.Content)), uint64(room-added+responseOverhead)
		part, err := l.file(ctx, req)
		if err != nil || !bytes.Equal(part.Blob, f.Blob) || len(part.Content) == 0 {
			break // the caller requests the rest, and sees why it is not here
		}
		more := part.Content[:min(len(part.Content), room-added)]
		f.Content, added = append(slices.Clip(f.Content), more...), added+len(more)
	}
	return added
}
