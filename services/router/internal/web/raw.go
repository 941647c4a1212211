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

// rawParam asks for a file as it is.
const rawParam = "raw"

// rawPolicy lets a browser show a file, and run and load nothing.
const rawPolicy = "default-src 'none'; frame-ancestors 'none'; sandbox"

// raw sends a file as it is, as text. An answer that ends too early has fewer bytes than it announces, so that clients notice.
func (p *Pages) raw(ctx context.Context, w http.ResponseWriter, r *http.Request, answers Answers, l located) {
	req := &searchv1.GetFileRequest{Repo: l.repo, Path: []byte(l.path), Branch: l.branch, MaxBytes: readBytes}
	var blob []byte
	for {
		part, err := answers.GetFile(ctx, req)
		switch {
		case err != nil && req.Offset == 0:
			wrong := problemOf("", err)
			http.Error(w, wrong.Text, wrong.Status)
			return
		case err != nil || req.Offset > 0 && !bytes.Equal(part.GetBlob(), blob):
			p.cfg.Log.WarnContext(ctx, "a file ended while it was sent", "repo", l.repo, "error", err)
			return
		case req.Offset == 0:
			h := w.Header()
			h.Set("Content-Security-Policy", rawPolicy)
			h.Set("Content-Type", "text/plain; charset=utf-8")
			h.Set("Content-Disposition", mime.FormatMediaType("inline", map[string]string{"filename": strings.TrimPrefix(l.path, folder(l.path))}))
			h.Set("Content-Length", strconv.FormatUint(part.GetSizeBytes(), 10))
			h.Set(gzhttp.HeaderNoCompression, "1") // it would hide how many bytes there are
			blob = part.GetBlob()
		}
		req.Offset += uint64(len(part.GetContent()))
		if r.Method == http.MethodHead {
			return
		}
		if _, err := w.Write(part.GetContent()); err != nil || len(part.GetContent()) == 0 || req.Offset >= part.GetSizeBytes() {
			return
		}
	}
}
