package search_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

// TestTypeRepo: the type:repo of a query are resolved one after the other. A searcher gets the
// results only for the repos in its shards.
func TestTypeRepo(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		s := c.searchers[0]
		s.files[d(1)] = []*searchv1.FileMatch{file("r", "a", 1)}
		s.files[d(2)] = []*searchv1.FileMatch{file("s", "a", 1)}
		s.repos[d(1)] = []*searchv1.RepoEntry{{Name: "r"}}
	})
	resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: "foo (type:repo bar) (type:repo r:r baz)"})
	if err != nil {
		t.Fatal(err)
	}
	s := c.searchers[0]
	if len(s.listed) != 2 || len(s.listed[0].Plan.Resolved) != 0 || len(s.listed[1].Plan.Resolved) != 1 {
		t.Fatalf("listed by %v", s.listed)
	}
	if n := len(s.listed[1].Plan.Shards); n != 1 {
		t.Errorf("%d shards were asked for the repos of (r:r baz), 1 can match", n)
	}
	if len(s.asked) != 1 || len(s.asked[0].Plan.Resolved) != 2 || !slices.Equal(s.asked[0].Plan.Resolved[1].Names, []string{"r"}) {
		t.Fatalf("asked with %v", s.asked)
	}
	if got := resp.Coverage; !got.Complete || got.Searched != 2 || got.Requested != 2 || len(resp.Files) != 1 {
		t.Errorf("coverage %v, files %v", got, resp.Files)
	}
}

// TestTypeRepoIncomplete: a shard that could not be searched for a type:repo is missing from the
// answer, even though the rest of the query prunes it.
func TestTypeRepoIncomplete(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		s := c.searchers[0]
		s.files[d(1)] = []*searchv1.FileMatch{file("r", "a", 1)}
		s.files[d(2)] = []*searchv1.FileMatch{file("s", "a", 1)}
		s.repos[d(1)] = []*searchv1.RepoEntry{{Name: "r"}}
		s.lacks[d(2)] = reasonCorrupt
	})
	resp, err := c.Search(t.Context(), &searchv1.SearchRequest{Query: "foo (type:repo bar)"})
	if err != nil || resp.Coverage.Complete || resp.Coverage.Failed != 1 || resp.Coverage.Searched != 1 || resp.Statistics.CountsExact {
		t.Errorf("%v, %v", resp, err)
	}
}

// TestListTellsOfWholeRepos: a repo that matches in one of its shards is
// described by all of them.
func TestListTellsOfWholeRepos(t *testing.T) {
	share := func(l string, n uint64) []*searchv1.LanguageShare {
		return []*searchv1.LanguageShare{{Language: l, Documents: n}}
	}
	c := start(t, 2, func(c *cluster) {
		c.places = map[searchapi.Digest][]int{d(1): {0}, d(2): {1}, d(3): {0}}
		c.searchers[0].repos[d(1)] = []*searchv1.RepoEntry{{Name: "large", Documents: 10, Languages: share("Go", 10)}}
		c.searchers[1].repos[d(2)] = []*searchv1.RepoEntry{{Name: "large", Documents: 5, Languages: share("C", 5), Url: "not for q"}}
		c.searchers[0].repos[d(3)] = []*searchv1.RepoEntry{{Name: "apart", Documents: 1, Languages: share("Go", 1)}}
	})
	resp, err := c.List(t.Context(), &searchv1.ListRequest{Query: "q"})
	if err != nil || !resp.Coverage.Complete || len(resp.Repos) != 2 {
		t.Fatalf("%v, %v", resp, err)
	}
	apart, large := resp.Repos[0], resp.Repos[1]
	if apart.Name != "apart" || apart.Documents != 1 || large.Documents != 15 || large.Shards != 2 || large.IndexBytes != 20 {
		t.Errorf("got %v and %v", apart, large)
	}
	if large.Generation != 3 || large.Branches[0].Commit != "c0" || len(large.Languages) != 2 || large.Languages[0].Language != "C" {
		t.Errorf("got %v", large)
	}
	if resp.Coverage.Requested != 3 || resp.Coverage.Searched != 3 {
		t.Errorf("coverage %v", resp.Coverage)
	}
}

// TestListAsksForItsPage: a page of a list asks only for the shards of its repos, and all pages together have all repos once, as a list
// without pages does.
func TestListAsksForItsPage(t *testing.T) {
	const repos, inShard = 5000, 1000
	name := func(i int) string { return fmt.Sprintf("repo%04d", i) }
	c := start(t, 1, func(c *cluster) {
		for i := range repos {
			c.searchers[0].repos[d(i/inShard)] = append(c.searchers[0].repos[d(i/inShard)], &searchv1.RepoEntry{Name: name(i), Documents: 1})
		}
	})
	for _, tt := range []struct {
		query                  string
		every, searched, pages int
	}{{"", 1, 3, 3}, {"repo:0$", 10, 5, 1}, {"repo:repo49", 0, 1, 1}} {
		var want, got, all []string
		for i := range repos {
			if tt.every > 0 && i%tt.every == 0 || tt.every == 0 && i/100 == 49 {
				want = append(want, name(i))
			}
		}
		pages := 0
		for token := []byte(nil); pages == 0 || token != nil; pages++ {
			resp, err := c.List(t.Context(), &searchv1.ListRequest{Query: tt.query, PageToken: token})
			if err != nil || !resp.Coverage.Complete || resp.Coverage.Requested != repos/inShard || len(resp.Repos) == 0 {
				t.Fatalf("%q: %d repos, %v, %v", tt.query, len(resp.GetRepos()), resp.GetCoverage(), err)
			}
			if pages == 0 && resp.Coverage.Searched != uint64(tt.searched) {
				t.Errorf("%q: the first page searched %d shards, want %d", tt.query, resp.Coverage.Searched, tt.searched)
			}
			for _, entry := range resp.Repos {
				got = append(got, entry.Name)
			}
			token = resp.NextPageToken
		}
		coverage, err := c.EachRepo(t.Context(), &searchv1.ListRequest{Query: tt.query}, func(entries []*searchv1.RepoEntry) error {
			for _, entry := range entries {
				all = append(all, entry.Name)
			}
			return nil
		})
		if err != nil || !coverage.Complete || !slices.Equal(got, want) || !slices.Equal(all, want) || pages != tt.pages {
			t.Errorf("%q: %d repos in %d pages, %d without pages, want %d in %d; %v, %v", tt.query, len(got), pages, len(all), len(want), tt.pages, coverage, err)
		}
	}
}

// TestListOfLittleNeedsFewWindows: a list that finds nothing in its first window asks for 16 times as many repos next. One that finds much asks
// for about as many as fill its page.
func TestListOfLittleNeedsFewWindows(t *testing.T) {
	const repos, inShard = 40_000, 1000
	for _, tt := range []struct{ every, calls, shards int }{{10_000, 3, 40}, {4, 2, 13}, {1, 1, 3}} {
		c := start(t, 1, func(c *cluster) {
			for i := range repos {
				e := &searchv1.RepoEntry{Name: fmt.Sprintf("repo%05d", i), Documents: 1}
				if i%tt.every != tt.every-1 {
					e.Url = "not for q"
				}
				c.searchers[0].repos[d(i/inShard)] = append(c.searchers[0].repos[d(i/inShard)], e)
			}
		})
		resp, err := c.List(t.Context(), &searchv1.ListRequest{Query: "q"})
		s := c.searchers[0]
		if err != nil || !resp.Coverage.Complete || len(s.listed) > tt.calls || len(resp.Repos) < min(repos/tt.every, 2000) {
			t.Errorf("one of %d: %d repos by %d calls, want at most %d; %v", tt.every, len(resp.GetRepos()), len(s.listed), tt.calls, err)
		}
		if first := s.listed[0].Plan; first.Span.GetLast() == "" {
			t.Errorf("one of %d: the first call has no bounds", tt.every)
		}
		if last := s.listed[len(s.listed)-1].Plan; len(last.Shards) > tt.shards {
			t.Errorf("one of %d: the last call is for %d shards, want at most %d", tt.every, len(last.Shards), tt.shards)
		}
	}
}

// TestListOfOneWindowHasNoBounds: a list that asks for all repos at once does so without the bounds that older searchers do not know.
func TestListOfOneWindowHasNoBounds(t *testing.T) {
	c := start(t, 1, func(c *cluster) { c.searchers[0].repos[d(1)] = []*searchv1.RepoEntry{{Name: "a", Documents: 1}} })
	resp, err := c.List(t.Context(), &searchv1.ListRequest{})
	if err != nil || len(resp.Repos) != 1 || c.searchers[0].listed[0].Plan.Span != nil {
		t.Errorf("%v by %v, %v", resp, c.searchers[0].listed, err)
	}
}

// TestListOfMuchAfterLittle: a list that finds nothing in its first window, and in the next one more than it has memory for, asks for smaller
// windows then, not again and again for all that is left.
func TestListOfMuchAfterLittle(t *testing.T) {
	const repos, inShard, empty = 40_000, 1000, 4000
	c := start(t, 1, func(c *cluster) {
		c.cfg.Limits.MaxBytes, c.cfg.Limits.QueryBytes = 64<<20, 1_000_000
		for i := range repos {
			e := &searchv1.RepoEntry{Name: fmt.Sprintf("repo%05d", i), Documents: 1}
			if i < empty {
				e.Url = "not for q"
			}
			c.searchers[0].repos[d(i/inShard)] = append(c.searchers[0].repos[d(i/inShard)], e)
		}
	})
	found, planned := 0, 0
	coverage, err := c.EachRepo(t.Context(), &searchv1.ListRequest{Query: "q"}, func(entries []*searchv1.RepoEntry) error {
		found += len(entries)
		return nil
	})
	for _, list := range c.searchers[0].listed {
		planned += len(list.Plan.Shards)
	}
	if err != nil || !coverage.Complete || found != repos-empty || planned > 4*repos/inShard {
		t.Errorf("%d repos by %d calls for %d shards; %v, %v", found, len(c.searchers[0].listed), planned, coverage, err)
	}
}

// TestListOfNoTime: a list whose time is over before its later windows says that their shards were not reached.
func TestListOfNoTime(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		for i := range 4000 {
			c.searchers[0].repos[d(i/1000)] = append(c.searchers[0].repos[d(i/1000)], &searchv1.RepoEntry{Name: fmt.Sprintf("repo%04d", i)})
		}
		c.searchers[0].hangs = true
		c.cfg.Budget = search.Budget{Default: 300 * time.Millisecond, Most: 300 * time.Millisecond}
	})
	resp, err := c.List(t.Context(), &searchv1.ListRequest{})
	if err == nil && (resp.Coverage.Complete || resp.Coverage.NotReached+resp.Coverage.Failed != 4 || resp.Coverage.Pruned > 0) {
		t.Errorf("coverage %v", resp.Coverage)
	}
}

// TestListMissesADescription: a shard that the plan prunes is asked all the same if it holds a part
// of a listed repo. If that fails, the list reports it.
func TestListMissesADescription(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		root := &catalogv1.Root{Repo: "r", Generation: 3, Branches: []*catalogv1.Branch{{Name: "main", Commit: "c0"}}}
		for i, language := range []string{"Go", "C"} {
			digest := d(i + 1)
			c.searchers[0].repos[digest] = []*searchv1.RepoEntry{{Name: "r", Documents: 1}}
			root.Shards = append(root.Shards, &catalogv1.ShardRef{Digest: digest[:], SizeBytes: 10, Languages: []string{language}})
		}
		var err error
		if c.layout, err = search.NewLayout(42, []*catalogv1.Root{root}); err != nil {
			t.Fatal(err)
		}
	})
	for i, want := range []*searchv1.Coverage{
		{Complete: true, Requested: 2, Searched: 2},
		{Requested: 2, Searched: 1, Failed: 1},
	} {
		broken := i == 1
		if broken {
			c.searchers[0].lacks[d(2)] = reasonCorrupt
		}
		resp, err := c.List(t.Context(), &searchv1.ListRequest{Query: "lang:Go"})
		if err != nil || len(resp.Repos) != 1 {
			t.Fatalf("%v, %v", resp, err)
		}
		resp.Coverage.Uncovered = nil
		if !proto.Equal(resp.Coverage, want) {
			t.Errorf("broken %v: coverage %v, want %v", broken, resp.Coverage, want)
		}
	}
}

func TestGetFile(t *testing.T) {
	c := start(t, 2, func(c *cluster) {
		c.places = map[searchapi.Digest][]int{d(1): {0}, d(2): {1}}
		c.searchers[0].files[d(1)] = []*searchv1.FileMatch{file("r", "a", 1)}
		c.searchers[1].files[d(2)] = []*searchv1.FileMatch{file("r", "b", 1)}
	})
	for _, path := range []string{"a", "b"} {
		resp, err := c.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "r", Path: []byte(path)})
		if err != nil || string(resp.Content) != "content of "+path || len(resp.RevisionToken) == 0 {
			t.Errorf("%s: %v, %v", path, resp, err)
		}
	}
	_, err := c.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "r", Path: []byte("none")})
	wantField(t, err, codes.NotFound, "path")
	_, err = c.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "none", Path: []byte("a")})
	wantField(t, err, codes.NotFound, "repo")
}

// stream collects what StreamSearch sends.
type stream struct {
	grpc.ServerStream
	ctx  context.Context
	sent []*searchv1.StreamSearchResponse
}

func (s *stream) Context() context.Context { return s.ctx }
func (s *stream) Send(r *searchv1.StreamSearchResponse) error {
	s.sent = append(s.sent, r)
	return nil
}

func TestStreamSearch(t *testing.T) {
	c := start(t, 2, func(c *cluster) {
		c.places = map[searchapi.Digest][]int{d(1): {0}, d(2): {1}}
		c.searchers[0].files[d(1)] = []*searchv1.FileMatch{file("r", "a", 1), file("r", "c", 3)}
		c.searchers[1].files[d(2)] = []*searchv1.FileMatch{file("r", "b", 2)}
	})
	for mode, limit := range map[searchv1.Mode]uint32{searchv1.Mode_MODE_EXHAUSTIVE: 0, searchv1.Mode_MODE_TOP_K: 2} {
		s := &stream{ctx: t.Context()}
		err := c.StreamSearch(&searchv1.StreamSearchRequest{Search: &searchv1.SearchRequest{
			Query: "q", Options: &searchv1.SearchOptions{Mode: mode, MaxFiles: limit},
		}}, s)
		if err != nil {
			t.Fatal(err)
		}
		var paths string
		for _, r := range s.sent[:len(s.sent)-1] {
			for _, f := range r.Files {
				paths += string(f.Path)
			}
			if r.Coverage != nil {
				t.Error("coverage before the last message")
			}
		}
		last := s.sent[len(s.sent)-1]
		if !last.Coverage.Complete || last.Statistics.FilesMatched != 3 || len(last.RevisionToken) == 0 {
			t.Errorf("last message %v", last)
		}
		if mode == searchv1.Mode_MODE_TOP_K && paths != "cb" {
			t.Errorf("the best two are %q", paths)
		}
		if mode == searchv1.Mode_MODE_EXHAUSTIVE && len(paths) != 3 {
			t.Errorf("all files are %q", paths)
		}
	}
}

// TestTree: a query can be a tree. A searcher gets only the repos of its sets that are in its
// shards, and shards that no set names are pruned.
func TestTree(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		s := c.searchers[0]
		s.files[d(1)] = []*searchv1.FileMatch{file("r", "a", 1), file("r", "b", 2)}
		s.files[d(2)] = []*searchv1.FileMatch{file("s", "a", 1)}
		s.repos[d(1)] = []*searchv1.RepoEntry{{Name: "r"}}
	})
	set := func(names ...string) *searchv1.Query {
		return &searchv1.Query{Node: &searchv1.Query_Repos{Repos: &searchv1.RepoNames{Names: names}}}
	}
	req := &searchv1.SearchRequest{Tree: set("gone", "r"), Options: &searchv1.SearchOptions{MaxFiles: 1}}
	resp, err := c.Search(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	s := c.searchers[0]
	if len(s.asked) != 1 || !proto.Equal(s.asked[0].Tree, set("r")) || s.asked[0].Query != "" {
		t.Fatalf("asked with %v", s.asked)
	}
	if got := resp.Coverage; !got.Complete || got.Searched != 1 || got.Pruned != 1 || len(resp.Files) != 1 || resp.NextPageToken == nil {
		t.Errorf("coverage %v, files %v", got, resp.Files)
	}
	req.PageToken = resp.NextPageToken
	if resp, err = c.Search(t.Context(), req); err != nil || len(resp.Files) != 1 {
		t.Errorf("the second page: %v, %v", resp, err)
	}
	req.Tree = set("s")
	if _, err = c.Search(t.Context(), req); status.Code(err) != codes.InvalidArgument {
		t.Errorf("the page of another tree: %v", err)
	}
	if _, err := c.List(t.Context(), &searchv1.ListRequest{Tree: set("r")}); err != nil || len(s.listed) != 1 || !proto.Equal(s.listed[0].Tree, set("r")) {
		t.Errorf("listed by %v, %v", s.listed, err)
	}
	if _, err = c.Search(t.Context(), &searchv1.SearchRequest{Query: "a", Tree: set("r")}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a text and a tree: %v", err)
	}
}

// TestLateCallsHaveTheirRound: a call that starts after its round was given up uses the repos that were resolved
// before the round, whatever is resolved meanwhile. The race detector reports a call that reads what changes.
func TestLateCallsHaveTheirRound(t *testing.T) {
	const deadline = 50 * time.Millisecond
	c := start(t, 2, func(c *cluster) {
		c.connecting = func() { time.Sleep(2 * deadline) } // a signal would enforce an order that the code must not need
		for i, s := range c.searchers {
			s.files[d(i)] = []*searchv1.FileMatch{file(fmt.Sprintf("org/repo%d", i), "a", 1)}
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	resp, err := c.Search(ctx, &searchv1.SearchRequest{Query: "(type:repo a) (type:repo b) c"})
	if err != nil || resp.Coverage.Complete || resp.Coverage.NotReached != 2 {
		t.Errorf("a query ended before any searcher was asked: %v, %v", resp, err)
	}
	time.Sleep(3 * deadline)
}

// TestListTellsOfManyWholeRepos: a list describes each repo by all of its shards, even if a query has room for only some of the repos
// at a time.
func TestListTellsOfManyWholeRepos(t *testing.T) {
	const repos = 3000
	c := start(t, 2, func(c *cluster) {
		c.cfg.Limits.MaxBytes, c.cfg.Limits.QueryBytes = 64<<20, 300_000
		c.places = map[searchapi.Digest][]int{d(1): {0}, d(2): {1}}
		for i := range repos {
			name := fmt.Sprintf("host/%s/%05d", strings.Repeat("long", 20), i)
			c.searchers[0].repos[d(1)] = append(c.searchers[0].repos[d(1)], &searchv1.RepoEntry{Name: name, Documents: 1})
			c.searchers[1].repos[d(2)] = append(c.searchers[1].repos[d(2)], &searchv1.RepoEntry{Name: name, Documents: 1, Url: "not for q"})
		}
	})
	found := 0
	_, err := c.EachRepo(t.Context(), &searchv1.ListRequest{Query: "q"}, func(entries []*searchv1.RepoEntry) error {
		for _, e := range entries {
			if found++; e.Documents != 2 {
				t.Errorf("%s has %d documents", e.Name, e.Documents)
			}
		}
		return nil
	})
	if err != nil || found != repos {
		t.Errorf("%d repos, %v", found, err)
	}
}
