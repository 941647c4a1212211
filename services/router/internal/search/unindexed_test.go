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
		c.cfg.Names = func(context.Context) ([]string, bool, error) {
			return []string{hidden, "host/lake", "host/new", "host/pond", "host/sea"}, true, nil
		}
	})
	open := &sees{"open", func(repo string) bool { return repo != hidden }}
	ctx := access.With(t.Context(), open)
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
	// How many repos there are is not for callers who may not see them all.
	const some = "; only the first 5 registered repos were looked at for one without an index"
	for _, tt := range []struct {
		who          access.Principal
		filter, want string
		some         bool
	}{
		{open, "lak", `"host/lake" is registered`, false}, {open, "/n.w$", `"host/new" is registered`, false},
		{open, "secret", "no indexed repo", false}, {open, "sea", "no indexed repo", false},
		{access.Anyone, "lak", `"host/lake" is registered`, false}, {access.Anyone, "river", "no indexed repo", true},
	} {
		found, err := c.Search(access.With(t.Context(), tt.who), &searchv1.SearchRequest{Query: "x r:" + tt.filter})
		if err != nil {
			t.Fatal(err)
		}
		if hints := found.GetEmpty().GetHints(); len(hints) != 1 || !strings.Contains(hints[0].GetText(), tt.want) || strings.Contains(hints[0].GetText(), some) != tt.some {
			t.Errorf("%s, r:%s: %v", tt.who.Name(), tt.filter, hints)
		}
	}
}
