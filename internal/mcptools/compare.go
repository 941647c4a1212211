package mcptools

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

type compareArgs struct {
	Repo  string   `json:"repo" jsonschema:"name of one repo"`
	Base  string   `json:"base" jsonschema:"a branch by its whole name"`
	Head  string   `json:"head" jsonschema:"the branch to compare with base"`
	Paths []string `json:"paths,omitempty" jsonschema:"globs of paths; default all"`
	Limit
}

// comparison is the answer of compare. Counts are of all files, shown or not.
type comparison struct {
	Repo     string   `json:"repo"`
	Base     string   `json:"base"`
	Head     string   `json:"head"`
	Modified int      `json:"modified"`
	Added    int      `json:"added"`
	Removed  int      `json:"removed"`
	Files    []change `json:"files"`
	LeftOut  int      `json:"left_out,omitempty"`
	// Coverage is of the search for the files.
	Coverage *coverage `json:"coverage"`
	Notes    []string  `json:"notes,omitempty"`
}

// change is a file that differs. Kind is M, A or D, as Git has it.
type change struct {
	Kind string `json:"kind"`
	Path string `json:"path"`
}

func (r *comparison) answer() *answer {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s..%s: %d modified, %d added, %d removed", r.Repo, r.Base, r.Head, r.Modified, r.Added, r.Removed)
	if r.LeftOut > 0 {
		fmt.Fprintf(&b, "; left out: %s, narrow paths to see them", plural(r.LeftOut, "file", "files"))
	}
	b.WriteByte('\n')
	for _, f := range r.Files {
		fmt.Fprintf(&b, "  %s %s\n", f.Kind, f.Path)
	}
	return &answer{text: b.String() + r.Coverage.text() + noteText(r.Notes), data: r}
}

func (c *call) compare(ctx context.Context, in compareArgs) (*answer, error) {
	if in.Base == "" || in.Head == "" || in.Base == in.Head {
		return nil, plainError("base and head: want two different branches; list_refs has them")
	}
	if err := c.checkBranches(ctx, meant(in.Repo), meant(in.Base), meant(in.Head)); err != nil {
		return nil, err
	}
	names := c.budget.names() / 2
	r := &comparison{Repo: shown(meant(in.Repo), names), Base: shown(meant(in.Base), names), Head: shown(meant(in.Head), names), Files: []change{}, Notes: c.budget.notes}
	kinds, err := c.changes(ctx, r, in)
	if err != nil {
		return nil, err
	}
	paths := make([]string, 0, len(kinds))
	for path := range kinds {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	var all []change
	for _, path := range paths {
		switch kinds[path] {
		case "M":
			r.Modified++
		case "A":
			r.Added++
		default:
			r.Removed++
		}
		all = append(all, change{kinds[path], shown(path, c.budget.names())})
	}
	show := func(n int) *answer {
		r.Files, r.LeftOut = append([]change{}, all[:n]...), len(all)-n
		return r.answer()
	}
	room := min(len(all), c.budget.bytes()/5)
	return show(most(room, func(n int) bool { return c.budget.holds(show(n)) })), nil
}

// checkBranches fails if the repo does not exist or lacks one of the branches.
func (c *call) checkBranches(ctx context.Context, repo string, branches ...string) error {
	list, err := c.api.List(ctx, repoNamed(repo))
	if err != nil {
		return fmt.Errorf("look for the branches: %w", err)
	}
	if len(list.GetRepos()) == 0 {
		return plainError(c.unknownRepo(ctx, repo))
	}
	var have []string
	for _, b := range list.GetRepos()[0].GetBranches() {
		have = append(have, b.GetName())
	}
	for _, b := range branches {
		if !slices.Contains(have, b) {
			text := fmt.Sprintf("%s has no indexed branch %s", shown(repo, 200), shown(b, 200))
			if near := c.shownNames(searchapi.Nearest(b, have)); len(near) > 0 {
				text += "; the nearest: " + strings.Join(near, ", ")
			}
			return plainError(text + "; list_refs shows all that there are")
		}
	}
	return nil
}

// changes are the kinds of the files that differ, by path. A document is a content at a
// path, with the branches that have it there, so the documents on exactly one of the two
// branches differ.
func (c *call) changes(ctx context.Context, r *comparison, in compareArgs) (map[string]string, error) {
	base, head := meant(in.Base), meant(in.Head)
	both := join("r:"+query.Quote("^"+regexp.QuoteMeta(meant(in.Repo))+"$"), "(b:"+query.Quote(base)+" or b:"+query.Quote(head)+" )", anyOf("f:", in.Paths, query.PathGlob))
	kinds := make(map[string]string)
	covered, whole, err := c.eachFile(ctx, both, func(f *searchv1.FileMatch) {
		inBase, inHead := slices.Contains(f.GetBranches(), base), slices.Contains(f.GetBranches(), head)
		path := string(f.GetPath())
		switch {
		case inBase == inHead:
		case kinds[path] != "":
			kinds[path] = "M"
		case inBase:
			kinds[path] = "D"
		default:
			kinds[path] = "A"
		}
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("list the files of both branches: %w", err)
	case !whole:
		return nil, plainError(fmt.Sprintf("the branches have more than %d files: narrow paths", maxTreeFiles))
	}
	r.Coverage = covered
	return kinds, nil
}

// maxTreeFiles bounds the files that one call reads.
const maxTreeFiles = 10 * maxCountFiles

// eachFile calls see with the files that a query finds, up to maxTreeFiles. The coverage is that of
// the first page, or of the last incomplete one. Whole is false if there are more files.
func (c *call) eachFile(ctx context.Context, query string, see func(*searchv1.FileMatch)) (covered *coverage, whole bool, err error) {
	req := &searchv1.SearchRequest{Query: join(query, "type:file"), Options: &searchv1.SearchOptions{
		SyntaxVersion: syntaxVersion, MaxFiles: maxCountFiles, MaxMatchesPerFile: 1, MaxBytes: maxCountBytes,
	}}
	for range maxTreeFiles / maxCountFiles {
		resp, err := c.api.Search(ctx, req)
		if err != nil {
			return nil, false, err
		}
		if covered == nil || !resp.GetCoverage().GetComplete() {
			covered = &coverage{Complete: true}
			covered.add(resp.GetCoverage(), c.budget)
		}
		for _, f := range resp.GetFiles() {
			see(f)
		}
		if req.PageToken = resp.GetNextPageToken(); len(req.PageToken) == 0 {
			return covered, true, nil
		}
	}
	return covered, false, nil
}
