package web

import (
	"bytes"
	"context"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzhttp"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// rawPrefix begins the addresses of files as they are. They are apart from the pages, so that whoever follows these finds each file once.
const rawPrefix = "/raw/"

// rawPolicy lets a browser show a file, and run and load nothing.
const rawPolicy = "default-src 'none'; frame-ancestors 'none'; sandbox"

// raw sends a file unchanged, as text. The caller has read its first part. An answer that ends too early has fewer bytes than it
// announces, so that clients notice.
func (p *Pages) raw(ctx context.Context, w http.ResponseWriter, r *http.Request, answers Answers, l located, part *searchv1.GetFileResponse) {
	size, blob := part.GetSizeBytes(), part.GetBlob()
	h := w.Header()
	h.Set("Content-Security-Policy", rawPolicy)
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", mime.FormatMediaType("inline", map[string]string{"filename": strings.TrimPrefix(l.path, folder(l.path))}))
	h.Set("Content-Length", strconv.FormatUint(size, 10))
	h.Set(gzhttp.HeaderNoCompression, "1") // it would hide how many bytes there are
	if r.Method == http.MethodHead {
		return
	}
	req := &searchv1.GetFileRequest{Repo: l.repo, Path: []byte(l.path), Branch: l.branch, MaxBytes: readBytes}
	for {
		_, err := w.Write(part.GetContent())
		req.Offset += uint64(len(part.GetContent()))
		if err != nil || len(part.GetContent()) == 0 || req.Offset >= size {
			return
		}
		if part, err = answers.GetFile(ctx, req); err != nil || !bytes.Equal(part.GetBlob(), blob) {
			p.cfg.Log.WarnContext(ctx, "a file ended while it was sent", "repo", l.repo, "error", err)
			return
		}
	}
}
