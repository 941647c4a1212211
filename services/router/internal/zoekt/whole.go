package zoekt

import (
	"bytes"
	"context"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// addContents adds contents to the files of the result, as far as the deadline and the
// limit of bytes allow. It gets one after the other, so that a request never holds contents beyond its limit.
func addContents(ctx context.Context, answers Answers, files []*searchv1.FileMatch, result *searchResult, room *room) {
	left := room.left
	for i := range result.Files {
		content, ok := fetch(ctx, answers, files[i], left)
		if size := base64Size(len(content)); ok && size <= left {
			result.Files[i].Content, left = content, left-size
		} else {
			result.Trawl.ContentsMissing++
		}
	}
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
