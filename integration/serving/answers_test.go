package serving_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// publishDense publishes files of one repo, spread over shards. The query (x|y) matches at
// every byte of them, so its answer is many times as large as the files.
func (c *cluster) publishDense(files, matches, shards int) {
	c.t.Helper()
	parts := make([]map[string]string, shards)
	for i := range parts {
		parts[i] = make(map[string]string)
	}
	for i := range files {
		content := fmt.Sprintf("%04d %s\n", i, strings.Repeat("xy", matches/2))
		parts[i%shards][fmt.Sprintf("src/file%05d.txt", i)] = content
	}
	c.publish("host/dense", parts...)
}

// plain returns a client with gRPC's defaults, which accepts messages of up to 4 MiB.
func (c *cluster) plain() searchv1.SearchServiceClient {
	c.t.Helper()
	conn, err := grpc.NewClient(c.routerGRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	c.must(err)
	c.t.Cleanup(func() { c.must(conn.Close()) })
	return searchv1.NewSearchServiceClient(conn)
}

// stream assembles the answer of StreamSearch, and checks that no message is too large.
func (c *cluster) stream(client searchv1.SearchServiceClient, query string, o *searchv1.SearchOptions) (files []*searchv1.FileMatch, last *searchv1.StreamSearchResponse) {
	c.t.Helper()
	stream, err := client.StreamSearch(c.patient(), &searchv1.StreamSearchRequest{Search: &searchv1.SearchRequest{Query: query, Options: o}})
	c.must(err)
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return files, last
		}
		c.must(err)
		if n := proto.Size(m); n > 1<<20 {
			c.t.Errorf("a message of %d bytes", n)
		}
		for _, f := range m.Files {
			if !f.Continued {
				files = append(files, f)
				continue
			}
			c.must(searchapi.JoinFile(files[len(files)-1], f))
		}
		last = m
	}
}

// patient returns a context with the longest deadline that a router grants.
func (c *cluster) patient() context.Context {
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	c.t.Cleanup(cancel)
	return ctx
}

// everyMatch asks for all files with all matches.
func everyMatch(maxBytes uint64) *searchv1.SearchOptions {
	return &searchv1.SearchOptions{MaxFiles: searchapi.MaxFiles, MaxMatchesPerFile: 100_000, MaxBytes: maxBytes}
}

// TestLargeJSONAnswer: an answer whose matches alone exceed the largest message holds the
// files that fit, with exact counts.
func TestLargeJSONAnswer(t *testing.T) { inOneAndInSeveral(t, testLargeJSONAnswer) }

func testLargeJSONAnswer(t *testing.T, oneProcess bool) {
	c := startIn(t, oneProcess, 1, 1)
	const files, matches = 9000, 500
	c.publishDense(files, matches, 4)
	const limit = 64 << 20
	for _, chunks := range []bool{false, true} {
		code, answer := c.post("", "/api/search", fmt.Sprintf(`{"Q":"(x|y)","Opts":{"ChunkMatches":%v,"MaxWallTime":60000000000}}`, chunks))
		var reply struct {
			Result struct {
				FileCount, MatchCount, Crashes, FlushReason int
				Files                                       []struct{ FileName string }
				Trawl                                       struct {
					Complete               bool
					Searched, FilesLeftOut int
				}
			}
		}
		c.must(json.Unmarshal(answer, &reply))
		r := reply.Result
		if code != http.StatusOK || r.FileCount != files || r.MatchCount != files*matches || r.Crashes != 0 || !r.Trawl.Complete || r.Trawl.Searched != 4 {
			t.Fatalf("status %d, %d files, %d matches, %d shards failed, %+v", code, r.FileCount, r.MatchCount, r.Crashes, r.Trawl)
		}
		if len(answer) > limit || len(r.Files) < 100 || r.FlushReason != 4 || len(r.Files)+r.Trawl.FilesLeftOut != files {
			t.Errorf("%d bytes with %d of %d files, %d left out, flush reason %d", len(answer), len(r.Files), files, r.Trawl.FilesLeftOut, r.FlushReason)
		}
		t.Logf("chunks %v: %d files in %d bytes", chunks, len(r.Files), len(answer))
	}
}

// TestLargeAnswers: an answer of more than 20 MiB reaches a client that accepts messages of
// 4 MiB, in pages and as a stream. Every page and the stream count all matches. The pages
// together have each file whole and once.
func TestLargeAnswers(t *testing.T) { inOneAndInSeveral(t, testLargeAnswers) }

func testLargeAnswers(t *testing.T, oneProcess bool) {
	c := startIn(t, oneProcess, 1, 1) // the only searcher is waited for, however slow this machine is
	const files, matches = 2000, 500
	c.publishDense(files, matches, 4)
	client := c.plain()
	var got []*searchv1.FileMatch
	pages := 0
	for token := []byte(nil); pages == 0 || token != nil; pages++ {
		resp, err := client.Search(c.patient(), &searchv1.SearchRequest{Query: "(x|y)", Options: everyMatch(0), PageToken: token})
		c.must(err)
		if n := proto.Size(resp); n > 4<<20 || resp.Statistics.FilesMatched != files || resp.Statistics.Matches != files*matches || !resp.Coverage.Complete {
			t.Fatalf("page %d: %d bytes, %v, %v", pages, n, resp.Statistics, resp.Coverage)
		}
		if token = resp.NextPageToken; (token != nil) != (resp.Cut == searchv1.CutReason_CUT_REASON_MAX_BYTES) {
			t.Errorf("page %d: cut %v, token %x", pages, resp.Cut, token)
		}
		got = append(got, resp.Files...)
	}
	c.wholeFiles(got, files, matches)
	resp, err := c.search.Search(c.patient(), &searchv1.SearchRequest{Query: "(x|y)", Options: everyMatch(searchapi.MaxBytes)})
	c.must(err)
	if n := proto.Size(resp); resp.Cut != searchv1.CutReason_CUT_REASON_MEMORY || n < 4<<20 || n > searchapi.MaxBytes {
		t.Errorf("one large page: %d files in %d bytes, cut %v", len(resp.Files), n, resp.Cut)
	}
	streamed, last := c.stream(client, "(x|y)", everyMatch(0))
	if last.Statistics.FilesMatched != files || last.Statistics.Matches != files*matches || !last.Coverage.Complete {
		t.Errorf("a stream: %v, %v", last.Statistics, last.Coverage)
	}
	if len(streamed) < files && last.Cut == 0 {
		t.Errorf("a stream has %d files, and says nothing of the others", len(streamed))
	}
	c.wholeFiles(streamed, len(streamed), matches)
	t.Logf("%d pages; one of %d files; a stream of %d files, cut %v", pages, len(resp.Files), len(streamed), last.Cut)
}

// wholeFiles checks that there are want files, each once and with all its matches.
func (c *cluster) wholeFiles(files []*searchv1.FileMatch, want, matches int) {
	c.t.Helper()
	seen := make(map[string]bool)
	for _, f := range files {
		ranges := 0
		for _, chunk := range f.Chunks {
			ranges += len(chunk.Ranges)
		}
		if seen[string(f.Path)] || ranges != matches || f.MatchCount != uint64(matches) || f.Cut {
			c.t.Fatalf("%s: %d ranges, %d matches, cut %v, seen before %v", f.Path, ranges, f.MatchCount, f.Cut, seen[string(f.Path)])
		}
		seen[string(f.Path)] = true
	}
	if len(files) != want {
		c.t.Errorf("%d files, want %d", len(files), want)
	}
}

// TestLargeFiles: a file with very many matches, a file with a very long line, and a whole
// file, each larger than the answer may be.
func TestLargeFiles(t *testing.T) { inOneAndInSeveral(t, testLargeFiles) }

func testLargeFiles(t *testing.T, oneProcess bool) {
	c := startIn(t, oneProcess, 1, 1)
	long := strings.Repeat("z", 1_900_000) + " needle\n"
	c.publish("host/many", map[string]string{"many.txt": strings.Repeat("xy", 950_000)}, map[string]string{"long.txt": long})
	client := c.plain()
	resp, err := client.Search(t.Context(), &searchv1.SearchRequest{Query: "(x|y) f:many", Options: everyMatch(0)})
	c.must(err)
	if f := resp.Files[0]; !f.Cut || f.MatchCount != 1_900_000 || len(f.Chunks[0].Ranges) < 10_000 || resp.Cut != 0 || proto.Size(resp) > 4<<20 {
		t.Errorf("many matches: %d ranges, cut %v, %v", len(f.Chunks[0].Ranges), f.Cut, resp.Cut)
	}
	files, last := c.stream(client, "(x|y) f:many", everyMatch(0))
	if len(files) != 1 || files[0].Cut || len(files[0].Chunks[0].Ranges) != 100_000 || len(files[0].Chunks[0].Content) != 1_900_000 || last.Cut != 0 {
		t.Errorf("many matches in a stream: %d files, %v", len(files), last)
	}
	resp, err = client.Search(t.Context(), &searchv1.SearchRequest{Query: "needle", Options: everyMatch(1 << 20)})
	c.must(err)
	if f := resp.Files[0]; !f.Cut || len(f.Chunks) != 0 || f.MatchCount != 1 {
		t.Errorf("a long line: %d chunks, cut %v", len(f.Chunks), f.Cut)
	}
	if f := c.find("needle", nil).Files[0]; f.Cut || string(f.Chunks[0].Content) != strings.TrimSuffix(long, "\n") {
		t.Errorf("a long line that has room: %d chunks, cut %v", len(f.Chunks), f.Cut)
	}
	if content := c.wholeFile(client, "host/many", "long.txt", 1<<20); !bytes.Equal(content, []byte(long)) {
		t.Error("the file is not the same in parts")
	}
}

// TestListsStream: StreamList returns every repo in order, and ends with the coverage and the
// revision token.
func TestListsStream(t *testing.T) { inOneAndInSeveral(t, testListsStream) }

func testListsStream(t *testing.T, oneProcess bool) {
	c := startIn(t, oneProcess, 2, 1)
	var want []string
	for i := range 12 {
		c.publish(fmt.Sprintf("host/repo%02d", i), map[string]string{"a": "needle\n"}, map[string]string{"b": "hay\n"})
		want = append(want, fmt.Sprintf("host/repo%02d", i))
	}
	stream, err := c.search.StreamList(t.Context(), &searchv1.StreamListRequest{List: &searchv1.ListRequest{Query: "needle"}})
	c.must(err)
	var got []string
	for {
		m, err := stream.Recv()
		c.must(err)
		for _, e := range m.Repos {
			if got = append(got, e.Name); e.Documents != 2 || e.Shards != 2 {
				t.Errorf("%v", e)
			}
		}
		if m.Coverage != nil {
			if !m.Coverage.Complete || m.Coverage.Requested != 24 || len(m.RevisionToken) == 0 {
				t.Errorf("the end of a stream: %v", m)
			}
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("repos %v", got)
	}
}
