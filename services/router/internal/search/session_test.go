package search_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

// TestSessionStaysWithItsRoots: what is published during a session is not seen
// in it, and repos that it does not keep are neither found nor asked for.
func TestSessionStaysWithItsRoots(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		s := c.searchers[0]
		s.files[d(1)] = []*searchv1.FileMatch{file("r", "a", 1)}
		s.files[d(2)] = []*searchv1.FileMatch{file("s", "b", 1)}
	})
	search := func(s *search.Service) string {
		resp, err := s.Search(t.Context(), &searchv1.SearchRequest{})
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, f := range resp.Files {
			found = append(found, f.Repo)
		}
		if resp.Coverage.Requested != uint64(len(found)) || !resp.Coverage.Complete {
			t.Errorf("found %v with coverage %v", found, resp.Coverage)
		}
		return strings.Join(found, " ")
	}
	all, some := c.Session(nil), c.Session(func(repo string, _ uint32) bool { return repo == "s" })
	none := c.Session(func(string, uint32) bool { return false })
	if a, s, n := search(all), search(some), search(none); a != "r s" || s != "s" || n != "" {
		t.Errorf("all found %q, one %q, none %q", a, s, n)
	}
	if _, err := some.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "r", Path: []byte("a")}); status.Code(err) != codes.NotFound {
		t.Errorf("a file of a repo that is not kept: %v", err)
	}
	delete(c.searchers[0].files, d(1))
	c.layoutOf(t)
	if got := search(c.Service); got != "s" {
		t.Errorf("after the change %q is found", got)
	}
	if resp, err := all.Search(t.Context(), &searchv1.SearchRequest{}); err != nil || resp.Coverage.Requested != 2 {
		t.Errorf("the session has %v, %v", resp, err)
	}
}

// TestSessionTriesAgain: after a failure to get roots, the next call asks again.
func TestSessionTriesAgain(t *testing.T) {
	c := start(t, 1, func(c *cluster) { c.searchers[0].files[d(1)] = []*searchv1.FileMatch{file("r", "a", 1)} })
	session := c.Session(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := session.Search(ctx, &searchv1.SearchRequest{}); err == nil {
		t.Error("an answer for a caller that is gone")
	}
	if resp, err := session.Search(t.Context(), &searchv1.SearchRequest{}); err != nil || len(resp.Files) != 1 {
		t.Errorf("then %v, %v", resp, err)
	}
}

func TestRepoNames(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		c.searchers[0].repos[d(1)] = []*searchv1.RepoEntry{{Name: "r"}, {Name: "s"}}
	})
	names, err := c.Session(func(repo string, _ uint32) bool { return repo == "s" }).RepoNames(t.Context(), "")
	if err != nil || !slices.Equal(slices.Collect(names), []string{"s"}) {
		t.Error("not the names of the session", err)
	}
	for text, want := range map[string]string{"": "r s", "s": "s", "sr": ""} {
		if names, err := c.RepoNames(t.Context(), text); err != nil || strings.Join(slices.Collect(names), " ") != want {
			t.Errorf("names with %q are not %q: %v", text, want, err)
		}
	}
}

// TestLookingAtReposIsCharged: who looks at the names of very many repos pays for it, and is refused when its allowance is used up.
func TestLookingAtReposIsCharged(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		c.cfg.CallerProcessors = 1e-9 // a bucket of one microsecond
		for i := range 5000 {
			c.searchers[0].repos[d(1)] = append(c.searchers[0].repos[d(1)], &searchv1.RepoEntry{Name: fmt.Sprintf("host/%d", i)})
		}
	})
	for i, look := range []func(context.Context) error{
		func(ctx context.Context) error {
			names, err := c.RepoNames(ctx, "")
			if err == nil {
				_ = slices.Collect(names)
			}
			return err
		},
		func(ctx context.Context) error {
			_, err := c.NearestRepos(ctx, "host/nowhere")
			return err
		},
		func(ctx context.Context) error {
			done, err := c.Looking(ctx)
			if err == nil {
				time.Sleep(time.Millisecond)
				done()
			}
			return err
		},
	} {
		ctx := access.With(t.Context(), &sees{fmt.Sprint("caller", i), func(string) bool { return true }})
		if err := look(ctx); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
		if err := look(ctx); !searchapi.IsOverloaded(err) {
			t.Errorf("call %d, again: %v", i, err)
		}
	}
}

// TestIdentified: the repos with ids, of those that a session keeps.
func TestIdentified(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		var roots []*catalogv1.Root
		for i := range 1000 {
			digest := d(1)
			roots = append(roots, &catalogv1.Root{Repo: fmt.Sprintf("r%03d", i), Id: uint32(i % 500), Shards: []*catalogv1.ShardRef{{Digest: digest[:], Repos: 1000, RepoNumber: uint32(i)}}})
		}
		var err error
		if c.layout, err = search.NewLayout(1, roots); err != nil {
			t.Fatal(err)
		}
	})
	ids, err := c.Session(func(_ string, id uint32) bool { return id%100 == 0 }).Identified(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for id, name := range ids {
		got = append(got, fmt.Sprint(name, "=", id))
	}
	if want := "r100=100 r200=200 r300=300 r400=400 r600=100 r700=200 r800=300 r900=400"; strings.Join(got, " ") != want {
		t.Errorf("got %v", got)
	}
}

// TestLanguagesOfSession: the languages of all repos of a shard, and none of a shard with a hidden repo.
func TestLanguagesOfSession(t *testing.T) {
	root := func(name string, shard int, repos uint32, language string) *catalogv1.Root {
		digest := d(shard)
		return &catalogv1.Root{Repo: name, Shards: []*catalogv1.ShardRef{{Digest: digest[:], SizeBytes: 10, Repos: repos, Languages: []string{language}}}}
	}
	c := start(t, 1, func(c *cluster) {
		var err error
		c.layout, err = search.NewLayout(1, []*catalogv1.Root{root("a", 1, 2, "C"), root("b", 1, 2, "Go"), root("c", 2, 1, "Rust"), root("d", 3, 1, ""), root("e", 4, 1, "Zig")})
		if err != nil {
			t.Fatal(err)
		}
	})
	for hidden, want := range map[string]string{"": "C Go Rust Zig", "a": "Rust Zig", "e": "C Go Rust"} {
		names, err := c.Session(func(repo string, _ uint32) bool { return repo != hidden }).Languages(t.Context())
		if got := strings.Join(names, " "); err != nil || got != want {
			t.Errorf("without %q: %q, %v, want %q", hidden, got, err, want)
		}
	}
}
