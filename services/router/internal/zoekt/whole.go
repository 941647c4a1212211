package zoekt

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// fetches is how many files one request fetches at once.
const fetches = 8

// addContents adds contents to the files of the result, as far as the deadline and the
// limit of bytes allow.
func addContents(ctx context.Context, answers Answers, files []*searchv1.FileMatch, result *searchResult, room *room) {
	next := make(chan int)
	var left, missing atomic.Int64
	left.Store(room.left)
	var fetching sync.WaitGroup
	for range min(fetches, len(result.Files)) {
		fetching.Go(func() {
			for i := range next {
				content, ok := fetch(ctx, answers, files[i], left.Load())
				if size := base64Size(len(content)); ok && left.Add(-size) < 0 {
					left.Add(size)
					ok = false
				}
				if !ok {
					missing.Add(1)
					continue
				}
				result.Files[i].Content = content
			}
		})
	}
	for i := range result.Files {
		next <- i
	}
	close(next)
	fetching.Wait()
	result.Trawl.ContentsMissing = int(missing.Load())
}

// responseOverhead is room for the fields of a response beside the content, in bytes. A file
// that needs more counts as too large.
const responseOverhead = 4 << 10

// fetch gets the content of a found file, unless it exceeds most bytes. A file without
// searchable content has empty content.
func fetch(ctx context.Context, answers Answers, f *searchv1.FileMatch, most int64) (content []byte, ok bool) {
	if f.SkipReason != searchv1.SkipReason_SKIP_REASON_UNSPECIFIED {
		return nil, true
	}
	if ctx.Err() != nil || len(f.Branches) == 0 || most <= 0 {
		return nil, false
	}
	resp, err := answers.GetFile(ctx, &searchv1.GetFileRequest{Repo: f.Repo, Path: f.Path, Branch: f.Branches[0], MaxBytes: uint64(most) + responseOverhead})
	if err != nil || !bytes.Equal(resp.Blob, f.Blob) || uint64(len(resp.Content)) < resp.SizeBytes {
		return nil, false
	}
	return resp.Content, true
}
