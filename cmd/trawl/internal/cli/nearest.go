package cli

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

const (
	// comparedBytes and comparedFiles bound the names that are compared with one that does not exist.
	comparedBytes = 1 << 20
	comparedFiles = 300
)

// withNearest returns err, the error of a request for the file REPO:PATH on a branch. If there is no such repo
// or file, it adds the branch that has the file, or the most similar names.
func withNearest(ctx context.Context, c client, name, branch string, err error) error {
	switch {
	case status.Code(err) != codes.NotFound:
		return err
	case searchapi.FieldOf(err) == "branch":
		return exitStatus{1, err}
	case branch != "":
		var elsewhere *searchv1.GetFileResponse
		_ = forFile(name, "", func(req *searchv1.GetFileRequest) (failed error) { // a file that is nowhere has similar names
			elsewhere, failed = c.search.GetFile(ctx, req)
			return failed
		})
		if on := elsewhere.GetBranches(); len(on) > 0 {
			return exitStatus{1, fmt.Errorf("%s is not on branch %s, but on %s", render.Safe([]byte(name)), render.Safe([]byte(branch)), render.Safe([]byte(on[0])))}
		}
	}
	list, failed := c.search.List(ctx, &searchv1.ListRequest{Query: "r:" + likeBase(beforeColon(name)), MaxBytes: comparedBytes})
	if failed != nil {
		return exitStatus{1, err}
	}
	missing, names := "repo", []string(nil)
	for _, r := range list.GetRepos() {
		if file, ok := strings.CutPrefix(name, r.GetName()+":"); ok {
			missing, names = "file", filesLike(ctx, c, r.GetName(), file, branch)
			break
		}
		names = append(names, r.GetName())
	}
	wanted := beforeColon(name)
	if missing == "file" {
		wanted = name
	}
	text := fmt.Sprintf("%s: there is no such %s, or you may not see it", render.Safe([]byte(wanted)), missing)
	if nearest := searchapi.Nearest(wanted, names); len(nearest) > 0 {
		for i, name := range nearest {
			nearest[i] = render.Name([]byte(name))
		}
		text += "; the nearest: " + strings.Join(nearest, ", ")
	}
	return exitStatus{1, fmt.Errorf("%s", text)}
}

// beforeColon is the repo of REPO:PATH, if its name has no colon.
func beforeColon(name string) string {
	repo, _, _ := strings.Cut(name, ":")
	return repo
}

// likeBase returns an expression for names that contain a third of the last part of name.
func likeBase(name string) string {
	thirds := searchapi.Thirds(path.Base(name))
	for i, third := range thirds {
		thirds[i] = regexp.QuoteMeta(third)
	}
	return query.Quote("(?i:" + strings.Join(thirds, "|") + ")")
}

// filesLike returns the files of a repo with names similar to file, as REPO:PATH. An empty branch is any.
func filesLike(ctx context.Context, c client, repo, file, branch string) (names []string) {
	text := "type:file r:" + query.Quote("^"+regexp.QuoteMeta(repo)+"$") + " f:" + likeBase(file)
	if branch != "" {
		text += " b:" + query.Quote(branch)
	}
	resp, err := c.search.Search(ctx, &searchv1.SearchRequest{
		Query:   text,
		Options: &searchv1.SearchOptions{Mode: searchv1.Mode_MODE_TOP_K, MaxFiles: comparedFiles, MaxMatchesPerFile: 1},
	})
	if err != nil {
		return nil
	}
	for _, f := range resp.GetFiles() {
		names = append(names, repo+":"+string(f.GetPath()))
	}
	return names
}
