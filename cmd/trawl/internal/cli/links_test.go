package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestOpen prints the addresses of pages, which no browser opens here.
func TestOpen(t *testing.T) {
	const at = "http://pages.example/trawl/r/host:80/r"
	for _, tt := range []struct {
		args       []string
		out, fails string
	}{
		{[]string{"host/r"}, "http://pages.example/trawl/r/host/r\n", ""},
		{[]string{"host:80/r:a:b"}, at + "/-/a:b\n", ""},
		{[]string{"host:80/r:a:b:7"}, at + "/-/a:b#L7\n", ""},
		{[]string{"host:80/r:a:b:7:func fish() { // 8:9"}, at + "/-/a:b#L7\n", ""},
		{[]string{"host:80/r:a:b:3000", "-b", "old"}, at + "@old/-/a:b?from=2900#L3000\n", ""},
		{[]string{"host:80/r:c:7"}, "", `no file "c:7" in host:80/r`},
		{[]string{"host/r", "--pages", "ftp://x"}, "", "--pages is"},
	} {
		args := append([]string{"open", "--pages", "http://pages.example/trawl/"}, tt.args...)
		_, out, errs := serveAndRun(t, func(srv *grpc.Server) { searchv1.RegisterSearchServiceServer(srv, &shelf{}) }, args...)
		if out != tt.out || !strings.Contains(errs, tt.fails) || (tt.fails == "") != (errs == "") {
			t.Errorf("%q: got %q, %q", tt.args, out, errs)
		}
	}
}

func TestBrowser(t *testing.T) {
	dir := t.TempDir()
	browser := filepath.Join(dir, "browser")
	if err := os.WriteFile(browser, []byte("#!/bin/sh\necho \"$1\" > "+dir+"/opened\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := Process{Environ: []string{"BROWSER=" + browser, "PATH=" + os.Getenv("PATH")}}
	if err := p.browse(t.Context(), "http://x/?a=b&c"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "opened")); string(got) != "http://x/?a=b&c\n" {
		t.Errorf("opened %q, %v", got, err)
	}
}

// TestHyperlinks: an answer links to pages of the router if their address is known; nothing else
// changes.
func TestHyperlinks(t *testing.T) {
	serve := func(args ...string) (int, string, string) {
		return serveAndRun(t, func(srv *grpc.Server) { searchv1.RegisterSearchServiceServer(srv, &paged{}) }, append([]string{"search", "-l", "x", "--max-files=1"}, args...)...)
	}
	const link = "\x1b]8;;http://pages.example/r/r/-/a\x1b\\r:a\x1b]8;;\x1b\\\n"
	if _, out, _ := serve("--pages", "http://pages.example", "--hyperlinks=always"); out != link {
		t.Errorf("got %q, want %q", out, link)
	}
	if _, out, _ := serve("--pages", "http://pages.example"); out != "r:a\n" {
		t.Errorf("without a terminal: %q", out)
	}
	if status, _, errs := serve("--hyperlinks=always"); status != 2 || !strings.Contains(errs, "needs --pages") {
		t.Errorf("without pages: %d, %q", status, errs)
	}
	if status, _, errs := serve("--hyperlinks=often"); status != 2 || !strings.Contains(errs, "want auto, always or never") {
		t.Errorf("often: %d, %q", status, errs)
	}
}
