package mcptools

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/query"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

type globArgs struct {
	Patterns []string `json:"patterns" jsonschema:"globs of paths, any of which must match, such as **/*_test.go or go.mod; a glob without / matches in every directory"`
	Repos    []string `json:"repos,omitempty" jsonschema:"names of repos or globs of them; default all"`
	Exclude  []string `json:"exclude,omitempty" jsonschema:"globs of paths to leave out"`
	Branch   string   `json:"branch,omitempty" jsonschema:"only on branches with this text in their name; default all indexed branches"`
	Detail   Detail   `json:"detail,omitempty" jsonschema:"default auto: files if all fit, else directories; files is given in pages"`
	Cursor   string   `json:"cursor,omitempty" jsonschema:"cursor of an earlier answer to the same arguments"`
	Limit
}

func globTool(s *Server) {
	add(s, "glob", "Find files by path", "Find files by globs of their paths, over all repos or some. The count is exact.", (*call).glob)
}

func (c *call) glob(ctx context.Context, in globArgs) (*answer, error) {
	if len(in.Patterns) == 0 {
		return nil, plainError("patterns: none given, want globs such as **/*.go")
	}
	rungs, err := rungsOf(in.Detail, []Detail{Files, Directories})
	if err != nil {
		return nil, err
	}
	own := in
	own.MaxTokens, own.Cursor = 0, ""
	from, err := decodeCursor(in.Cursor, markOf("glob", own))
	if err != nil {
		return nil, err
	}
	scope := Scope{Repos: in.Repos, Paths: in.Patterns, Exclude: in.Exclude, Branch: in.Branch}
	f := find{query: join(scope.query(), "type:file"), text: strings.Join(in.Patterns, " "), ladder: rungs, fixed: len(rungs) == 1, paths: true}
	return c.search(ctx, scope, []find{f}, from, in.Cursor != "")
}

type treeArgs struct {
	Repo   string `json:"repo" jsonschema:"name of one repo"`
	Path   string `json:"path,omitempty" jsonschema:"a directory; default the root"`
	Branch string `json:"branch,omitempty" jsonschema:"a branch by its whole name; default HEAD"`
	Depth  int    `json:"depth,omitempty" jsonschema:"levels shown, 1 to 20; default 2; fewer if the answer would not fit"`
	Limit
}

func treeTool(s *Server) {
	add(s, "list_tree", "List a directory", "List files and directories of a repo, to some depth. A directory that is not opened has its number of files.", (*call).tree)
}

// maxTreeFiles bounds the files that one listing reads.
const maxTreeFiles = 10 * maxCountFiles

// tree is the answer of list_tree.
type tree struct {
	Repo   string `json:"repo"`
	Branch string `json:"branch,omitempty"`
	Commit string `json:"commit"`
	Path   string `json:"path,omitempty"`
	// Files is their number below Path.
	Files   int      `json:"files"`
	Depth   int      `json:"depth"`
	Entries []string `json:"entries"`
	// LeftOut counts the entries of this depth that did not fit.
	LeftOut  int       `json:"left_out,omitempty"`
	Coverage *coverage `json:"coverage"`
	Notes    []string  `json:"notes,omitempty"`
}

func (t *tree) answer() *answer {
	var b strings.Builder
	fmt.Fprintf(&b, "%s@%s", t.Repo, short(t.Commit))
	if t.Branch != "" {
		fmt.Fprintf(&b, " (%s)", t.Branch)
	}
	fmt.Fprintf(&b, " /%s: %s, to depth %d", t.Path, plural(t.Files, "file", "files"), t.Depth)
	if t.LeftOut > 0 {
		fmt.Fprintf(&b, "; left out: %s, list their parents by path or use glob", plural(t.LeftOut, "entry", "entries"))
	}
	b.WriteByte('\n')
	for _, e := range t.Entries {
		b.WriteString("  " + e + "\n")
	}
	return &answer{text: b.String() + t.Coverage.text() + noteText(t.Notes), data: t}
}

func (c *call) tree(ctx context.Context, in treeArgs) (*answer, error) {
	repo, dir := meant(in.Repo), strings.Trim(meant(in.Path), "/")
	t := &tree{Path: shown(dir, c.budget.names()), Coverage: &coverage{Complete: true}}
	if dir == "" {
		t.Path = ""
	}
	if c.budget.note != "" {
		t.Notes = append(t.Notes, c.budget.note)
	}
	scope := Scope{Repos: []string{in.Repo}, Branch: in.Branch}
	if in.Branch == "" {
		scope.Branch = "HEAD"
	}
	prefix := ""
	if dir != "" {
		prefix = "f:" + query.Quote("^"+regexp.QuoteMeta(dir)+"/")
	}
	paths, err := c.pathsOf(ctx, t, join("r:"+query.Quote("^"+regexp.QuoteMeta(repo)+"$"), prefix, "b:"+query.Quote(scope.Branch)), in.Branch, dir)
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 && t.Coverage.Complete {
		return nil, c.noTree(ctx, repo, dir, scope)
	}
	t.Files = len(paths)
	c.fitTree(t, paths, in.Depth)
	return t.answer(), nil
}

// pathsOf are the paths below dir, relative to it and sorted.
func (c *call) pathsOf(ctx context.Context, t *tree, query, branch, dir string) (paths []string, err error) {
	var whole bool
	t.Coverage, whole, err = c.eachFile(ctx, query, func(f *searchv1.FileMatch) {
		if branch != "" && !slices.Contains(f.GetBranches(), branch) {
			return
		}
		t.Repo, t.Commit, t.Branch = shown(f.GetRepo(), c.budget.names()), f.GetCommit(), ""
		if branch != "" {
			t.Branch = shown(branch, c.budget.names())
		}
		paths = append(paths, strings.TrimPrefix(strings.TrimPrefix(string(f.GetPath()), dir), "/"))
	})
	if err != nil {
		return nil, fmt.Errorf("list the tree: %w", err)
	}
	if !whole {
		t.Notes = append(t.Notes, fmt.Sprintf("only the first %d files were read: list a directory further down", maxTreeFiles))
	}
	slices.Sort(paths)
	return paths, nil
}

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

// noTree is an error that says why a listing is empty.
func (c *call) noTree(ctx context.Context, repo, dir string, scope Scope) error {
	notes, err := c.unknownRepos(ctx, Scope{Repos: []string{repo}}, nil)
	if err != nil {
		return err
	}
	if len(notes) > 0 {
		return plainError(notes[0])
	}
	text := fmt.Sprintf("%s has no directory %s on branch %s", shown(repo, 200), shown(dir, 200), shown(scope.Branch, 200))
	if names := c.nearestPaths(ctx, scope, dir, true); len(names) > 0 {
		text += "; the nearest paths: " + strings.Join(names, ", ")
	}
	return plainError(text + "; list_tree without path shows the root")
}

// fitTree shows as many of the requested levels as fit; if not even the first fits, as many of
// its entries as fit.
func (c *call) fitTree(t *tree, paths []string, depth int) {
	if depth == 0 {
		depth = 2
	}
	depth = min(max(depth, 1), 20)
	fits := func() bool { return c.budget.holds(t.answer()) }
	var entries []string
	for t.Depth = depth; t.Depth >= 1; t.Depth-- {
		entries = entriesOf(paths, t.Depth, c.budget.names())
		if t.Entries = entries; len(entries)*4 < c.budget.bytes() && fits() {
			return
		}
	}
	t.Depth = 1
	show := func(n int) { t.Entries, t.LeftOut = entries[:n], len(entries)-n }
	show(most(len(entries), func(n int) bool { show(n); return fits() }))
}

// entriesOf are the entries of sorted paths to some depth: files, and the deepest
// directories with the number of files below them.
func entriesOf(paths []string, depth, names int) (entries []string) {
	below := 0
	for i, p := range paths {
		if strings.Count(p, "/") < depth {
			entries = append(entries, shown(p, names))
			continue
		}
		below++
		dir := dirOf(p, depth)
		if i+1 == len(paths) || !strings.HasPrefix(paths[i+1], dir+"/") {
			entries = append(entries, fmt.Sprintf("%s/ (%s)", shown(dir, names), plural(below, "file", "files")))
			below = 0
		}
	}
	return entries
}
