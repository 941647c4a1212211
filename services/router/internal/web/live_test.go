package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/testrun"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// typed answers each query by a file of its name in three repos. Only a count has facets and exact numbers.
type typed struct {
	*fake

	// counting makes the answer to a count another one, or fail.
	counting func(ctx context.Context, counted *searchv1.SearchResponse) error
	// began and ended count the searches for "slow", which wait until their caller has gone.
	began, ended atomic.Int32
}

func (f *typed) Search(ctx context.Context, req *searchv1.SearchRequest) (*searchv1.SearchResponse, error) {
	if _, err := f.fake.Search(ctx, req); err != nil {
		return nil, err
	}
	if req.Query == "slow" {
		f.began.Add(1)
		<-ctx.Done()
		if errors.Is(context.Cause(ctx), context.Canceled) {
			f.ended.Add(1)
		}
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	if !req.Options.CountOnly {
		resp := found(hit("host/a", req.Query))
		resp.Statistics.Matches, resp.Statistics.CountsExact = 1, false
		return resp, nil
	}
	counted := found()
	counted.Statistics.Matches, counted.Statistics.FilesMatched = 1234, 77
	counted.Facets = []*searchv1.FacetCounts{{Facet: searchv1.Facet_FACET_REPO, Values: []*searchv1.FacetValue{{Repo: "host/a", Files: 70}, {Repo: "host/" + req.Query, Files: 7}}}}
	if f.counting == nil {
		return counted, nil
	}
	return counted, f.counting(ctx, counted)
}

func (f *typed) pages(t testing.TB) http.Handler {
	t.Helper()
	return routes(t, Config{Open: func() Answers { return f }, WallTime: time.Minute, Log: slog.New(slog.DiscardHandler)})
}

// TestFacetsOfLiveSearch: results that come as one types have the facets and the exact numbers of all files, if these can be
// counted soon enough; else the results come without.
func TestFacetsOfLiveSearch(t *testing.T) {
	f := &typed{fake: pond()}
	h := f.pages(t)
	text := func() string { return strings.Join(strings.Fields(textOf(show(t, h, "/?q=fish&part=1&live=1"))), " ") }
	contains(t, text(), "1,234 matches in 77 files.", "Repos host/a 70", "host/fish 7")
	if options := f.asked[1].Options; len(f.asked) != 2 || f.asked[0].Options.Mode != searchv1.Mode_MODE_TOP_K || !options.CountOnly || len(options.Facets) != 3 {
		t.Errorf("asked for %v", f.asked)
	}
	f.counting = func(_ context.Context, counted *searchv1.SearchResponse) error {
		counted.Coverage = &searchv1.Coverage{Requested: 2, Searched: 1, Failed: 1}
		return nil
	}
	contains(t, text(), "At least 1 match in 1 file.", "Repos host/a 70")
	f.counting = func(ctx context.Context, _ *searchv1.SearchResponse) error {
		<-ctx.Done()
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("the count ends by %v, which metrics take for a failure", ctx.Err())
		}
		return status.FromContextError(ctx.Err()).Err()
	}
	got := text()
	contains(t, got, "At least 1 match in 1 file.", "Complete", "host/a", "Not counted yet.")
	if strings.Contains(got, "Repos") || strings.Contains(got, "Incomplete") {
		t.Errorf("nothing was counted: %s", got)
	}
}

// TestFacetsAsOneTypes: in a browser, results and facets come together, by one request after a pause, and never go meanwhile; an
// answer to an earlier text never replaces a later one, and the search for it ends.
func TestFacetsAsOneTypes(t *testing.T) {
	f := &typed{fake: pond()}
	var pages atomic.Int32
	h := f.pages(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			pages.Add(1)
		}
		h.ServeHTTP(w, r)
	}))
	defer server.Close()
	b := openBrowser(t)
	b.open(server.URL + "/")
	const shown = `document.querySelector(".result .path")?.textContent + " " + document.querySelector("aside a[href]:not(.without)")?.textContent + " " +
		[...document.querySelectorAll("aside li")].pop()?.textContent.trim()`
	shows := func(query string) {
		t.Helper()
		b.until(shown + ` === "` + query + ` host/a host/` + query + ` 7 −"`)
	}
	b.typed("fis")
	shows("fis")
	// From now on there are always results and facets, at their places.
	b.eval(`new MutationObserver(() => { if (!document.querySelector("aside li") || !document.querySelector(".result")) document.body.dataset.gone = "yes"; })
		.observe(document.body, { childList: true, subtree: true })`)
	before := pages.Load()
	b.typed("h")
	shows("fish")
	if n := pages.Load() - before; n != 1 {
		t.Errorf("%d requests for one pause", n)
	}
	anew := func() { b.eval(`document.getElementById("q").select()`) }
	anew()
	b.typed("slow")
	testrun.Until(t, "the slow search has begun", func() bool { return f.began.Load() == 1 })
	anew()
	b.typed("quick")
	shows("quick")
	testrun.Until(t, "the slow search has ended", func() bool { return f.ended.Load() == 1 })
	b.until(`!document.querySelector(".waiting")`)
	shows("quick")
	if gone := b.eval(`document.body.dataset.gone`); gone != "undefined" {
		t.Error("results or facets were gone for a while")
	}
	if got := b.eval(`new URLSearchParams(location.search).get("q") + " " + ` + others); got != "quick 0" {
		t.Errorf("the address, and requests to others: %s", got)
	}
	b.eval(`document.querySelector("aside li:last-child a").click()`)
	b.until(`document.readyState === "complete" && document.getElementById("q").value === "quick r:^host/quick$"`)
}
