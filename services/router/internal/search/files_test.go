package search_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/searchapi"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestRefusedFiles: the files of one request are refused at once by the searchers of several shards, and each has an error that says so.
func TestRefusedFiles(t *testing.T) {
	c := start(t, 2, func(c *cluster) {
		c.places = map[searchapi.Digest][]int{d(1): {0}, d(2): {1}}
		for i, s := range c.searchers {
			s.files[d(i+1)], s.fails = []*searchv1.FileMatch{file("r", fmt.Sprint("f", i), 1)}, searchapi.Overloaded("busy", time.Second)
		}
	})
	req := &searchv1.GetFilesRequest{}
	for i := range 2 * len(c.searchers) {
		req.Files = append(req.Files, &searchv1.FileName{Repo: "r", Path: fmt.Append(nil, "f", i)})
	}
	resp, err := c.GetFiles(t.Context(), req)
	if err != nil || len(resp.Files) != len(req.Files) {
		t.Fatalf("%d answers, %v", len(resp.GetFiles()), err)
	}
	for i, f := range resp.Files {
		if codes.Code(f.GetError().GetCode()) != codes.ResourceExhausted {
			t.Errorf("file %d: %v", i, f)
		}
	}
}

// TestGetFiles: whatever the files and the bytes, each file is answered at its place with the beginning of its content or its own error,
// the answer keeps within its bytes, and nothing is left out while there is room.
func TestGetFiles(t *testing.T) {
	sizes := []int{0, 10, 1000, 5000, 40_000, 300_000}
	c := start(t, 2, func(c *cluster) {
		c.places = map[searchapi.Digest][]int{d(1): {0}, d(2): {1}}
		for i, size := range sizes {
			f := file("r", fmt.Sprint("f", i), 1)
			f.Branches = []string{"main"}
			f.Chunks = []*searchv1.ChunkMatch{{Content: bytes.Repeat([]byte{byte('a' + i)}, size)}}
			c.searchers[i%2].files[d(i%2+1)] = append(c.searchers[i%2].files[d(i%2+1)], f)
		}
	})
	content := func(i int) string {
		return fmt.Sprint("content of f", i) + strings.Repeat(string(rune('a'+i)), sizes[i])
	}
	rapid.Check(t, func(rt *rapid.T) {
		req := &searchv1.GetFilesRequest{MaxBytes: rapid.Uint64Range(20_000, 900_000).Draw(rt, "bytes")}
		of := rapid.SliceOfN(rapid.IntRange(-3, len(sizes)-1), 1, 20).Draw(rt, "files")
		all := 0
		for _, i := range of {
			name := &searchv1.FileName{Repo: "r", Path: fmt.Append(nil, "f", i)}
			switch i {
			case -1:
				name.Repo = "other"
			case -2:
				name.Branch = "dev"
			}
			if req.Files = append(req.Files, name); i >= 0 {
				all += len(content(i))
			}
		}
		resp, err := c.GetFiles(t.Context(), req)
		if err != nil || len(resp.Files) != len(of) || len(resp.RevisionToken) == 0 {
			rt.Fatalf("%d answers, %v", len(resp.GetFiles()), err)
		}
		got, cut := 0, false
		for n, i := range of {
			if i < 0 {
				field := map[int]string{-1: "repo", -2: "branch", -3: "path"}[i]
				if e := resp.Files[n].GetError(); codes.Code(e.GetCode()) != codes.NotFound || e.GetNotFound().GetField() != field || !strings.HasPrefix(e.GetMessage(), field+": no ") {
					rt.Errorf("file %d: %v, want none for its %s", n, resp.Files[n], field)
				}
				continue
			}
			f := resp.Files[n].GetFile()
			if !strings.HasPrefix(content(i), string(f.GetContent())) || int(f.GetSizeBytes()) != len(content(i)) || f.GetCommit() != "c0" {
				rt.Errorf("file %d: %d bytes, %v", n, len(f.GetContent()), resp.Files[n].GetError())
			}
			got, cut = got+len(f.GetContent()), cut || len(f.GetContent()) < len(content(i))
		}
		size, most := proto.Size(resp), int(req.MaxBytes)
		if size > most || cut && size < most-100*len(of) || !cut && got != all {
			rt.Errorf("%d bytes of %d, cut %v, %d bytes of content of %d", size, most, cut, got, all)
		}
	})
}

// TestSmallFilesAreWhole: a large file before them leaves them room.
func TestSmallFilesAreWhole(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		large, small := file("r", "large", 1), file("r", "small", 1)
		large.Chunks = []*searchv1.ChunkMatch{{Content: make([]byte, 500_000)}}
		c.searchers[0].files[d(1)] = []*searchv1.FileMatch{large, small}
	})
	req := &searchv1.GetFilesRequest{MaxBytes: 100_000}
	for _, path := range []string{"large", "small", "large", "small"} {
		req.Files = append(req.Files, &searchv1.FileName{Repo: "r", Path: []byte(path)})
	}
	resp, err := c.GetFiles(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	for i, least := range []int{60_000, 16, 20_000, 16} {
		if n := len(resp.Files[i].GetFile().GetContent()); n < least {
			t.Errorf("file %d: %d bytes, want at least %d", i, n, least)
		}
	}
}

// TestNearestOfManyRepos: only some of many repos that do not exist are looked for in etcd, and among the names of the others.
func TestNearestOfManyRepos(t *testing.T) {
	var reads atomic.Int64
	c := start(t, 1, func(c *cluster) {
		c.searchers[0].files[d(1)] = []*searchv1.FileMatch{file("fish", "a", 1)}
		c.cfg.Status = func(context.Context, string) (*ingestv1.RepoStatus, error) {
			reads.Add(1)
			return nil, errors.New("there is none")
		}
	})
	req := &searchv1.GetFilesRequest{}
	for range 100 {
		req.Files = append(req.Files, &searchv1.FileName{Repo: "fihs", Path: []byte("a")})
	}
	resp, err := c.GetFiles(access.With(t.Context(), access.Anyone), req)
	if err != nil {
		t.Fatal(err)
	}
	for i, answer := range resp.Files {
		if n := len(answer.GetError().GetNotFound().GetNearest()); n != 1 && i < 10 || n > 0 && i >= 10 {
			t.Errorf("file %d has %d nearest names: %v", i, n, answer)
		}
	}
	if n := reads.Load(); n != 10 {
		t.Errorf("etcd is asked %d times", n)
	}
}

// TestNearestOfManyFiles: only some of many files that do not exist take a search for the nearest names.
func TestNearestOfManyFiles(t *testing.T) {
	c := start(t, 1, func(c *cluster) { c.searchers[0].files[d(1)] = []*searchv1.FileMatch{file("r", "fish.go", 1)} })
	req := &searchv1.GetFilesRequest{}
	for range 100 {
		req.Files = append(req.Files, &searchv1.FileName{Repo: "r", Path: []byte("fihs.go")})
	}
	resp, err := c.GetFiles(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	for i, answer := range resp.Files {
		if n := len(answer.GetError().GetNotFound().GetNearest()); n != 1 && i < 10 || n > 0 && i >= 10 {
			t.Errorf("file %d has %d nearest names: %v", i, n, answer)
		}
	}
	if n := len(c.searchers[0].asked); n != 10 {
		t.Errorf("%d searches", n)
	}
}
