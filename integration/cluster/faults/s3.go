package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"
)

// S3Fault is the fault of one request. Its zero value is no fault.
type S3Fault struct {
	// Status, unless 0, is the answer; the request is not passed on.
	Status int
	// Wait, unless nil, delays the request until a receive from it succeeds.
	Wait <-chan struct{}
	// Truncate breaks the connection after half of the response's body.
	Truncate bool
	// Shorten sends half of the body as if that were all.
	Shorten bool
	// Flip changes one bit in the middle of the body.
	Flip bool
	// BytesPerSecond limits how fast the body is sent; 0 is no limit.
	BytesPerSecond int
}

// S3 is a proxy in front of an S3 endpoint. It is safe for concurrent use.
type S3 struct {
	server *http.Server
	ln     net.Listener
	ended  chan struct{}
	// choose returns the fault for a request.
	choose   atomic.Pointer[func(*http.Request) S3Fault]
	injected atomic.Int64
}

// NewS3 starts a proxy that listens on an address, whose port may be 0, and passes requests
// on to the endpoint, http://HOST:PORT. It changes nothing in a request, not even the Host
// header, so signatures stay valid. The caller closes the proxy.
func NewS3(listen, endpoint string) (*S3, error) {
	target, err := url.Parse(endpoint)
	if err != nil {
		return nil, fmt.Errorf("proxy before S3: %w", err)
	}
	ln, err := new(net.ListenConfig).Listen(context.Background(), "tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("proxy before %s: %w", endpoint, err)
	}
	p := &S3{ln: ln, ended: make(chan struct{})}
	p.Set(nil)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
		Transport:      &http.Transport{DisableCompression: true, DisableKeepAlives: true},
		ModifyResponse: func(r *http.Response) error { return corrupt(r, faultOf(r.Request.Context())) },
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	p.server = &http.Server{Handler: p.faulty(proxy), ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(p.ended)
		_ = p.server.Serve(ln) // until Close
	}()
	return p, nil
}

// Addr is where the proxy listens, HOST:PORT.
func (p *S3) Addr() string { return p.ln.Addr().String() }

// Close ends all connections.
func (p *S3) Close() error {
	err := p.server.Close()
	<-p.ended
	return err
}

// Set makes choose decide the fault of each request from now on. It must be safe for
// concurrent use; nil means no faults.
func (p *S3) Set(choose func(*http.Request) S3Fault) {
	if choose == nil {
		choose = func(*http.Request) S3Fault { return S3Fault{} }
	}
	p.choose.Store(&choose)
}

// Injected counts the requests that met a fault.
func (p *S3) Injected() int64 { return p.injected.Load() }

// faultKey is the key of the fault in a request's context.
type faultKey struct{}

func faultOf(ctx context.Context) S3Fault {
	f, _ := ctx.Value(faultKey{}).(S3Fault)
	return f
}

func (p *S3) faulty(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := (*p.choose.Load())(r)
		if f != (S3Fault{}) {
			p.injected.Add(1)
		}
		if f.Wait != nil {
			select {
			case <-f.Wait:
			case <-r.Context().Done():
				return
			}
		}
		if f.Status != 0 {
			http.Error(w, "injected", f.Status)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), faultKey{}, f)))
	})
}

// corrupt applies the fault to a successful response with a body.
func corrupt(r *http.Response, f S3Fault) error {
	if r.StatusCode >= http.StatusMultipleChoices || r.ContentLength <= 0 {
		return nil
	}
	half := r.ContentLength / 2
	switch {
	case f.Truncate:
		r.Body = &body{ReadCloser: r.Body, left: half, end: errors.New("truncated by the proxy")}
	case f.Shorten:
		r.Body = &body{ReadCloser: r.Body, left: half, end: io.EOF}
		r.ContentLength = half
		r.Header.Set("Content-Length", strconv.FormatInt(half, 10))
	case f.Flip:
		r.Body = &flipped{ReadCloser: r.Body, at: half}
	case f.BytesPerSecond > 0:
		r.Body = &slow{ReadCloser: r.Body, ctx: r.Request.Context(), perSecond: f.BytesPerSecond}
	}
	return nil
}

// body ends after left bytes.
type body struct {
	io.ReadCloser
	left int64
	end  error
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, b.end
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// flipped inverts one bit at an offset.
type flipped struct {
	io.ReadCloser
	at int64
}

// Read implements io.Reader.
func (f *flipped) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if f.at >= 0 && f.at < int64(n) {
		p[f.at] ^= 1
	}
	f.at -= int64(n)
	return n, err
}

// slow yields small pieces at a limited rate.
type slow struct {
	io.ReadCloser
	ctx       context.Context //nolint:containedctx // of the request that the body answers
	perSecond int
}

// Read implements io.Reader.
func (s *slow) Read(p []byte) (int, error) {
	piece := max(1, s.perSecond/dripsPerSecond)
	select {
	case <-time.After(time.Second / dripsPerSecond):
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
	return s.ReadCloser.Read(p[:min(len(p), piece)])
}
