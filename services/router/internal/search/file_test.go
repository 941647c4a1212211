package search_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

// TestFileOfTheFirstBranchThatHasIt: without a branch a file is that of the first branch that has it, whichever shard answers
// first and whichever holds it. A branch that is not there is told.
func TestFileOfTheFirstBranchThatHasIt(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		on := func(path string, branches ...string) *searchv1.FileMatch {
			f := file("r", path, 1)
			f.Branches = branches
			return f
		}
		c.searchers[0].files[d(1)] = []*searchv1.FileMatch{on("a", "release/2"), on("b", "release/1"), on("c", "main")}
		c.searchers[0].files[d(2)] = []*searchv1.FileMatch{on("a", "release/1"), on("b", "main"), on("c", "release/1")}
		c.searchers[0].files[d(3)] = []*searchv1.FileMatch{on("b", "release/2"), on("d", "release/2")}
		root := &catalogv1.Root{Repo: "r", Generation: 1}
		for _, b := range []string{"main", "release/1", "release/2"} {
			root.Branches = append(root.Branches, &catalogv1.Branch{Name: b, Commit: "c"})
		}
		for i := range 3 {
			digest := d(i + 1)
			root.Shards = append(root.Shards, &catalogv1.ShardRef{Digest: digest[:], SizeBytes: 10})
		}
		var err error
		if c.layout, err = search.NewLayout(42, []*catalogv1.Root{root}); err != nil {
			t.Fatal(err)
		}
	})
	for range 20 {
		for path, want := range map[string]string{"a": "release/1", "b": "main", "c": "main", "d": "release/2"} {
			resp, err := c.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "r", Path: []byte(path)})
			if err != nil || resp.Branches[0] != want {
				t.Fatalf("%s: %v, %v, want it on %s", path, resp.GetBranches(), err, want)
			}
		}
	}
	for path, want := range map[string]string{"b": "c", "./b": "c", "/b": "c", "x/..//./b": "c", "a": "", "/": "", ".": ""} {
		resp, err := c.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "r", Path: []byte(path), Branch: "HEAD"})
		if resp.GetCommit() != want || (want == "") != (status.Code(err) == codes.NotFound) {
			t.Errorf("%s on the first branch: %v, %v", path, resp, err)
		}
	}
	for branch, want := range map[string]string{"main": `path: no file "a" in r on branch "main", but on branch "release/1"`, "nope": `branch: no branch "nope" of r is indexed; these are: main, release/1, release/2`} {
		_, err := c.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "r", Path: []byte("a"), Branch: branch})
		if s := status.Convert(err); s.Code() != codes.NotFound || s.Message() != want {
			t.Errorf("branch %s: %v, want %s", branch, err, want)
		}
	}
	c.searchers[0].lacks[d(2)] = searchv1.UncoveredReason_UNCOVERED_REASON_NOT_COVERED
	if resp, err := c.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "r", Path: []byte("a")}); status.Code(err) != codes.Unavailable {
		t.Errorf("a shard that may have it on an earlier branch is missing: %v, %v", resp, err)
	}
}

// TestFileInSmallParts: a caller who follows the offset reaches the end of the file, or gets the error that max_bytes has no room for content.
func TestFileInSmallParts(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		c.searchers[0].files[d(1)] = []*searchv1.FileMatch{file("r", "go.mod", 0)}
	})
	const want = "content of go.mod"
	read := 0
	for most := uint64(1); most < 150; most++ {
		content := ""
		for len(content) < len(want) {
			resp, err := c.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "r", Path: []byte("go.mod"), Offset: uint64(len(content)), MaxBytes: most})
			if err != nil {
				wantField(t, err, codes.OutOfRange, "max_bytes")
				break
			}
			if n := len(resp.Content); n == 0 || proto.Size(resp) > int(most) {
				t.Fatalf("%d bytes of content in %d of at most %d", n, proto.Size(resp), most)
			}
			content += string(resp.Content)
		}
		if content != "" && !strings.HasPrefix(want, content) {
			t.Fatalf("%q in parts of %d", content, most)
		}
		if content == want {
			read++
		}
	}
	if read == 0 {
		t.Error("no size was enough")
	}
	for offset, code := range map[uint64]codes.Code{uint64(len(want)): codes.OK, uint64(len(want)) + 1: codes.OutOfRange} {
		resp, err := c.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "r", Path: []byte("go.mod"), Offset: offset})
		if status.Code(err) != code || len(resp.GetContent()) > 0 {
			t.Errorf("from %d: %v, %v", offset, resp, err)
		}
	}
}
