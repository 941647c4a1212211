package web

import (
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// linked are pages of host/pond with the templates of a source.
func linked(f *fake, links *ingestv1.Links) Config {
	return Config{
		Open: func() Answers { return f }, WallTime: time.Minute, Log: slog.New(slog.DiscardHandler),
		Sources: func() []*ingestv1.Source {
			return []*ingestv1.Source{{Name: "x", Kind: "git", Url: "https://host/pond.git", Links: links}}
		},
	}
}

// TestHostLinks: a file leads to its pages at the host by the templates of a source, and without one to the repo.
func TestHostLinks(t *testing.T) {
	f := pond()
	page := show(t, f.serve(t, false), "/r/host/pond/-/a/fish.go")
	contains(t, page, `<a href="https://host/pond" rel="noreferrer noopener">at its host</a>`)
	if strings.Contains(page, "data-host") {
		t.Error("the page leads to a file at a host of unknown software")
	}
	page = show(t, routes(t, linked(f, &ingestv1.Links{File: "https://code/{repo}/{path}?id={commit}#n{line}", Blame: "https://code/{path}?l={line}&e={line}"})), "/r/host/pond/-/a/fish.go")
	contains(t, page, `href="https://code/pond/a/fish.go?id=`+testCommit+`" rel="noreferrer noopener" data-host="https://code/pond/a/fish.go?id=`+testCommit+`#n{line}">at its host`,
		`href="https://code/a/fish.go?l=1&e=1" rel="noreferrer noopener" data-host="https://code/a/fish.go?l={line}&e={line}" data-blame>blame`)
	if strings.Contains(page, "history") {
		t.Error("the page leads to a history that the host does not have")
	}
	if got := hostOf(nil, "https://github.com/o/r", testCommit, strings.Repeat("a", maxURL)); got != (host{Repo: "https://github.com/o/r"}) {
		t.Errorf("a long path: %+v", got)
	}
	if got := hostOf(nil, "https://github.com/o/r", testCommit, "a/"); got != (host{Repo: "https://github.com/o/r"}) {
		t.Errorf("a folder: %+v", got)
	}
	// A template that was stored before it was checked, or past the check.
	page = show(t, routes(t, linked(f, &ingestv1.Links{File: `javascript:alert("{path}")`})), "/r/host/pond/-/a/fish.go")
	if strings.Contains(page, "javascript:") {
		t.Error("the page leads to a script")
	}
}

// TestHostLinksWithLines: in a browser, the links to the host lead to the line that the address names.
func TestHostLinksWithLines(t *testing.T) {
	f := pond()
	var base string
	cfg := linked(f, nil)
	cfg.Sources = func() []*ingestv1.Source {
		return []*ingestv1.Source{{Name: "x", Kind: "git", Url: "https://host/pond", Links: &ingestv1.Links{File: base + "/help?p={path}#n{line}", Blame: base + "/help?p={path}&line={line}&end={line}"}}}
	}
	server := httptest.NewServer(routes(t, cfg))
	defer server.Close()
	base = server.URL
	b := openBrowser(t)
	at := func(hash string) string {
		return b.eval(`(location.hash = "` + hash + `", document.querySelectorAll("[data-host]").forEach((l) => { l.addEventListener("click", (e) => e.preventDefault(), { once: true }); l.click(); }),
			[...document.querySelectorAll("[data-host]")].map((l) => l.href.replace(location.origin, "")).join(" "))`)
	}
	b.open(server.URL + "/r/host/pond/-/a/fish.go")
	for _, step := range []struct{ hash, want string }{
		{"", "/help?p=a/fish.go /help?p=a/fish.go&line=1&end=1"},
		{"#L2", "/help?p=a/fish.go#n2 /help?p=a/fish.go&line=2&end=2"},
		{"#L1-L2", "/help?p=a/fish.go#n1 /help?p=a/fish.go&line=1&end=1"},
		{"#", "/help?p=a/fish.go /help?p=a/fish.go&line=1&end=1"},
	} {
		if got := at(step.hash); got != step.want {
			t.Errorf("at %q: %q, want %q", step.hash, got, step.want)
		}
	}
	b.eval(`location.hash = "#L2"`)
	b.press("b")
	b.until(`location.pathname + location.search === "/help?p=a/fish.go&line=2&end=2"`)
}
