package serve_test

import (
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/index/snippet"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/serve"
)

// denseHits are the hits of a shard named "dense-…": files of 10 kB and more, with scores between
// those of the others.
func denseHits(name string, opts search.Options) (hits []search.Hit) {
	for i := range min(100, opts.MaxFiles) {
		key := search.Key{Repo: "r", Path: fmt.Appendf(nil, "%s/%03d", name, i), Score: float64(100 - i)}
		if opts.Floor == nil || search.Compare(key, *opts.Floor) <= 0 {
			hits = append(hits, search.Hit{Key: key})
		}
	}
	return hits
}

func denseChunks() []snippet.Chunk {
	return []snippet.Chunk{{Content: make([]byte, 10_000), Ranges: make([]snippet.Range, 1)}}
}

// TestBoundedAnswers: an answer has the best files of all shards, in order and without a gap. It
// keeps within its bytes, comes in small messages, counts all files, and reports that it was cut.
func TestBoundedAnswers(t *testing.T) {
	shards := []string{"dense-a", "dense-b", "dense-c"}
	s := start(t, shards...)
	var order []string
	for i := range 100 {
		for _, name := range shards {
			order = append(order, fmt.Sprintf("%s/%03d", name, i))
		}
	}
	for _, c := range []struct {
		files uint32
		bytes uint64
		want  int
		cut   bool
	}{{1000, 1, 1, true}, {1000, 200_000, 19, true}, {1000, 2_100_000, 205, true}, {1000, 64 << 20, 300, false}, {10, 200_000, 10, false}, {30, 200_000, 19, true}} {
		out := &stream{ctx: t.Context()}
		req := &searchv1.SearchRequest{Query: "q", Plan: planOf("r", shards...), Options: &searchv1.SearchOptions{MaxFiles: c.files, MaxBytes: c.bytes}}
		if err := s.StreamSearch(&searchv1.StreamSearchRequest{Search: req}, out); err != nil {
			t.Fatal(err)
		}
		var paths []string
		for _, m := range out.sent {
			if n := proto.Size(m); n > 1<<20+1<<10 {
				t.Errorf("a message of %d bytes", n)
			}
			for _, f := range m.Files {
				paths = append(paths, string(f.Path))
			}
		}
		last := out.sent[len(out.sent)-1]
		if !slices.Equal(paths, order[:len(paths)]) || len(paths) != c.want || last.Cut != 0 != c.cut {
			t.Errorf("%d files in %d bytes: %d files, cut %v; want %d, %v", c.files, c.bytes, len(paths), last.Cut, c.want, c.cut)
		}
		if last.Statistics.FilesMatched != 300 || !last.Coverage.Complete {
			t.Errorf("statistics %v, coverage %v", last.Statistics, last.Coverage)
		}
	}
}

// TestPartsOfAFile: a searcher sends the part of a file that it is asked for.
func TestPartsOfAFile(t *testing.T) {
	s := start(t, "good")
	for _, c := range []struct {
		offset, bytes uint64
		want          string
	}{{0, 0, "repository"}, {0, 4, "repo"}, {4, 3, "sit"}, {8, 100, "ry"}, {10, 1, ""}, {1 << 63, 1, ""}} {
		req := &searchv1.GetFileRequest{Repo: "repository", Path: []byte("good"), Plan: planOf("repository", "good"), Offset: c.offset, MaxBytes: c.bytes}
		resp, err := s.GetFile(t.Context(), req)
		if err != nil || string(resp.Content) != c.want || resp.SizeBytes != 10 {
			t.Errorf("%d bytes from %d: %v, %v", c.bytes, c.offset, resp, err)
		}
	}
}

// TestFileLargerThanAnAnswer: a searcher sends as much of a file as its answers have room for.
func TestFileLargerThanAnAnswer(t *testing.T) {
	req := &searchv1.GetFileRequest{Repo: "repository", Path: []byte("good"), Plan: planOf("repository", "good")}
	whole, err := start(t, "good").GetFile(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	limit := proto.Size(whole) - 2
	s := startWith(t, serve.Config{MaxAnswer: limit}, "good")
	var content []byte
	for len(content) < len(whole.Content) {
		req.Offset, req.MaxBytes = uint64(len(content)), 100
		part, err := s.GetFile(t.Context(), req)
		if err != nil || len(part.Content) == 0 || proto.Size(part) > limit {
			t.Fatalf("a part of %d bytes, %v", proto.Size(part), err)
		}
		content = append(content, part.Content...)
	}
	if string(content) != string(whole.Content) {
		t.Errorf("in parts: %q", content)
	}
}
