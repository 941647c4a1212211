package zoektjson

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// fetches is how many files one request fetches at a time.
const fetches = 8

// addContents puts the contents into the files of the result, as many as the
// time and the limit of bytes allow.
func (h *Handler) addContents(ctx context.Context, answers Answers, files []*searchv1.FileMatch, result *searchResult) {
	next := make(chan int)
	var left, missing atomic.Int64
	left.Store(int64(h.limits.Bytes))
	var fetching sync.WaitGroup
	for range min(fetches, len(result.Files)) {
		fetching.Go(func() {
			for i := range next {
				content, ok := fetch(ctx, answers, files[i])
				if size := int64(len(content)); ok && left.Add(-size) < 0 {
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

// fetch gets the content of a file that was found. A file without searchable
// content has an empty one.
func fetch(ctx context.Context, answers Answers, f *searchv1.FileMatch) (content []byte, ok bool) {
	if f.SkipReason != searchv1.SkipReason_SKIP_REASON_UNSPECIFIED {
		return nil, true
	}
	if ctx.Err() != nil || len(f.Branches) == 0 {
		return nil, false
	}
	resp, err := answers.GetFile(ctx, &searchv1.GetFileRequest{Repo: f.Repo, Path: f.Path, Branch: f.Branches[0]})
	if err != nil || !bytes.Equal(resp.Blob, f.Blob) {
		return nil, false
	}
	return resp.Content, true
}
