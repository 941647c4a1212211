package access_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestOutageGrace: second by second without etcd, a token is accepted as usual within the
// staleness, then with the time since which it may have been revoked, and not at all after
// the grace.
func TestOutageGrace(t *testing.T) {
	for _, grace := range []time.Duration{0, time.Minute} {
		inWorldWith(t, grace, func(w *world) {
			text, _ := w.create(everything())
			time.Sleep(time.Minute)
			w.away.Store(true)
			start := time.Now()
			for lost := time.Duration(0); lost < 2*time.Minute; lost = time.Since(start) {
				p, err := w.directory.Authenticate(t.Context(), text)
				dated, isDated := p.(access.Dated)
				switch known := start.Sub(dated.AsOf); {
				case isDated && (lost > staleness+grace || lost <= staleness-staleness/4 || known < 0 || known > staleness):
					t.Errorf("%v after etcd went: as of %v before", lost, known)
				case err == nil && !isDated && lost > staleness:
					t.Errorf("%v after etcd went: as if it were current", lost)
				case errors.Is(err, access.ErrStale) && lost <= staleness+grace-staleness/4, err != nil && !errors.Is(err, access.ErrStale):
					t.Errorf("%v after etcd went: %v", lost, err)
				}
				if check := w.directory.Check(); !errors.Is(err, check) {
					t.Errorf("%v after etcd went: check says %v, a lookup %v", lost, check, err)
				}
				time.Sleep(time.Second)
			}
			w.want("an unknown token", "trawl_aaaaaaaaaaaaa_"+text[len(text)-secretSize:], access.ErrStale)
			w.away.Store(false)
			time.Sleep(staleness)
			p, err := w.directory.Authenticate(t.Context(), text)
			if _, isDated := p.(access.Dated); err != nil || isDated {
				t.Errorf("when etcd is back: %v, %v", p, err)
			}
		})
	}
}

// TestGraceIsForOutages: once etcd has announced a change, the tokens of before admit
// nobody, whatever the grace: neither when the watch alone fails, nor when etcd comes
// back.
func TestGraceIsForOutages(t *testing.T) {
	inWorldWith(t, time.Hour, func(w *world) {
		text, id := w.create(everything())
		time.Sleep(time.Minute)
		w.deaf.Store(true)
		if err := w.store.Revoke(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(staleness + time.Nanosecond)
		w.want("the watch brings nothing", text, access.ErrStale)
		w.deaf.Store(false)
		time.Sleep(staleness)

		text, id = w.create(everything())
		time.Sleep(time.Minute)
		w.away.Store(true)
		w.deaf.Store(true)
		time.Sleep(time.Minute)
		if err := w.store.Revoke(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		w.want("revoked within the grace", text, nil)
		w.away.Store(false)
		time.Sleep(staleness / 2)
		synctest.Wait()
		w.want("etcd is back, the watch is not", text, access.ErrStale)
		w.deaf.Store(false)
		time.Sleep(staleness)
		w.want("the watch is back", text, access.ErrUnknown)
	})
}

// outage is an authenticator whose callers were known an hour ago, or are not known at
// all.
type outage struct{ over bool }

var hourAgo = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (o outage) Authenticate(context.Context, access.Text) (access.Principal, error) {
	if o.over {
		return nil, access.ErrStale
	}
	return access.Dated{Principal: access.Anyone, AsOf: hourAgo}, nil
}

// trailers is the stream of a call, which keeps its trailer.
type trailers struct {
	grpc.ServerStream

	ctx     context.Context //nolint:containedctx // it is the stream's
	trailer metadata.MD
}

func (s *trailers) Context() context.Context   { return s.ctx }
func (*trailers) Method() string               { return "" }
func (*trailers) SetHeader(metadata.MD) error  { return nil }
func (*trailers) SendHeader(metadata.MD) error { return nil }
func (s *trailers) SetTrailer(md metadata.MD)  { s.trailer = metadata.Join(s.trailer, md) }

// transport is trailers as unary calls have them.
type transport struct{ *trailers }

func (s transport) SetTrailer(md metadata.MD) error {
	s.trailers.SetTrailer(md)
	return nil
}

// call calls a guard over one of its interfaces. It returns the status and the values of
// AuthorizedAsOf in the answer.
func call(t *testing.T, g *access.Guard, how, method string) (codes.Code, []string) {
	t.Helper()
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer x"))
	s := &trailers{ctx: ctx}
	switch how {
	case "unary":
		_, err := g.Unary(grpc.NewContextWithServerTransportStream(ctx, transport{s}), nil, &grpc.UnaryServerInfo{FullMethod: method},
			func(context.Context, any) (any, error) { return nil, nil })
		return status.Code(err), s.trailer[access.AuthorizedAsOf]
	case "stream":
		err := g.Stream(nil, s, &grpc.StreamServerInfo{FullMethod: method}, func(any, grpc.ServerStream) error { return nil })
		return status.Code(err), s.trailer[access.AuthorizedAsOf]
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, method, nil)
	r.Header.Set("Authorization", "Bearer x")
	w := httptest.NewRecorder()
	g.HTTP(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
	code := codes.OK
	if w.Code == http.StatusServiceUnavailable {
		code = codes.Unavailable
	}
	return code, w.Header()[http.CanonicalHeaderKey(access.AuthorizedAsOf)]
}

// TestAnswersOfAnOutage: over each interface, a search of a Dated caller is answered, and
// the answer names its AsOf. The caller may do nothing else. Calls that are refused
// because etcd is away are reported.
func TestAnswersOfAnOutage(t *testing.T) {
	for _, over := range []bool{false, true} {
		g, metrics := guard(t, outage{over}, access.Limits{Calls: 5})
		var reported, refused []string
		g.OnUnavailable(func(method string) { reported = append(reported, method) })
		for _, c := range []struct {
			how, method string
			search      bool
		}{
			{"unary", searchv1.SearchService_Search_FullMethodName, true},
			{"stream", searchv1.SearchService_StreamSearch_FullMethodName, true},
			{"http", "/api/search", true},
			{"unary", ingestv1.IngestService_PutRepo_FullMethodName, false},
			{"stream", ingestv1.IngestService_WatchRepo_FullMethodName, false},
			{"unary", ingestv1.SourceService_ListSources_FullMethodName, false},
			{"http", "/elsewhere", false},
		} {
			code, asOf := call(t, g, c.how, c.method)
			if c.search && !over {
				if code != codes.OK || !slices.Equal(asOf, []string{"2026-01-02T03:04:05Z"}) {
					t.Errorf("%s %s: %v, as of %q", c.how, c.method, code, asOf)
				}
				continue
			}
			refused = append(refused, c.method)
			if code != codes.Unavailable || asOf != nil {
				t.Errorf("%s %s: %v, as of %q", c.how, c.method, code, asOf)
			}
		}
		if n := refusals(t, metrics, "stale"); n != len(refused) || !slices.Equal(reported, refused) {
			t.Errorf("%d were counted and %q reported, of %q", n, reported, refused)
		}
	}
}
