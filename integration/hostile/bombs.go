// Package hostile has what hostile callers send, for the tests that show that it harms nobody
// else.
package hostile

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// bomb is a compressor that sends the same bytes for every message; they inflate to 16 MiB.
type bomb struct{ bytes []byte }

func (bomb) Name() string                                   { return "gzip" }
func (b bomb) Compress(w io.Writer) (io.WriteCloser, error) { return &bombWriter{w, b.bytes}, nil }
func (bomb) Decompress(r io.Reader) (io.Reader, error)      { return r, nil }

type bombWriter struct {
	to   io.Writer
	bomb []byte
}

func (*bombWriter) Write(p []byte) (int, error) { return len(p), nil }
func (w *bombWriter) Close() error              { _, err := w.to.Write(w.bomb); return err }

// RegisterBombs turns every gzip-compressed gRPC message of this process into a bomb.
func RegisterBombs() error {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	// The field query, 16 MiB with its header.
	const head, size = 5, 16 << 20
	if _, err := w.Write(append([]byte{0x0a, 0xfb, 0xff, 0xff, 0x07}, bytes.Repeat([]byte("x"), size-head)...)); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	encoding.RegisterCompressor(bomb{b.Bytes()})
	return nil
}

// ThrowBombs has ten callers on each connection send five bombs by each of three methods, and five HTTP
// bodies of 8 MiB to a URL. It waits for the end, and passes every error of a bomb to answered, from many
// goroutines. RegisterBombs must be called first.
func ThrowBombs(ctx context.Context, conns []*grpc.ClientConn, url string, answered func(method string, err error)) {
	var callers sync.WaitGroup
	for _, conn := range conns {
		for range 10 {
			callers.Go(func() {
				for range 5 {
					for _, method := range []string{
						searchv1.SearchService_Search_FullMethodName, searchv1.SearchService_List_FullMethodName, ingestv1.IngestService_PutRepo_FullMethodName,
					} {
						err := conn.Invoke(ctx, method, &searchv1.SearchRequest{Query: "x"}, &searchv1.SearchResponse{}, grpc.UseCompressor("gzip"))
						answered(method, err)
					}
					throwBody(ctx, url)
				}
			})
		}
	}
	callers.Wait()
}

// throwBody sends a large body without a token. The response may come before its end.
func throwBody(ctx context.Context, url string) {
	const size = 8 << 20
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, io.LimitReader(spaces{}, size))
	if err != nil {
		return
	}
	req.ContentLength = size
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if resp, err := client.Do(req); err == nil {
		resp.Body.Close()
	}
}

// spaces is an endless reader of white space.
type spaces struct{}

func (spaces) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}
