package search_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestUnindexed: callers learn that a repo is registered but has no index yet. To callers who may not see it, it does not exist.
func TestUnindexed(t *testing.T) {
	c := start(t, 1, func(c *cluster) {
		c.searchers[0].files[d(1)] = []*searchv1.FileMatch{file("host/pond", "a.go", 0)}
		c.cfg.Status = func(_ context.Context, repo string) (*ingestv1.RepoStatus, error) {
			if repo == "host/new" {
				return &ingestv1.RepoStatus{Name: repo, State: ingestv1.State_STATE_QUEUED}, nil
			}
			if repo == "host/lake" || repo == hidden {
				return &ingestv1.RepoStatus{Name: repo, State: ingestv1.State_STATE_FAILED}, nil
			}
			if repo == "host/sea" { // it is searched, but not in this session
				return &ingestv1.RepoStatus{Name: repo, State: ingestv1.State_STATE_FAILED, Generation: 1}, nil
			}
			return nil, errors.New("there is none")
		}
		c.cfg.Names = func(context.Context) ([]string, error) {
			return []string{hidden, "host/lake", "host/new", "host/pond", "host/sea"}, nil
		}
	})
	ctx := access.With(t.Context(), &sees{"open", func(repo string) bool { return repo != hidden }})
	for repo, want := range map[string]string{
		"host/lake": `"host/lake" is registered, but cannot be searched yet: its state is failed; trawl repos status host/lake says why`,
		"host/new":  `"host/new" is registered, but cannot be searched yet: its state is queued; trawl repos status host/new shows more`,
		"host/none": "",
		"host/sea":  "",
		hidden:      "",
	} {
		found, err := c.Search(ctx, &searchv1.SearchRequest{Query: "x repo:^" + repo + "$"})
		if err != nil {
			t.Fatal(err)
		}
		_, file := c.GetFile(ctx, &searchv1.GetFileRequest{Repo: repo, Path: []byte("a")})
		_, tree := c.ListTree(ctx, &searchv1.ListTreeRequest{Repo: repo})
		hint := ""
		for _, h := range found.GetEmpty().GetHints() {
			hint += h.GetText()
		}
		for _, text := range []string{hint, status.Convert(file).Message(), status.Convert(tree).Message()} {
			if want != "" && !strings.Contains(text, want) || want == "" && strings.Contains(text, "registered") {
				t.Errorf("%s: %s", repo, text)
			}
		}
		if status.Code(file) != codes.NotFound || status.Code(tree) != codes.NotFound {
			t.Errorf("%s: %v, %v", repo, file, tree)
		}
	}
	for filter, want := range map[string]string{"lak": `"host/lake" is registered`, "/n.w$": `"host/new" is registered`, "secret": "no indexed repo", "sea": "no indexed repo"} {
		found, err := c.Search(ctx, &searchv1.SearchRequest{Query: "x r:" + filter})
		if err != nil {
			t.Fatal(err)
		}
		if hints := found.GetEmpty().GetHints(); len(hints) != 1 || !strings.Contains(hints[0].GetText(), want) {
			t.Errorf("r:%s: %v", filter, hints)
		}
	}
}
