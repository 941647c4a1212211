package web

import (
	"compress/gzip"
	"context"
	"encoding/xml"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestRawFile: a file is sent as it is, in whole, and a browser runs nothing of it.
func TestRawFile(t *testing.T) {
	f := pond()
	f.files["host/pond"]["page.html"] = "<script>alert(1)</script>"
	f.files["host/pond"]["dev only.txt"] = "fish"
	h := f.serve(t, false)
	for _, path := range []string{"page.html", "huge.txt", "wide.txt", "a/fish.go", "strange\xffname", "dev.txt"} {
		want := f.files["host/pond"][path]
		w := visit(t, h, place{"host/pond", "", path}.raw())
		if w.Code != http.StatusOK || w.Body.String() != want || w.Header().Get("Content-Length") != strconv.Itoa(len(want)) {
			t.Errorf("%s: status %d, %d bytes, announced %s, should be %d", path, w.Code, w.Body.Len(), w.Header().Get("Content-Length"), len(want))
		}
		for name, want := range map[string]string{
			"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff", "Content-Security-Policy": rawPolicy, "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
		if !strings.HasPrefix(w.Header().Get("Content-Disposition"), "inline; filename") {
			t.Errorf("%s has the name %s", path, w.Header().Get("Content-Disposition"))
		}
	}
	contains(t, show(t, h, "/r/host/pond/-/a/fish.go"), `<a href="/raw/host/pond/-/a/fish.go">raw</a>`, `<a href="/raw/host/pond/-/a/fish.go" download>`)
	if w := visit(t, h, "/raw/host/pond/-/dev%20only.txt"); w.Header().Get("Location") != "/raw/host/pond@dev/-/dev%20only.txt" {
		t.Errorf("a file of another branch is at %q", w.Header().Get("Location"))
	}
	if w := visit(t, h, "/raw/host/pond/-/none"); w.Code != http.StatusNotFound {
		t.Errorf("a file that is not there: status %d", w.Code)
	}
}

// skipping has no contents.
type skipping struct{ *fake }

func (skipping) GetFile(context.Context, *searchv1.GetFileRequest) (*searchv1.GetFileResponse, error) {
	return &searchv1.GetFileResponse{SizeBytes: 7, SkipReason: searchv1.SkipReason_SKIP_REASON_BINARY}, nil
}

// TestRawFileWithoutContent: what is not kept cannot be taken for a file that is.
func TestRawFileWithoutContent(t *testing.T) {
	if w := visit(t, serving(t, skipping{pond()}), "/raw/host/pond/-/fish"); w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "binary") {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
}

// changing gives another blob for each part of a file.
type changing struct{ *fake }

func (c changing) GetFile(ctx context.Context, req *searchv1.GetFileRequest) (*searchv1.GetFileResponse, error) {
	resp, err := c.fake.GetFile(ctx, req)
	if err == nil {
		resp.Blob = []byte{byte(req.Offset >> 10), byte(req.Offset >> 18)}
	}
	return resp, err
}

// serving are the pages that show answers.
func serving(t *testing.T, answers Answers) http.Handler {
	return routes(t, Config{Open: func() Answers { return answers }, WallTime: time.Minute, Log: slog.New(slog.DiscardHandler)})
}

// TestRawFileChanges: an answer that is not whole cannot be taken for a whole one.
func TestRawFileChanges(t *testing.T) {
	f := changing{pond()}
	s := httptest.NewServer(serving(t, f))
	defer s.Close()
	resp, err := s.Client().Get(s.URL + "/raw/host/pond/-/huge.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); err == nil {
		t.Errorf("%d bytes of a file of %d, and no error", n, len(f.files["host/pond"]["huge.txt"]))
	}
}

// TestPagesAreCompressed: pages, styles and scripts are compressed for clients that want it. A file as it is keeps its length.
func TestPagesAreCompressed(t *testing.T) {
	h := pond().serve(t, true)
	for _, target := range []string{"/help", "/r/host/pond", assets()["style.css"].url, assets()["page.js"].url} {
		plain := visit(t, h, target)
		w := visit(t, h, target, "Accept-Encoding", "gzip, br")
		if w.Header().Get("Content-Encoding") != "gzip" || !strings.Contains(w.Header().Get("Vary"), "Accept-Encoding") || plain.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s has the headers %v", target, w.Header())
			continue
		}
		r, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(r); err != nil || string(text) != plain.Body.String() {
			t.Errorf("%s: %d bytes, should be %d: %v", target, len(text), plain.Body.Len(), err)
		}
	}
	if w := visit(t, h, "/raw/host/pond/-/long.txt", "Accept-Encoding", "gzip"); w.Header().Get("Content-Encoding") != "" {
		t.Error("a file as it is is compressed")
	}
}

// TestOpenSearch: browsers learn the address of the search as they reach it.
func TestOpenSearch(t *testing.T) {
	h := pond().serve(t, true)
	for _, c := range []struct{ proto, want string }{{"", "http://example.com/?q={searchTerms}"}, {"https", "https://example.com/?q={searchTerms}"}} {
		w := visit(t, h, openSearchPath, "X-Forwarded-Proto", c.proto)
		var d struct {
			XMLName   xml.Name `xml:"http://a9.com/-/spec/opensearch/1.1/ OpenSearchDescription"`
			ShortName string
			URL       struct {
				Template string `xml:"template,attr"`
			} `xml:"Url"`
		}
		if err := xml.Unmarshal(w.Body.Bytes(), &d); err != nil || d.URL.Template != c.want || d.ShortName != "Trawl" {
			t.Errorf("%+v: %v, %s", d, err, w.Body)
		}
	}
	contains(t, visit(t, h, "/login").Body.String(), `<link rel="search" type="application/opensearchdescription+xml" title="Trawl" href="`+openSearchPath+`">`)
}

// TestFolderWithoutSlash: the address of a folder is known without its slash.
func TestFolderWithoutSlash(t *testing.T) {
	h := pond().serve(t, false)
	for target, want := range map[string]string{"/r/host/pond/-/a": "/r/host/pond/-/a/", "/r/host/pond@main/-/a/b": "/r/host/pond@main/-/a/b/"} {
		if w := visit(t, h, target); w.Code != http.StatusSeeOther || w.Header().Get("Location") != want {
			t.Errorf("%s: status %d, leads to %q", target, w.Code, w.Header().Get("Location"))
		}
	}
}

// TestZoektPages: addresses of zoekt's pages lead to the same search and the same file.
func TestZoektPages(t *testing.T) {
	h := pond().serve(t, false)
	for target, want := range map[string]string{
		"/search?q=fish+lang%3Ago&num=50":              "/?q=fish+lang%3Ago",
		"/search":                                      "/?q=",
		"/print?r=host%2Fpond&f=a%2Ffish.go&b=main":    "/r/host/pond@main/-/a/fish.go",
		"/print?r=host%2Fpond&f=a+b%3F&q=x":            "/r/host/pond/-/a%20b%3F",
		"/print?r=%2F%2Fevil.example&f=x":              "/r///evil.example/-/x",
		"/print?r=host%2Fpond&b=HEAD&f=strange%FFname": "/r/host/pond@HEAD/-/strange%FFname",
	} {
		if w := visit(t, h, target); w.Code != http.StatusSeeOther || w.Header().Get("Location") != want {
			t.Errorf("%s: status %d, leads to %q", target, w.Code, w.Header().Get("Location"))
		}
	}
}
