package zoekt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func TestBodiesThatAreWrong(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		code int
	}{
		"empty":               {"", http.StatusBadRequest},
		"not JSON":            {"Q=needle", http.StatusBadRequest},
		"truncated":           {`{"Q":"needle","Opts":{"Whole":`, http.StatusBadRequest},
		"a list":              {`["needle"]`, http.StatusBadRequest},
		"number as query":     {`{"Q":7}`, http.StatusBadRequest},
		"text as option":      {`{"Q":"x","Opts":{"Whole":"yes"}}`, http.StatusBadRequest},
		"fraction":            {`{"Q":"x","Opts":{"NumContextLines":1.5}}`, http.StatusBadRequest},
		"beyond an integer":   {`{"Q":"x","Opts":{"MaxWallTime":99999999999999999999}}`, http.StatusBadRequest},
		"negative id":         {`{"Q":"x","RepoIDs":[-1]}`, http.StatusBadRequest},
		"id beyond 32 bits":   {`{"Q":"x","RepoIDs":[4294967296]}`, http.StatusBadRequest},
		"no query":            {`{}`, http.StatusBadRequest},
		"null":                {`null`, http.StatusBadRequest},
		"negative time":       {`{"Q":"x","Opts":{"MaxWallTime":-1}}`, http.StatusBadRequest},
		"query beyond limits": {`{"Q":"` + strings.Repeat("x", maxQuery+1) + `"}`, http.StatusBadRequest},
		"deep":                {`{"Q":"x","Other":` + strings.Repeat("[", 1<<20), http.StatusBadRequest},
		"huge":                {`{"Other":"` + strings.Repeat("x", maxBody) + `","Q":"x"}`, http.StatusRequestEntityTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			f := found()
			code, answer := post(t, f.handler().Search(), c.body)
			text, _ := answer["Error"].(string)
			if code != c.code || text == "" || len(answer) != 1 || len(text) > 1000 {
				t.Errorf("status %d, answer %v; want %d and a reason", code, answer, c.code)
			}
			if len(f.searched) > 0 {
				t.Errorf("asked %v", f.searched)
			}
		})
	}
}

func TestOnlyPost(t *testing.T) {
	for _, h := range []http.Handler{found().handler().Search(), found().handler().List()} {
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodHead} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "/api/search", strings.NewReader(`{"Q":"x"}`)))
			if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != http.MethodPost {
				t.Errorf("%s: status %d, Allow %q", method, w.Code, w.Header().Get("Allow"))
			}
		}
	}
}

// TestKeysWithoutRegardToCase: neogrok sends them in lower case.
func TestKeysWithoutRegardToCase(t *testing.T) {
	for _, body := range []string{
		`{"Q":"needle","Opts":{"NumContextLines":2,"ChunkMatches":true,"MaxDocDisplayCount":7},"Unknown":{"x":[1]}}`,
		`{"q":"needle","opts":{"numContextLines":2,"chunkMatches":true,"maxDocDisplayCount":7,"later":null}} and more`,
		`{"q":"needle","OPTS":{"NUMCONTEXTLINES":2,"chunkmatches":true,"maxdocdisplaycount":7}}`,
	} {
		f := found(file("r", "a", "x\n"))
		got := f.result(t, body)["Files"].([]any)[0].(map[string]any)
		if got["ChunkMatches"] == nil || got["LineMatches"] != nil {
			t.Errorf("%s: %v", body, got)
		}
		req := f.searched[0]
		if req.Query != "needle" || req.Options.ContextLines != 3 || req.Options.MaxFiles != 7 {
			t.Errorf("%s: asked %v", body, req)
		}
	}
}

// hiding is an error whose callers get a status.
type hiding struct {
	public *status.Status
	error
}

func (h hiding) GRPCStatus() *status.Status { return h.public }
func (h hiding) Unwrap() error              { return h.error }

func TestErrorsHaveFittingCodes(t *testing.T) {
	for code, want := range map[codes.Code]int{
		codes.InvalidArgument: 400, codes.Unimplemented: 501, codes.Unavailable: 503, codes.DeadlineExceeded: 504,
		codes.ResourceExhausted: 429, codes.Internal: 500, codes.DataLoss: 500, codes.Canceled: 499,
	} {
		f := &fake{err: status.Error(code, "the reason")}
		for _, h := range []http.Handler{f.handler().Search(), f.handler().List()} {
			got, answer := post(t, h, `{"Q":"x"}`)
			if got != want || answer["Error"] != "the reason" {
				t.Errorf("%v: status %d, %v; want %d", code, got, answer, want)
			}
		}
	}
	f := &fake{err: fmt.Errorf("ask: %w", context.DeadlineExceeded)}
	if code, _ := post(t, f.handler().Search(), `{"Q":"x"}`); code != http.StatusGatewayTimeout {
		t.Errorf("a deadline without a status: %d", code)
	}
	f = &fake{err: hiding{status.New(codes.DeadlineExceeded, "the reason"), fmt.Errorf("secret: %w", context.DeadlineExceeded)}}
	if code, answer := post(t, f.handler().Search(), `{"Q":"x"}`); code != http.StatusGatewayTimeout || answer["Error"] != "the reason" {
		t.Errorf("a deadline with a cause that is not for callers: %d, %v", code, answer)
	}
	f = &fake{err: errors.New("secret")}
	if code, answer := post(t, f.handler().Search(), `{"Q":"x"}`); code != 500 || strings.Contains(fmt.Sprint(answer), "secret") {
		t.Errorf("an error that is not for callers: %d, %v", code, answer)
	}
}

func TestMaxWallTime(t *testing.T) {
	for _, c := range []struct {
		opts  string
		most  time.Duration
		least time.Duration
		lower bool
	}{
		{`{}`, defaultWallTime, defaultWallTime / 2, false},
		{`{"MaxWallTime":0}`, defaultWallTime, defaultWallTime / 2, false},
		{`{"MaxWallTime":40000000000}`, 40 * time.Second, 30 * time.Second, false},
		{`{"MaxWallTime":1000000}`, time.Millisecond, -time.Minute, false},
		{`{"MaxWallTime":3600000000000}`, testLimits.WallTime, 30 * time.Second, true},
	} {
		f := found()
		account := f.result(t, `{"Q":"x","Opts":`+c.opts+`}`)["Trawl"].(map[string]any)
		if f.left > c.most || f.left < c.least {
			t.Errorf("%s: %v left, want up to %v", c.opts, f.left, c.most)
		}
		if told := strings.Contains(fmt.Sprint(account["Clamped"]), "MaxWallTime"); told != c.lower {
			t.Errorf("%s: told %v", c.opts, account["Clamped"])
		}
	}
}

func TestCoverageBecomesStats(t *testing.T) {
	f := found()
	f.search.Coverage = &searchv1.Coverage{Requested: 10, Searched: 4, Pruned: 3, Failed: 2, NotReached: 1, Uncovered: []*searchv1.UncoveredShard{
		{Digest: []byte{0xab, 1}, Repos: []string{"r"}, Reason: searchv1.UncoveredReason_UNCOVERED_REASON_CORRUPT, Message: "bad sum"},
	}}
	got := f.result(t, `{"Q":"x"}`)
	for field, want := range map[string]float64{"Crashes": 2, "ShardsScanned": 4, "ShardsSkippedFilter": 3, "ShardsSkipped": 1, "FlushReason": 1} {
		if got[field] != want {
			t.Errorf("%s is %v, want %v", field, got[field], want)
		}
	}
	account := fmt.Sprint(got["Trawl"])
	for _, want := range []string{"Complete:false", "Reason:CORRUPT", "Shard:ab01", "Message:bad sum"} {
		if !strings.Contains(account, want) {
			t.Errorf("no %q in %s", want, account)
		}
	}
}

// TestLargeBodiesAreLimited: requests with large bodies take turns, and those with small
// ones do not wait for them.
func TestLargeBodiesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := found().handler()
		large := `{"Q":"x","RepoIDs":[` + strings.Repeat("1,", largeBody/2) + `1]}`
		var sending []*io.PipeWriter
		for range maxLarge { // of unknown size, and never complete
			r, w := io.Pipe()
			sending = append(sending, w)
			go h.Search().ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/search", r))
		}
		synctest.Wait()
		if code, answer := post(t, h.Search(), large); code != http.StatusTooManyRequests {
			t.Errorf("one more: %d %v", code, answer)
		}
		if code, answer := post(t, h.Search(), `{"Q":"x"}`); code != http.StatusOK {
			t.Errorf("a small one: %d %v", code, answer)
		}
		for _, w := range sending {
			w.Close()
		}
		synctest.Wait()
		if code, answer := post(t, h.Search(), large); code != http.StatusOK {
			t.Errorf("one after the others: %d %v", code, answer)
		}
	})
}
