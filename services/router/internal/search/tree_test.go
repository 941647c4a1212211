package search_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// startTree is a service over a repo of two shards on two searchers.
func startTree(t *testing.T) *cluster {
	t.Helper()
	return start(t, 2, func(c *cluster) {
		c.places = map[searchapi.Digest][]int{d(1): {0}, d(2): {1}}
		for i, path := range []string{"README", "a", "a.go", "a/b/c", "a/b/d", "a/x", "ab/c", "b/" + strings.Repeat("long/", 200) + "f", "z\xff", "z/z/z/z"} {
			shard := i % 2
			c.searchers[shard].files[d(shard+1)] = append(c.searchers[shard].files[d(shard+1)], file("r", path, 1))
		}
	})
}

// TestListTree: pages of any size over several shards are the whole tree, in order, and each of them keeps within its bounds.
func TestListTree(t *testing.T) {
	c := startTree(t)
	for _, tt := range []struct {
		path  string
		depth uint32
		want  string
	}{
		{"", 0, "README a a.go a/=3 ab/=1 b/=1 z/=1 z\xff"},
		{"/", 1, "README a a.go a/=3 ab/=1 b/=1 z/=1 z\xff"},
		{".", 1, "README a a.go a/=3 ab/=1 b/=1 z/=1 z\xff"},
		{"a", 1, "a/b/=2 a/x"},
		{"./z/..//a/", 1, "a/b/=2 a/x"},
		{"a/", 2, "a/b/c a/b/d a/x"},
		{"z/z", 1, "z/z/z/=1"},
		{"", 1 << 31, "README a a.go a/b/c a/b/d a/x ab/c b/" + strings.Repeat("long/", 200) + "f z/z/z/z z\xff"},
	} {
		rapid.Check(t, func(rt *rapid.T) {
			req := &searchv1.ListTreeRequest{Repo: "r", Path: []byte(tt.path), Depth: tt.depth, Branch: rapid.SampledFrom([]string{"", "main", "HEAD"}).Draw(rt, "branch")}
			var got []string
			for first := true; first || len(req.PageToken) > 0; first = false {
				req.MaxEntries, req.MaxBytes = rapid.Uint32Range(0, 9).Draw(rt, "entries"), rapid.Uint64Range(5500, 9000).Draw(rt, "bytes")
				resp, err := c.ListTree(t.Context(), req)
				if err != nil {
					rt.Fatal(err)
				}
				if n := len(resp.Entries); n == 0 || req.MaxEntries > 0 && n > int(req.MaxEntries) || n > 1 && proto.Size(resp) > int(req.MaxBytes) {
					rt.Fatalf("%d entries in %d bytes", n, proto.Size(resp))
				}
				if resp.Branch != "main" || resp.Commit != "c0" || !resp.Coverage.Complete || len(resp.RevisionToken) == 0 {
					rt.Fatalf("%v", resp)
				}
				for _, e := range resp.Entries {
					text := string(e.Path)
					if e.Kind == searchv1.TreeEntry_KIND_FOLDER {
						text += fmt.Sprintf("=%d", e.Files)
					}
					got = append(got, text)
				}
				req.PageToken = resp.NextPageToken
			}
			if text := strings.Join(got, " "); text != tt.want {
				rt.Errorf("%q to depth %d: %q, want %q", tt.path, tt.depth, text, tt.want)
			}
		})
	}
}

// TestNoTree: what is wrong with a request is said with the field, and a tree of which a shard is missing says so.
func TestNoTree(t *testing.T) {
	c := startTree(t)
	page, err := c.ListTree(t.Context(), &searchv1.ListTreeRequest{Repo: "r", MaxEntries: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		req     *searchv1.ListTreeRequest
		code    codes.Code
		field   string
		nearest []string
	}{
		{&searchv1.ListTreeRequest{Repo: "s"}, codes.NotFound, "repo", []string{"r"}},
		{&searchv1.ListTreeRequest{Repo: "r", Branch: "mian"}, codes.NotFound, "branch", []string{"main"}},
		{&searchv1.ListTreeRequest{Repo: "r", Path: []byte("a/c")}, codes.NotFound, "path", []string{"ab/c", "a/", "ab/"}},
		{&searchv1.ListTreeRequest{Repo: "r", Path: []byte("README/")}, codes.NotFound, "path", []string{"README"}},
		{&searchv1.ListTreeRequest{Repo: "r", Plan: &searchv1.Plan{}}, codes.InvalidArgument, "plan", nil},
		{&searchv1.ListTreeRequest{Repo: "r", PageToken: []byte("x")}, codes.InvalidArgument, "page_token", nil},
		{&searchv1.ListTreeRequest{Repo: "r", Path: []byte("a"), PageToken: page.NextPageToken}, codes.InvalidArgument, "page_token", nil},
	} {
		_, err := c.ListTree(t.Context(), tt.req)
		wantField(t, err, tt.code, tt.field)
		got := searchapi.NotFoundOf(err).GetNearest()
		if len(tt.nearest) > 0 && (len(got) == 0 || !slices.Contains(tt.nearest, got[0]) || !strings.Contains(err.Error(), fmt.Sprintf("%q", got[0]))) {
			t.Errorf("%v: %v, nearest %q, want one of %q", tt.req, err, got, tt.nearest)
		}
	}
	c.searchers[1].lacks[d(2)] = searchv1.UncoveredReason_UNCOVERED_REASON_NOT_COVERED
	for path, want := range map[string]int{"a": 1, "z/z": 0} {
		resp, err := c.ListTree(t.Context(), &searchv1.ListTreeRequest{Repo: "r", Path: []byte(path)})
		if err != nil || resp.Coverage.Complete || len(resp.Entries) < want {
			t.Errorf("%s without a shard: %v, %v", path, resp, err)
		}
	}
}
