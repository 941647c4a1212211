package jsonapi

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestRequests: body and parameters make the same request, in both spellings of the fields.
func TestRequests(t *testing.T) {
	options := &searchv1.SearchOptions{
		Mode: searchv1.Mode_MODE_TOP_K, MaxFiles: 7, RequireComplete: true,
		Consistency: &searchv1.Consistency{Level: &searchv1.Consistency_Bounded{Bounded: durationpb.New(90 * time.Second)}},
	}
	search := &searchv1.SearchRequest{Query: "a b", Options: options, PageToken: []byte{0xff, 0}}
	for _, c := range []struct {
		verb, target, body string
		want               proto.Message
	}{
		{"POST", "/api/v1/search?timeout=5s", `{"query":"a b","options":{"mode":"MODE_TOP_K","maxFiles":7,"requireComplete":true,"consistency":{"bounded":"90s"}},"pageToken":"/wA="}`, search},
		{"POST", "/api/v1/search", `{"query":"a b","options":{"mode":2,"max_files":7,"require_complete":true,"consistency":{"bounded":"90s"}},"page_token":"_wA"}`, search},
		{"GET", "/api/v1/search?q=a+b&options.mode=MODE_TOP_K&options.maxFiles=7&options.requireComplete=true&options.consistency.bounded=90s&pageToken=/wA%3D&timeout=1s", "", search},
		{"GET", "/api/v1/search?query=a%20b&options.mode=MODE_TOP_K&options.max_files=7&options.require_complete=true&options.consistency.bounded=90s&page_token=_wA", "", search},
		{"POST", "/api/v1/search/stream", `{"query":"x"}`, &searchv1.StreamSearchRequest{Search: &searchv1.SearchRequest{Query: "x"}}},
		{"GET", "/api/v1/search?q=x&pageToken=+/+%2B", "", &searchv1.SearchRequest{Query: "x", PageToken: []byte{0xfb, 0xff, 0xbe}}},
		{"GET", "/api/v1/search/stream?q=x", "", &searchv1.StreamSearchRequest{Search: &searchv1.SearchRequest{Query: "x"}}},
		{"GET", "/api/v1/file?repo=r&path=a%FF%20b&offset=3", "", &searchv1.GetFileRequest{Repo: "r", Path: []byte("a\xff b"), Offset: 3}},
		{"GET", "/api/v1/tree?repo=r&path=a%FF%20b/&depth=2", "", &searchv1.ListTreeRequest{Repo: "r", Path: []byte("a\xff b/"), Depth: 2}},
		{"POST", "/api/v1/files", `{"files":[{"repo":"r","path":"Yf8="}],"maxBytes":9}`, &searchv1.GetFilesRequest{Files: []*searchv1.FileName{{Repo: "r", Path: []byte("a\xff")}}, MaxBytes: 9}},
		{"POST", "/api/v1/file", `{"repo":"r","path":"Yf8="}`, &searchv1.GetFileRequest{Repo: "r", Path: []byte("a\xff")}},
		{"POST", "/api/v1/repos/put", `{"url":"https://x/y","branches":["a","b"],"facts":{"meta":{"k":"v"}}}`, &ingestv1.PutRepoRequest{
			Url: "https://x/y", Branches: []string{"a", "b"}, Facts: &ingestv1.RepoFacts{Meta: map[string]string{"k": "v"}},
		}},
	} {
		f := &calls{}
		if w := f.do(t, c.verb, c.target, c.body); w.Code != http.StatusOK || !proto.Equal(f.asked, c.want) {
			t.Errorf("%s %s: %d, asked %v, want %v: %s", c.verb, c.target, w.Code, f.asked, c.want, w.Body)
		}
	}
}

// TestRequestsThatAreWrong: the answer names the error, and nothing is called.
func TestRequestsThatAreWrong(t *testing.T) {
	for _, c := range []struct {
		verb, target, body string
		code               int
		want               string
	}{
		{"POST", "/api/v1/search", "", 400, "the body is empty"},
		{"POST", "/api/v1/search", "query=x", 400, "read the request: "},
		{"POST", "/api/v1/search", `["x"]`, 400, "read the request: "},
		{"POST", "/api/v1/search", `{"query":7}`, 400, "query"},
		{"POST", "/api/v1/search", `{"query":"x","query":"y"}`, 400, "duplicate"},
		{"POST", "/api/v1/search", `{"query":"x"} {}`, 400, "read the request: "},
		{"POST", "/api/v1/search", `{"qeury":"x"}`, 400, `unknown field "qeury"`},
		{"POST", "/api/v1/search", `{"options":{"mode":"BEST"}}`, 400, "BEST"},
		{"POST", "/api/v1/search", `{"options":{"mode":9}}`, 400, "search.options.mode: must be one of the defined values"},
		{"POST", "/api/v1/search", `{"options":{"maxFiles":99999999999}}`, 400, "99999999999"},
		{"POST", "/api/v1/search", `{"options":{"maxFiles":-1}}`, 400, "-1"},
		{"POST", "/api/v1/search", `{"options":{"maxFiles":20000}}`, 400, "options.max_files"},
		{"POST", "/api/v1/search", `{"options":{"maxBytes":9000000}}`, 400, "maxBytes: the most is 8388608"},
		{"POST", "/api/v1/file", `{"repo":"r","path":"eA==","maxBytes":"9000000"}`, 400, "maxBytes: the most is 8388608"},
		{"POST", "/api/v1/search", `{"query":"` + strings.Repeat("x", 17000) + `"}`, 400, "query: "},
		{"POST", "/api/v1/search", `{"query":"` + strings.Repeat("x", 1<<20) + `"}`, 413, "larger than 1048576 bytes"},
		{"POST", "/api/v1/search", strings.Repeat(`{"options":`, 10), 400, "read the request: "},
		{"POST", "/api/v1/search", `{"pageToken":"*"}`, 400, "pageToken"},
		{"POST", "/api/v1/search?q=x", `{}`, 400, "from the body"},
		{"POST", "/api/v1/search?timeout=5", `{}`, 400, `"5" is not a time`},
		{"POST", "/api/v1/search?timeout=-1s", `{}`, 400, "is not a time"},
		{"GET", "/api/v1/search?limit=3", "", 400, `there is no parameter "limit"`},
		{"GET", "/api/v1/search?syntaxVersion=2", "", 400, `there is no parameter "syntaxVersion"; the nearest: options.syntaxVersion; /api/openapi.json lists all`},
		{"GET", "/api/v1/search?max_files=3", "", 400, `the nearest: options.maxFiles;`},
		{"GET", "/api/v1/search?qeury=x", "", 400, `the nearest: query;`},
		{"GET", "/api/v1/search?options=3", "", 400, "options"},
		{"GET", "/api/v1/search?options.maxFiles.x=3", "", 400, "there is no parameter"},
		{"GET", "/api/v1/search?q=a&q=b", "", 400, "more than once"},
		{"GET", "/api/v1/search?q=a&query=b", "", 400, "more than once"},
		{"GET", "/api/v1/search?options.explain=yes", "", 400, "explain"},
		{"GET", "/api/v1/search?q=%FF", "", 400, "UTF-8"},
		{"GET", "/api/v1/search?options.mode=TOP_K", "", 400, `the parameter "options.mode" is "TOP_K": want MODE_UNSPECIFIED, MODE_EXHAUSTIVE, MODE_TOP_K`},
		{"GET", "/api/v1/search?options.maxFiles=many", "", 400, `read the request: invalid value for uint32 field maxFiles: "many"`},
		{"POST", "/api/v1/file", `{"repo":"r","path":"README.md"}`, 400, `"README.md"; a path in a body is base64, and text in an address: ?path=…`},
		{"GET", "/api/v1/search?q=%", "", 400, "the parameters cannot be read"},
		{"GET", "/api/v1/file?repo=r", "", 400, "path: "},
		{"GET", "/api/v1/repos/put?url=x", "", 405, "takes POST"},
		{"HEAD", "/api/v1/repos/put?url=x", "", 405, "takes POST"},
		{"DELETE", "/api/v1/search", "", 405, "takes POST, GET"},
		{"GET", "/api/v1/nothing", "", 404, "/api/openapi.json"},
		{"GET", "/api/v1/search/", "", 404, "/api/openapi.json"},
		{"GET", "/api/v1/%FF", "", 404, "/api/openapi.json"},
		{"POST", "/api/v1/search", "\xff\xfe{\x00}\x00", 400, "read the request: "},
		{"POST", "/api/v1/search", `{"query":"\ud800"}`, 400, `a \u escape is one half of a character`},
		{"POST", "/api/v1/search", `{"query":"\ud800 and more"}`, 400, `a \u escape is one half of a character`},
		{"POST", "/api/v1/search", `{"query":"\udc00\ud800"}`, 400, `a \u escape is one half of a character`},
		{"POST", "/api/v1/search", `{"): invalid escape code \"":1}`, 400, `unknown field`},
		{"POST", "/api/v1/search", `{"query":"x`, 400, `unexpected EOF`},
		{"POST", "/api/v1/search", "{\"query\":\xc3}", 400, "read the request: "},
		{"POST", "/api/v1/search/stream", "{\xff}", 400, "read the request: "},
	} {
		f := &calls{}
		w := f.do(t, c.verb, c.target, c.body)
		text, _ := object(t, w.Body.Bytes())["message"].(string)
		if w.Code != c.code || len(text) > 500 || (!strings.Contains(text, c.want) && !strings.HasPrefix(c.want, "search.")) {
			t.Errorf("%s %s %.60s: %d %s; want %d with %q", c.verb, c.target, c.body, w.Code, text, c.code, c.want)
		}
		if f.asked != nil {
			t.Errorf("%s %s %.60s: called %v", c.verb, c.target, c.body, f.asked)
		}
	}
}

// TestHead: a HEAD is a GET whose answer is not sent. That of a stream ends with its first event.
func TestHead(t *testing.T) {
	for _, path := range []string{"/api/v1/search?q=x", "/api/v1/search/stream?q=x"} {
		var of [2]http.Header
		for i, method := range []string{http.MethodGet, http.MethodHead} {
			f := &calls{each: func(ctx context.Context, n int, _ proto.Message) error {
				if n > 1 && method == http.MethodHead {
					<-ctx.Done() // as a watch would
				}
				if n > 1 {
					return io.EOF
				}
				return nil
			}}
			w := f.do(t, method, path, "")
			if of[i] = w.Header(); w.Code != http.StatusOK {
				t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
		}
		if fmt.Sprint(of[0]) != fmt.Sprint(of[1]) {
			t.Errorf("%s: GET has %v, HEAD %v", path, of[0], of[1])
		}
	}
}

// TestErrors: each code has its status, and details are there for programs.
func TestErrors(t *testing.T) {
	_, bad := query.Parse("a (b", query.ParseOptions{})
	for _, c := range []struct {
		err  error
		code int
		want string
	}{
		{searchapi.QueryError("query", bad), 400, `"@type":"type.googleapis.com/trawl.search.v1.QueryError"`},
		{searchapi.QueryError("query", bad), 400, `"position":`},
		{searchapi.Overloaded("too many", 1500*time.Millisecond), 429, `"retryDelay":"1.500s"`},
		{searchapi.Incomplete(&searchv1.Coverage{Requested: 2, Failed: 1}), 412, `"requested":"2"`},
		{searchapi.Incomplete(&searchv1.Coverage{Requested: 2, NotReached: 1}), 504, `"notReached":"1"`},
		{status.Error(codes.Unauthenticated, "the reason"), 401, `"code":16`},
		{status.Error(codes.PermissionDenied, "the reason"), 403, `"message":"the reason"`},
		{status.Error(codes.NotFound, "the reason"), 404, `"code":5`},
		{status.Error(codes.AlreadyExists, "the reason"), 409, `"code":6`},
		{status.Error(codes.Aborted, "the reason"), 409, `"code":10`},
		{status.Error(codes.Unimplemented, "the reason"), 501, `"code":12`},
		{status.Error(codes.Unavailable, "the reason"), 503, `"code":14`},
		{status.Error(codes.Canceled, "the reason"), 499, `"code":1`},
		{status.Error(codes.DataLoss, "the reason"), 500, `"code":15`},
		{fmt.Errorf("hunter2"), 500, `"message":"internal error"`},
	} {
		for _, path := range []string{"/api/v1/search", "/api/v1/search/stream"} {
			f := &calls{
				answer: func(context.Context, proto.Message) error { return c.err },
				each:   func(context.Context, int, proto.Message) error { return c.err },
			}
			w := f.do(t, "POST", path, `{"query":"x"}`)
			answer := strings.ReplaceAll(strings.ReplaceAll(w.Body.String(), `": `, `":`), ", ", ",")
			if w.Code != c.code || !strings.Contains(answer, c.want) || strings.Contains(answer, "hunter2") || w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("%s, %v: %d %s; want %d with %s", path, c.err, w.Code, answer, c.code, c.want)
			}
			if retry := w.Header().Get("Retry-After"); (retry == "2") != (c.code == 429) {
				t.Errorf("%s, %v: Retry-After %q", path, c.err, retry)
			}
		}
	}
}

// TestPathsThatAreText: text in place of base64 in a body is the base64 of another path, and the error about that path says so. In an
// address a path is text.
func TestPathsThatAreText(t *testing.T) {
	missing := searchapi.FileNotFound(&searchv1.GetFileRequest{Repo: "host/pond", Path: []byte("1\xa9\x1e~)^")}, "", nil)
	const said = "a path in a body is base64, and text in an address: ?path=…"
	for _, c := range []struct {
		verb, target, body string
		want               bool
	}{
		{"POST", "/api/v1/file", `{"repo":"host/pond","path":"Makefile"}`, true},
		{"POST", "/api/v1/tree", `{"repo":"host/pond","path":"Makefile"}`, true},
		{"GET", "/api/v1/file?repo=host/pond&path=Makefile", "", false},
		{"POST", "/api/v1/files", `{"files":[{"repo":"host/pond","path":"Makefile"}]}`, true},
	} {
		f := &calls{answer: func(_ context.Context, resp proto.Message) error {
			if several, ok := resp.(*searchv1.GetFilesResponse); ok {
				of := &searchv1.FileError{Code: int32(codes.NotFound), Message: "no file", NotFound: searchapi.NotFoundOf(missing)}
				several.Files = []*searchv1.FileAnswer{{Answer: &searchv1.FileAnswer_Error{Error: of}}}
				return nil
			}
			return missing
		}}
		if w := f.do(t, c.verb, c.target, c.body); strings.Contains(w.Body.String(), said) != c.want {
			t.Errorf("%s %s: %s", c.verb, c.target, w.Body)
		}
	}
}

// TestUnknownDetails: an error is not lost for a detail that cannot be written.
func TestUnknownDetails(t *testing.T) {
	s, err := status.New(codes.NotFound, "the reason").WithDetails(&errdetails.ErrorInfo{Reason: "x"})
	if err != nil {
		t.Fatal(err)
	}
	p := s.Proto()
	p.Details[0].TypeUrl = "type.googleapis.com/nobody.knows.This"
	f := &calls{answer: func(context.Context, proto.Message) error { return status.FromProto(p).Err() }}
	if w := f.do(t, "POST", "/api/v1/search", "{}"); w.Code != 404 || object(t, w.Body.Bytes())["message"] != "the reason" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestTimeouts: a call has the requested time, within the limit of the server.
func TestTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for target, want := range map[string]time.Duration{
			"/api/v1/search": time.Minute, "/api/v1/search?timeout=500ms": 500 * time.Millisecond, "/api/v1/search?timeout=2h": time.Minute,
			"/api/v1/search/stream": 0, "/api/v1/search/stream?timeout=2h": 2 * time.Hour,
		} {
			var got time.Duration
			deadline := func(ctx context.Context) {
				if at, ok := ctx.Deadline(); ok {
					got = time.Until(at)
				}
			}
			f := &calls{
				answer: func(ctx context.Context, _ proto.Message) error { deadline(ctx); return nil },
				each:   func(ctx context.Context, _ int, _ proto.Message) error { deadline(ctx); return io.EOF },
			}
			f.do(t, "POST", target, "{}")
			if got != want {
				t.Errorf("%s: %v, want %v", target, got, want)
			}
		}
	})
}

// TestCallerGoesAway: its call ends at once, not at its deadline.
func TestCallerGoesAway(t *testing.T) {
	for _, path := range []string{"/api/v1/search", "/api/v1/search/stream"} {
		reading := 20 * time.Millisecond
		for !callerGoesAway(t, path, reading) { // a slow machine
			if reading *= 2; reading > time.Minute {
				t.Fatalf("%s: a request is not read", path)
			}
		}
	}
}

// callerGoesAway reports whether the request was read within the limit of reading, which must not
// end a call that waits.
func callerGoesAway(t *testing.T, path string, reading time.Duration) bool {
	t.Helper()
	running, ended := make(chan struct{}), make(chan struct{})
	waits := func(ctx context.Context) error {
		close(running)
		<-ctx.Done()
		close(ended)
		return status.FromContextError(ctx.Err()).Err()
	}
	f := &calls{
		answer: func(ctx context.Context, _ proto.Message) error { return waits(ctx) },
		each:   func(ctx context.Context, _ int, _ proto.Message) error { return waits(ctx) },
	}
	srv := httptest.NewUnstartedServer(f.handler(t))
	srv.Config.ReadTimeout = reading
	srv.Start()
	defer srv.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+path, strings.NewReader("{}"))
		if err != nil {
			answered <- err
			return
		}
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(req)
		if err == nil {
			resp.Body.Close()
		}
		answered <- err
	}()
	select {
	case <-running:
	case <-answered:
		return false
	}
	select {
	case <-ended:
		t.Errorf("%s: the call ended by itself", path)
	case <-time.After(3 * reading):
	}
	cancel()
	if err := <-answered; err == nil {
		t.Errorf("%s: answered", path)
	}
	<-ended
	return true
}
