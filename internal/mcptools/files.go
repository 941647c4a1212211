package mcptools

import (
	"context"
	"fmt"
	"strings"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

type globArgs struct {
	Patterns []string `json:"patterns" jsonschema:"globs of paths, any of which must match, such as **/*_test.go or go.mod; a glob without / matches in every directory"`
	Repos    []string `json:"repos,omitempty" jsonschema:"names of repos or globs of them; default all"`
	Exclude  []string `json:"exclude,omitempty" jsonschema:"globs of files and folders to leave out"`
	Branch   string   `json:"branch,omitempty" jsonschema:"only on branches with this text in their name; default all indexed branches"`
	Detail   Detail   `json:"detail,omitempty" jsonschema:"default auto: files if all fit, else directories; files is given in pages"`
	Cursor   string   `json:"cursor,omitempty" jsonschema:"cursor of an earlier answer to the same arguments"`
	Limit
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

const (
	// maxTreeEntries is the most entries of one page of a directory, and treePages the most pages that one listing reads.
	maxTreeEntries = 10_000
	treePages      = 10
)

// tree is the answer of list_tree.
type tree struct {
	Repo   string `json:"repo"`
	Branch string `json:"branch,omitempty"`
	Commit string `json:"commit"`
	Path   string `json:"path,omitempty"`
	// Files is their number below Path.
	Files   uint64   `json:"files"`
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
	repo, dir, names := meant(in.Repo), string(searchapi.TreePath([]byte(meant(in.Path)))), c.budget.names()
	t := &tree{Repo: shown(repo, names), Notes: c.budget.notes}
	if dir != "" {
		t.Path = shown(dir, names)
	}
	if in.Branch != "" {
		t.Branch = shown(in.Branch, names)
	}
	if in.Depth == 0 {
		in.Depth = 2
	}
	req := &searchv1.ListTreeRequest{Repo: repo, Path: []byte(dir), Branch: in.Branch, MaxBytes: maxCountBytes}
	for t.Depth = min(max(in.Depth, 1), 20); ; t.Depth-- {
		// More than a quarter of the budget's bytes would not fit.
		req.Depth, req.MaxEntries = uint32(t.Depth), uint32(min(c.budget.bytes()/4, maxTreeEntries))
		pages := 1
		if t.Depth == 1 {
			req.MaxEntries, pages = maxTreeEntries, treePages
		}
		entries, whole, err := c.level(ctx, t, req, pages)
		if name := c.wholeName(ctx, repo, err); name != "" {
			in.Repo = name
			return c.tree(ctx, in)
		}
		switch t.Entries = entries; {
		case err != nil:
			return nil, c.orFile(ctx, t, req, err)
		case t.Depth == 1:
			if !whole {
				t.Notes = append(t.Notes, fmt.Sprintf("only the first %d entries were read: list a directory further down", len(entries)))
			}
			show := func(n int) { t.Entries, t.LeftOut = entries[:n], len(entries)-n }
			show(most(len(entries), func(n int) bool { show(n); return c.budget.holds(t.answer()) }))
			return t.answer(), nil
		case whole && c.budget.holds(t.answer()):
			return t.answer(), nil
		}
	}
}

// orFile is the error of a listing, which says so if a file was named.
func (c *call) orFile(ctx context.Context, t *tree, req *searchv1.ListTreeRequest, err error) error {
	if searchapi.NotFoundOf(err).GetField() == "path" {
		file := &searchv1.GetFileRequest{Repo: req.Repo, Path: req.Path, Branch: req.Branch, MaxBytes: readPage}
		if _, err := c.api.GetFile(ctx, file); err == nil {
			return plainError(t.Path + " is a file: read_file reads it")
		}
	}
	return missing(err)
}

// level lists a directory to the depth of the request, in that many pages at most. It counts the files, and tells from what. Whole is
// false if there are more entries.
func (c *call) level(ctx context.Context, t *tree, req *searchv1.ListTreeRequest, pages int) (entries []string, whole bool, err error) {
	t.Files, t.Coverage, req.PageToken = 0, nil, nil
	for range pages {
		resp, err := c.api.ListTree(ctx, req)
		if err != nil {
			return nil, false, err
		}
		if t.Commit = resp.GetCommit(); t.Coverage == nil || !resp.GetCoverage().GetComplete() {
			t.Coverage = &coverage{Complete: true}
			t.Coverage.add(resp.GetCoverage(), c.budget)
		}
		for _, e := range resp.GetEntries() {
			below := strings.TrimPrefix(strings.TrimPrefix(string(e.GetPath()), string(req.Path)), "/")
			if e.GetKind() != searchv1.TreeEntry_KIND_FOLDER {
				t.Files++
				entries = append(entries, shown(below, c.budget.names()))
				continue
			}
			t.Files += e.GetFiles()
			entries = append(entries, fmt.Sprintf("%s/ (%s)", shown(strings.TrimSuffix(below, "/"), c.budget.names()), plural(e.GetFiles(), "file", "files")))
		}
		if req.PageToken = resp.GetNextPageToken(); len(req.PageToken) == 0 {
			return entries, true, nil
		}
	}
	return entries, false, nil
}
