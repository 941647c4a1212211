package search_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

const (
	cutByBytes  = searchv1.CutReason_CUT_REASON_MAX_BYTES
	cutByMemory = searchv1.CutReason_CUT_REASON_MEMORY
)

// large is a file with a chunk of size bytes and that many ranges.
func large(path string, score float64, size, ranges int) *searchv1.FileMatch {
	f := file("r", path, score)
	f.MatchCount = uint64(ranges)
	c := &searchv1.ChunkMatch{Content: bytes.Repeat([]byte("x"), size), ContentStart: &searchv1.Location{LineNumber: 1, Column: 1}}
	for i := range ranges {
		at := &searchv1.Location{ByteOffset: uint32(i), LineNumber: 1, Column: uint32(i)}
		c.Ranges = append(c.Ranges, &searchv1.Range{Start: at, End: at})
	}
	f.Chunks = []*searchv1.ChunkMatch{c}
	return f
}

// spread puts 120 files of 20 to 40 kB in six shards on three searchers.
func spread(c *cluster) (all []*searchv1.FileMatch) {
	c.places = make(map[searchapi.Digest][]int)
	for i := range 120 {
		f := large(fmt.Sprintf("path%03d", i), float64(i%7), 20_000+i*100, 20)
		shard := d(i % 6)
		c.places[shard] = []int{i % 3}
		c.searchers[i%3].files[shard] = append(c.searchers[i%3].files[shard], f)
		all = append(all, f)
	}
	slices.SortFunc(all, inOrder)
	return all
}

func same(a, b *searchv1.FileMatch) bool { return proto.Equal(a, b) }

// TestPagesOfBytes: a page ends where its bytes are used up or where the router holds no more, and
// names the reason. The pages together are the whole answer, and each of them counts all of it.
func TestPagesOfBytes(t *testing.T) {
	for name, limit := range map[string]struct {
		answer uint64
		memory int64
		cut    searchv1.CutReason
	}{"bytes": {300_000, 0, cutByBytes}, "memory": {4 << 20, 300_000, cutByMemory}} {
		t.Run(name, func(t *testing.T) {
			var all []*searchv1.FileMatch
			c := start(t, 3, func(c *cluster) {
				c.cfg.Limits.MaxBytes, c.cfg.Limits.QueryBytes = 64<<20, limit.memory
				all = spread(c)
			})
			var got []*searchv1.FileMatch
			pages := 0
			for token := []byte(nil); pages == 0 || token != nil; pages++ {
				resp, err := c.Search(t.Context(), &searchv1.SearchRequest{
					Query: "q", PageToken: token, Options: &searchv1.SearchOptions{MaxFiles: 1000, MaxBytes: limit.answer, RequireComplete: true},
				})
				if err != nil {
					t.Fatal(err)
				}
				token = resp.NextPageToken
				if n := proto.Size(resp); uint64(n) > limit.answer || len(resp.Files) == 0 || resp.Statistics.FilesMatched != 120 || !resp.Coverage.Complete {
					t.Fatalf("page %d: %d bytes, %d files, %v, %v", pages, n, len(resp.Files), resp.Statistics, resp.Coverage)
				}
				if (resp.Cut != 0) != (token != nil) || token != nil && resp.Cut != limit.cut {
					t.Errorf("page %d: cut %v, token %x", pages, resp.Cut, token)
				}
				got = append(got, resp.Files...)
			}
			if !slices.EqualFunc(got, all, same) || pages < 5 {
				t.Errorf("%d pages of %d files, want %d", pages, len(got), len(all))
			}
		})
	}
}

// joined puts the messages of a stream together.
func joined(t *testing.T, s *stream) (files []*searchv1.FileMatch, last *searchv1.StreamSearchResponse) {
	t.Helper()
	for _, m := range s.sent {
		if n := proto.Size(m); n > 1<<20 {
			t.Errorf("a message of %d bytes", n)
		}
		for _, f := range proto.Clone(m).(*searchv1.StreamSearchResponse).Files {
			if !f.Continued {
				files = append(files, f)
			} else if err := searchapi.JoinFile(files[len(files)-1], f); err != nil {
				t.Fatal(err)
			}
		}
	}
	return files, s.sent[len(s.sent)-1]
}

// TestStreamsOfBytes: a stream sends as much as it may, in small messages, and says what
// kept it from sending more.
func TestStreamsOfBytes(t *testing.T) {
	for name, limit := range map[string]struct {
		answer uint64
		memory int64
		cut    searchv1.CutReason
	}{"neither": {0, 0, 0}, "bytes": {300_000, 0, cutByBytes}, "memory": {0, 300_000, cutByMemory}} {
		for _, mode := range []searchv1.Mode{searchv1.Mode_MODE_EXHAUSTIVE, searchv1.Mode_MODE_TOP_K} {
			t.Run(name+mode.String(), func(t *testing.T) {
				var all []*searchv1.FileMatch
				c := start(t, 3, func(c *cluster) {
					c.cfg.Limits.MaxFiles, c.cfg.Limits.MaxBytes, c.cfg.Limits.QueryBytes = 0, 64<<20, limit.memory
					all = spread(c)
				})
				s := &stream{ctx: t.Context()}
				err := c.StreamSearch(&searchv1.StreamSearchRequest{Search: &searchv1.SearchRequest{
					Query: "q", Options: &searchv1.SearchOptions{Mode: mode, MaxBytes: limit.answer},
				}}, s)
				if err != nil {
					t.Fatal(err)
				}
				files, last := joined(t, s)
				if last.Cut != limit.cut || last.Statistics.FilesMatched != 120 || !last.Coverage.Complete || len(files) == 0 {
					t.Errorf("%d files, cut %v, %v", len(files), last.Cut, last.Coverage)
				}
				if limit.cut == 0 && len(files) != len(all) || limit.answer > 0 && proto.Size(&searchv1.StreamSearchResponse{Files: files}) > int(limit.answer) {
					t.Errorf("%d files of %d bytes", len(files), proto.Size(&searchv1.StreamSearchResponse{Files: files}))
				}
				slices.SortFunc(files, inOrder)
				for _, f := range files {
					if !slices.ContainsFunc(all, func(g *searchv1.FileMatch) bool { return same(f, g) }) {
						t.Errorf("%s is not as it was found", f.Path)
					}
				}
			})
		}
	}
}

// TestOneLargeFile: a file that is larger than an answer may be is shown with as many of
// its matches as there is room for. A stream sends all of it.
func TestOneLargeFile(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		c.cfg.Limits.MaxBytes = 64 << 20
		c.searchers[0].files[d(1)] = []*searchv1.FileMatch{large("much", 2, 3<<20, 100_000), large("long line", 1, 5<<20, 1)}
	})
	want := c.searchers[0].files[d(1)]
	resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: "q"})
	if err != nil || len(resp.Files) != 1 || !resp.Files[0].Cut || resp.Cut != cutByBytes || proto.Size(resp) > 4<<20 {
		t.Fatalf("%d files of %d bytes, cut %v, %v", len(resp.GetFiles()), proto.Size(resp), resp.GetCut(), err)
	}
	if n := len(resp.Files[0].Chunks[0].Ranges); n < 10_000 || n == 100_000 || resp.Files[0].MatchCount != 100_000 {
		t.Errorf("%d ranges are shown of %d", n, resp.Files[0].MatchCount)
	}
	resp, err = c.Search(t.Context(), &searchv1.SearchRequest{Query: "q", PageToken: resp.NextPageToken})
	if err != nil || len(resp.Files) != 1 || !resp.Files[0].Cut || len(resp.Files[0].Chunks) != 0 || resp.Cut != 0 || resp.NextPageToken != nil {
		t.Errorf("the second page: %d files, cut %v, %v", len(resp.GetFiles()), resp.GetCut(), err)
	}
	s := &stream{ctx: t.Context()}
	if err := c.StreamSearch(&searchv1.StreamSearchRequest{Search: &searchv1.SearchRequest{Query: "q"}}, s); err != nil {
		t.Fatal(err)
	}
	if files, last := joined(t, s); !slices.EqualFunc(files, want, same) || last.Cut != 0 {
		t.Errorf("a stream of %d files, cut %v", len(files), last.Cut)
	}
}

// TestOneFileBeyondMemory: a single file takes no more memory than the limit.
func TestOneFileBeyondMemory(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		c.cfg.Limits.MaxBytes, c.cfg.Limits.QueryBytes = 64<<20, 4<<20
		c.searchers[0].files[d(1)] = []*searchv1.FileMatch{large("much", 1, 3<<20, 100_000)}
	})
	resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: "q", Options: &searchv1.SearchOptions{MaxBytes: 64 << 20}})
	if err != nil || len(resp.Files) != 1 || !resp.Files[0].Cut || searchapi.FileMemory(resp.Files[0]) > 4<<20 || resp.Files[0].MatchCount != 100_000 {
		t.Errorf("%v", err)
	}
}

// TestStreamThatBreaks: when a searcher ends in the middle of its answer, nothing of it
// counts. Another one answers in its place or, if there is none, its shards failed.
func TestStreamThatBreaks(t *testing.T) {
	for _, replicas := range []int{1, 2} {
		t.Run(fmt.Sprint(replicas), func(t *testing.T) {
			var all []*searchv1.FileMatch
			var broken atomic.Int32
			c := start(t, replicas+1, func(c *cluster) {
				c.cfg.Limits.MaxBytes = 64 << 20
				c.places = map[searchapi.Digest][]int{d(1): []int{0, 2}[:replicas], d(2): {1}}
				for i := range 40 {
					f, other := large(fmt.Sprintf("path%03d", i), 1, 100_000, 1), file("s", fmt.Sprint(i), 1)
					for _, place := range c.places[d(1)] {
						c.searchers[place].files[d(1)] = append(c.searchers[place].files[d(1)], f)
					}
					c.searchers[1].files[d(2)] = append(c.searchers[1].files[d(2)], other)
					all = append(all, f, other)
				}
				c.searchers[0].breaks = func() bool { return broken.Add(1) == 2 }
			})
			resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: "q", Options: &searchv1.SearchOptions{MaxFiles: 1000, MaxBytes: 64 << 20}})
			if err != nil || broken.Load() < 2 {
				t.Fatalf("%v, %d pieces before the end", err, broken.Load())
			}
			cov := resp.Coverage
			if replicas == 2 {
				slices.SortFunc(all, inOrder)
				if !slices.EqualFunc(resp.Files, all, same) || resp.Statistics.FilesMatched != 80 || !cov.Complete {
					t.Errorf("%d files, %v, %v", len(resp.Files), resp.Statistics, cov)
				}
				return
			}
			onlyOther := !slices.ContainsFunc(resp.Files, func(f *searchv1.FileMatch) bool { return f.Repo != "s" })
			if len(resp.Files) != 40 || !onlyOther || resp.Statistics.FilesMatched != 40 || cov.Searched != 1 || cov.Failed != 1 || resp.Cut != 0 {
				t.Errorf("%d files, %v, %v", len(resp.Files), resp.Statistics, cov)
			}
			if cov.Uncovered[0].Reason != searchv1.UncoveredReason_UNCOVERED_REASON_UNREACHABLE {
				t.Errorf("uncovered %v", cov.Uncovered)
			}
		})
	}
}

// TestBrokenReplyTakesNoRoom: what a searcher sent before it ended takes none of the
// memory of the query, so that the answer of the one in its place is not cut.
func TestBrokenReplyTakesNoRoom(t *testing.T) {
	var broken atomic.Int32
	const files, size = 40, 100_000
	c := start(t, 2, func(c *cluster) {
		c.cfg.Limits.MaxBytes, c.cfg.Limits.QueryBytes = 64<<20, files*size*5/4
		for i := range files {
			f := large(fmt.Sprintf("path%03d", i), 1, size, 1)
			for _, s := range c.searchers {
				s.files[d(1)] = append(s.files[d(1)], f)
			}
		}
		c.searchers[0].breaks = func() bool { return broken.Add(1) == 3 }
	})
	resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: "q", Options: &searchv1.SearchOptions{MaxFiles: 1000, MaxBytes: 64 << 20}})
	if err != nil || broken.Load() < 3 {
		t.Fatalf("%v, %d pieces before the end", err, broken.Load())
	}
	if len(resp.Files) != files || resp.Cut != 0 || !resp.Coverage.Complete {
		t.Errorf("%d files, cut %v, %v", len(resp.Files), resp.Cut, resp.Coverage)
	}
}

// TestLosersTakeNoRoom: what a hedge sent that lost takes none of the memory of the query, so that the answers that come after it are not cut.
func TestLosersTakeNoRoom(t *testing.T) {
	const files, size = 20, 100_000 // of a shard
	c := start(t, 3, func(c *cluster) {
		c.cfg.Limits.MaxBytes, c.cfg.Limits.QueryBytes = 64<<20, 3*files*size*7/6
		c.places = map[searchapi.Digest][]int{d(1): {0, 1}, d(2): {0, 2}, d(3): {0, 2}}
		first, hedge, late := c.searchers[0], c.searchers[1], c.searchers[2]
		for shard, holders := range map[int][]*searcher{1: {first, hedge}, 2: {first, late}, 3: {late}} {
			for i := range files {
				f := large(fmt.Sprintf("path%d%03d", shard, i), 1, size, 1)
				for _, s := range holders {
					s.files[d(shard)] = append(s.files[d(shard)], f)
				}
			}
		}
		first.lacks[d(3)] = searchv1.UncoveredReason_UNCOVERED_REASON_NOT_COVERED
		late.hangs, late.began = true, make(chan struct{}, 1)
		var hedged sync.Once
		first.matches = func(string, *searchv1.FileMatch) bool {
			hedged.Do(func() { // one hedge answers, and the other one never does
				<-late.began
				time.Sleep(200 * time.Millisecond) // if the hedge takes longer, it is cancelled, and the answer is whole all the same
				late.mu.Lock()
				defer late.mu.Unlock()
				late.hangs = false
			})
			return true
		}
	})
	resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: "q", Options: &searchv1.SearchOptions{MaxFiles: 1000, MaxBytes: 64 << 20}})
	if err != nil || len(resp.Files) != 3*files || resp.Cut != 0 || !resp.Coverage.Complete {
		t.Errorf("%d files, cut %v, %v, %v", len(resp.GetFiles()), resp.GetCut(), resp.GetCoverage(), err)
	}
}

// TestCoverageHasRoom: very many shards that failed do not make an answer too large. It
// counts all of them and names as many as there is room for.
func TestCoverageHasRoom(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		c.cfg.Limits.MaxBytes = 200_000
		for i := range 5000 {
			shard := searchapi.Digest{1, byte(i), byte(i >> 8)}
			c.searchers[0].files[shard] = []*searchv1.FileMatch{file(fmt.Sprintf("%s%05d", strings.Repeat("r", 40), i), "a", 1)}
			c.searchers[0].lacks[shard] = reasonCorrupt
		}
		c.searchers[0].files[d(9)] = []*searchv1.FileMatch{file("good", "a", 1)}
	})
	resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: "q"})
	if err != nil {
		t.Fatal(err)
	}
	cov := resp.Coverage
	if n := proto.Size(resp); n > 200_000 || len(resp.Files) != 1 || cov.Failed != 5000 || len(cov.Uncovered) == 0 || len(cov.Uncovered)+int(cov.UncoveredLeftOut) != 5000 {
		t.Errorf("%d bytes, %d files, %d shards failed, %d are named, %d left out", n, len(resp.Files), cov.Failed, len(cov.Uncovered), cov.UncoveredLeftOut)
	}
}

// TestListPages: pages of a list, a stream of it, and its parts as they come, are all of
// the repos in order, whatever limits there are.
func TestListPages(t *testing.T) {
	const repos = 3000
	name := func(i int) string { return fmt.Sprintf("host/%s%05d", strings.Repeat("n", 60), i) }
	c := start(t, 2, func(c *cluster) {
		c.cfg.Limits.MaxBytes, c.cfg.Limits.QueryBytes = 64<<20, 300_000
		c.places = map[searchapi.Digest][]int{d(1): {0}, d(2): {1}, d(3): {1}}
		for i := range repos {
			shard := 1 + i%3
			c.searchers[min(shard-1, 1)].repos[d(shard)] = append(c.searchers[min(shard-1, 1)].repos[d(shard)], &searchv1.RepoEntry{Name: name(i), Documents: 1})
		}
	})
	var want, paged, streamed []string
	for i := range repos {
		want = append(want, name(i))
	}
	names := func(list *[]string, entries []*searchv1.RepoEntry) {
		for _, e := range entries {
			*list = append(*list, e.Name)
		}
	}
	for token := []byte(nil); len(paged) == 0 || token != nil; {
		resp, err := c.List(t.Context(), &searchv1.ListRequest{Query: "q", PageToken: token, MaxBytes: 20_000})
		if err != nil || proto.Size(resp) > 20_000 || !resp.Coverage.Complete || resp.Coverage.Requested != 3 {
			t.Fatalf("%d bytes, %v, %v", proto.Size(resp), resp.GetCoverage(), err)
		}
		names(&paged, resp.Repos)
		token = resp.NextPageToken
	}
	if !slices.Equal(paged, want) {
		t.Errorf("pages have %d repos, want %d", len(paged), len(want))
	}
	coverage, err := c.EachRepo(t.Context(), &searchv1.ListRequest{Query: "q"}, func(entries []*searchv1.RepoEntry) error {
		names(&streamed, entries)
		if len(entries) == repos {
			t.Error("all repos were held at once")
		}
		return nil
	})
	if err != nil || !slices.Equal(streamed, want) || !coverage.Complete || coverage.Searched != 3 {
		t.Errorf("one after the other: %d repos, %v, %v", len(streamed), coverage, err)
	}
	_, err = c.List(t.Context(), &searchv1.ListRequest{Query: "other", PageToken: []byte("no token")})
	wantField(t, err, codes.InvalidArgument, "page_token")
}

// TestSkippedFilesBeyondMemory: a repo with more skipped files than may be held is listed
// without them, and counted.
func TestSkippedFilesBeyondMemory(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		c.cfg.Limits.QueryBytes = 100_000
		for shard := range 3 {
			e := &searchv1.RepoEntry{Name: "r", Documents: 1}
			for i := range 500 {
				e.SkippedFiles = append(e.SkippedFiles, &searchv1.SkippedFile{Path: fmt.Appendf(nil, "%d/%d", shard, i)})
			}
			c.searchers[0].repos[d(shard)] = []*searchv1.RepoEntry{e}
		}
	})
	resp, err := c.List(t.Context(), &searchv1.ListRequest{Query: "q", MaxSkippedFiles: 10_000})
	if err != nil || len(resp.Repos) != 1 || resp.Repos[0].Documents != 3 || len(resp.Repos[0].SkippedFiles) != 0 || resp.NextPageToken != nil {
		t.Errorf("%v, %v", resp.GetRepos(), err)
	}
}

// TestLargeFileInParts: the content of a file that is larger than an answer may be is
// had in parts.
func TestLargeFileInParts(t *testing.T) {
	c := start(t, 2, func(c *cluster) {
		c.cfg.Limits.MaxBytes = 64 << 20
		for i := range 2 {
			c.searchers[i].files[d(1)] = []*searchv1.FileMatch{large("much", 1, 10<<20, 0)}
		}
	})
	var content []byte
	for parts := 0; ; parts++ {
		resp, err := c.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "r", Path: []byte("much"), Offset: uint64(len(content))})
		if err != nil || proto.Size(resp) > 4<<20 || len(resp.Content) == 0 {
			t.Fatalf("part %d: %d bytes, %v", parts, proto.Size(resp), err)
		}
		if content = append(content, resp.Content...); uint64(len(content)) == resp.SizeBytes {
			break
		}
	}
	if want := "content of much" + strings.Repeat("x", 10<<20); string(content) != want {
		t.Errorf("%d bytes, want %d", len(content), len(want))
	}
}

// TestLargePlans: shards with more names of repos than a message may have are asked for
// in several calls, all the more when a type:repo stands for each of them.
func TestLargePlans(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		for shard := range 20 {
			for repo := range 1000 {
				e := &searchv1.RepoEntry{Name: fmt.Sprintf("%02d/%s%04d", shard, strings.Repeat("n", 1000), repo)}
				c.searchers[0].repos[d(shard)] = append(c.searchers[0].repos[d(shard)], e)
			}
		}
	})
	for _, query := range []string{"foo", "foo (type:repo bar) (type:repo baz)"} {
		resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: query})
		if err != nil || !resp.Coverage.Complete || resp.Coverage.Searched != 20 {
			t.Errorf("%s: %v, %v", query, resp.GetCoverage(), err)
		}
	}
	if n := len(c.searchers[0].asked); n < 2+4 || n > 3+10 {
		t.Errorf("the searcher was asked %d times", n)
	}
}

// TestLargestPageIsFollowed: the largest page that a request may have is followed by another one.
func TestLargestPageIsFollowed(t *testing.T) {
	const files = searchapi.MaxFiles + 5
	c := start(t, 1, func(c *cluster) {
		c.cfg.Limits.MaxFiles, c.cfg.Limits.MaxBytes = 0, 64<<20
		for i := range files {
			c.searchers[0].files[d(1)] = append(c.searchers[0].files[d(1)], file("r", fmt.Sprintf("%05d", i), 1))
		}
	})
	found, token := 0, []byte(nil)
	for found == 0 || token != nil {
		resp, err := c.Search(t.Context(), &searchv1.SearchRequest{PageToken: token, Options: &searchv1.SearchOptions{MaxFiles: searchapi.MaxFiles, MaxBytes: 64 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		found, token = found+len(resp.Files), resp.NextPageToken
	}
	if found != files {
		t.Errorf("%d of %d files", found, files)
	}
}
