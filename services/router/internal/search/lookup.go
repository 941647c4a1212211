package search

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// lookup is an admitted request for what is at a path. All of it is answered from one layout.
type lookup struct {
	service *Service
	ticket  *ticket
	layout  *Layout
	// end must be called.
	end func()
}

// lookup admits a request that began at start. Asking is the context for asking searchers.
func (s *Service) lookup(ctx context.Context, method string, start time.Time, want *searchv1.Consistency, atLeast int64) (asking context.Context, l lookup, err error) {
	l.service = s
	if asking, l.ticket, l.end, err = s.letIn(ctx, method, start, interactive, want, atLeast); err != nil {
		return nil, l, err
	}
	if l.layout, err = s.layouts.At(asking, want, atLeast); err != nil {
		l.end()
	}
	return asking, l, err
}

// root is the root of a repo, which must have the branch unless it is empty, and the name of the branch. HEAD is that of the first one.
func (l *lookup) root(repo, branch string) (root *catalogv1.Root, name string, err error) {
	root, ok := l.layout.Root(repo)
	if !ok {
		return nil, "", noRepo(repo, nil)
	}
	if branch == "" || slices.ContainsFunc(root.Branches, func(b *catalogv1.Branch) bool { return b.Name == branch }) {
		return root, branch, nil
	}
	if branch == "HEAD" && len(root.Branches) > 0 {
		return root, root.Branches[0].Name, nil
	}
	names := make([]string, len(root.Branches))
	for i, b := range root.Branches {
		names[i] = b.Name
	}
	text := fmt.Sprintf("no branch %q of %s is indexed", branch, repo)
	if all := strings.Join(names, ", "); len(all) <= listedBranches {
		text += "; these are: " + all
	}
	return nil, "", searchapi.NotFound("branch", text, searchapi.Nearest(branch, names))
}

// noRepo is the error of a repo without a root.
func noRepo(repo string, nearest []string) error {
	return searchapi.NotFound("repo", fmt.Sprintf("no repo %q is published, or you may not see it", repo), nearest)
}

// withNearest adds to the error of a repo or a file that does not exist what its caller may have meant: why the repo has no root, or the
// nearest names; the branch that has the file, or the nearest paths. The caller is charged for the names.
func (l *lookup) withNearest(ctx context.Context, req *searchv1.GetFileRequest, err error) error {
	if status.Code(err) != codes.NotFound {
		return err
	}
	switch searchapi.FieldOf(err) {
	case "repo":
		if text := l.service.Unindexed(ctx, req.Repo); text != "" {
			return searchapi.NotFound("repo", text, nil)
		}
		defer l.ticket.computed(time.Now()) // not for waiting for etcd
		return noRepo(req.Repo, l.layout.nearest(req.Repo))
	case "path":
		if req.Branch != "" {
			found, err := l.file(ctx, &searchv1.GetFileRequest{Repo: req.Repo, Path: req.Path, MaxBytes: 1})
			if err == nil && len(found.Branches) > 0 {
				return searchapi.FileNotFound(req, found.Branches[0], nil)
			}
		}
		return searchapi.FileNotFound(req, "", l.nearestPaths(ctx, req.Repo, req.Branch, req.Path))
	}
	return err
}

// listedBranches bounds the text that the error of an unknown branch has for all branches, in bytes.
const listedBranches = 500

// Bounds of the search for paths or names like one that does not exist.
const (
	nearestTime  = time.Second
	nearestFiles = 1000
	nearestBytes = 1 << 20
)

// nearestPaths are the paths on a branch that differ least from one that does not exist: of folders if that ends with a slash, else of files;
// and of the other kind where the last part is the same. An empty repo or branch is any. There are none if they cannot be found in time.
func (l *lookup) nearestPaths(ctx context.Context, repo, branch string, missing []byte) []string {
	ctx, cancel := context.WithTimeout(ctx, nearestTime)
	defer cancel()
	name, wantsFolder := strings.CutSuffix(string(missing), "/")
	base := path.Base(name)
	thirds := searchapi.Thirds(base)
	for i, third := range thirds {
		thirds[i] = regexp.QuoteMeta(third)
	}
	ends := [2]string{"$", "/"}
	if wantsFolder {
		ends = [2]string{"/", "$"}
	}
	text := &searchv1.Text{
		Pattern: "(?:" + strings.Join(thirds, "|") + ")[^/]*" + ends[0] + "|(?:^|/)" + regexp.QuoteMeta(strings.ToValidUTF8(base, "")) + ends[1],
		Regexp:  true, Scope: searchv1.TextScope_TEXT_SCOPE_PATH,
	}
	of := []*searchv1.Query{{Node: &searchv1.Query_Text{Text: text}}}
	if repo != "" {
		of = append(of, &searchv1.Query{Node: &searchv1.Query_Repos{Repos: &searchv1.RepoNames{Names: []string{repo}}}})
	}
	if branch != "" {
		of = append(of, &searchv1.Query{Node: &searchv1.Query_Branch{Branch: &searchv1.BranchName{Name: branch, Exact: true}}})
	}
	files, _, err := l.search(ctx, &searchv1.SearchRequest{Tree: &searchv1.Query{Node: &searchv1.Query_And{And: &searchv1.Operands{Queries: of}}}}, &searchv1.SearchOptions{
		MaxFiles: nearestFiles, MaxMatchesPerFile: 1, MaxBytes: nearestBytes,
	})
	if err != nil {
		return nil
	}
	var names []string
	add := func(candidate string, isFolder bool) {
		if isFolder == wantsFolder || path.Base(candidate) == base {
			names = append(names, candidate)
		}
	}
	for _, f := range files {
		file := string(f.Path)
		add(file, false)
		for i := range file {
			if file[i] == '/' {
				add(file[:i+1], true)
			}
		}
	}
	slices.Sort(names)
	return searchapi.Nearest(name, slices.Compact(names))
}

// plan plans a query of the layout.
func (l *lookup) plan(ctx context.Context, asked *question) (*execution, error) {
	fixed := &session{}
	fixed.layout.Store(l.layout)
	s := *l.service
	s.layouts = fixed
	return s.plan(ctx, l.ticket, asked, nil, 0)
}

// search finds files of the layout for an answer that has none. Complete reports whether it searched everything.
func (l *lookup) search(ctx context.Context, req *searchv1.SearchRequest, options *searchv1.SearchOptions) (files []*searchv1.FileMatch, complete bool, err error) {
	p, err := l.service.newPage(req, searchapi.WithDefaults(options))
	if err != nil {
		return nil, false, err
	}
	e, err := l.plan(ctx, p.asked)
	if err != nil {
		return nil, false, err
	}
	p.shape(e.asked.answer)
	results := l.service.newFileSet()
	var lists []*fileList
	e.search(ctx, p, results, func(r *searchReply) { lists = append(lists, r.files) })
	files, _ = results.merge(int(p.options.MaxFiles), lists...)
	return files, e.coverage.Coverage().Complete, nil
}
