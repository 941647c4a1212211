package web

import (
	"context"
	"html/template"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// entry is a file or a folder in a list.
type entry struct {
	Name   template.HTML
	URL    string
	Folder bool
	// Here: it is what the page shows.
	Here bool
}

// listing is what stands in a folder.
type listing struct {
	Entries []entry
	// Partial says why entries may be missing; empty if none are.
	Partial string
	// files is the number of files in the folder and below it; unknown if it is partial.
	files uint64
	// readme is the path of the file that says what is in the folder; empty if there is none.
	readme string
}

// folderPage is the page of a folder.
type folderPage struct {
	head
	listing

	// Up is the address of the folder above; empty for the root.
	Up string
	// Find is the text in the path finder; then the entries are what it finds.
	Find    string
	FindURL string
	Facts   []string
	Readme  *readme
}

func (p *Pages) folder(ctx context.Context, r *http.Request, answers Answers, l located) reply {
	page := folderPage{head: p.head(r, l), Find: param(r, findParam), FindURL: l.at("").address() + searchapi.PageSeparator}
	var wrong *problem
	if page.Find != "" {
		page.listing, wrong = find(ctx, answers, l, page.Find)
	} else {
		page.listing, wrong = list(ctx, answers, l, l.path)
	}
	if wrong != nil {
		return p.failed(r, wrong)
	}
	if l.path != "" {
		page.Up = l.at(folder(l.path)).address()
	} else {
		page.Facts = facts(l.entry, time.Now())
		if n := len(l.entry.GetBranches()); n > 1 { // the facts are of all of them
			page.Facts[0] += " on " + plural(n, "branch", "branches")
			if page.Find == "" && page.Partial == "" {
				page.Facts = slices.Insert(page.Facts, 0, plural(page.files, "file", "files")+" on this branch")
			}
		}
	}
	page.Readme = l.says(ctx, answers, page.readme)
	return reply{status: http.StatusOK, template: "folder", data: page}
}

const (
	// maxEntries bounds the files and the folders that are shown of a folder, and treeEntries both together as they are read.
	maxEntries  = 1000
	treeEntries = 10_000
	// folderTime bounds the time for a folder.
	folderTime = 2 * time.Second
	// findFiles is how many files the path finder ranks.
	findFiles = 1000
	// maxFound bounds what the path finder shows.
	maxFound = 100
	// maxFindRunes bounds its text.
	maxFindRunes = 100
	findTime     = 2 * time.Second
)

// list lists a folder, folders first.
func list(ctx context.Context, answers Answers, l located, dir string) (of listing, _ *problem) {
	ctx, cancel := context.WithTimeout(ctx, folderTime)
	defer cancel()
	tree, err := answers.ListTree(ctx, &searchv1.ListTreeRequest{
		Repo: l.repo, Path: []byte(dir), Branch: l.branch, MaxEntries: treeEntries, MaxBytes: answerBytes,
	})
	if err != nil {
		return of, l.missing(err, "There is no folder "+plain(cut(dir, nameBytes))+" at this revision.")
	}
	if len(tree.GetNextPageToken()) > 0 || !tree.GetCoverage().GetComplete() {
		of.Partial = "There may be more files and folders."
	}
	var files []entry
	for _, e := range tree.GetEntries() {
		path, to := string(e.GetPath()), &files
		of.files += max(e.GetFiles(), 1) // a file has none
		if e.GetKind() == searchv1.TreeEntry_KIND_FOLDER {
			to = &of.Entries
		} else if isReadme().MatchString(path[len(dir):]) && !isMarkdown().MatchString(of.readme) {
			of.readme = path
		}
		if len(*to) == maxEntries {
			of.Partial = "There are more files or folders."
			continue
		}
		*to = append(*to, l.entryAt(path, dir))
	}
	of.Entries = append(of.Entries, files...)
	return of, nil
}

// paths are the paths that a query finds, sorted. More reports whether there are others.
func paths(ctx context.Context, answers Answers, l located, query string) (found []string, more bool, _ *problem) {
	resp, err := answers.Search(ctx, &searchv1.SearchRequest{Query: l.here() + " type:file case:yes " + query, Options: &searchv1.SearchOptions{
		MaxFiles: findFiles, MaxMatchesPerFile: 1, MaxBytes: answerBytes, SyntaxVersion: syntaxVersion,
	}})
	if err != nil {
		return nil, false, problemOf("", err)
	}
	for _, f := range resp.GetFiles() {
		if l.head || slices.Contains(f.GetBranches(), l.branch) {
			found = append(found, string(f.GetPath()))
		}
	}
	slices.Sort(found)
	return found, !resp.GetCoverage().GetComplete() || len(resp.GetNextPageToken()) > 0, nil
}

// find is what the path finder finds: paths that have all characters of a text in its order,
// the shortest first.
func find(ctx context.Context, answers Answers, l located, text string) (of listing, _ *problem) {
	ctx, cancel := context.WithTimeout(ctx, findTime)
	defer cancel()
	var loose []string
	for _, r := range strings.ToValidUTF8(text, "") {
		if r != ' ' && len(loose) < maxFindRunes {
			loose = append(loose, regexp.QuoteMeta(string(r)))
		}
	}
	if len(loose) == 0 {
		return of, nil
	}
	found, more, problem := paths(ctx, answers, l, "f:"+quote("(?i:"+strings.Join(loose, "[^\\n]*?")+")"))
	if problem != nil {
		return of, problem
	}
	slices.SortStableFunc(found, func(a, b string) int { return rankPath(text, a) - rankPath(text, b) })
	if more || len(found) > maxFound {
		of.Partial = "There are more: type more of the path."
	}
	for _, path := range found[:min(len(found), maxFound)] {
		of.Entries = append(of.Entries, l.entryAt(path, ""))
	}
	return of, nil
}

// rankPath orders what the path finder finds: the text as it is in the file's name, then in the
// path, then the others; each shortest first.
func rankPath(text, path string) int {
	text, lower := strings.ToLower(text), strings.ToLower(path)
	switch {
	case strings.Contains(strings.TrimPrefix(lower, folder(lower)), text):
		return len(path)
	case strings.Contains(lower, text):
		return len(path) + maxPath
	}
	return len(path) + 2*maxPath
}

// entryAt is the entry of a path as it is shown in a folder.
func (l located) entryAt(path, dir string) entry {
	e := entry{Name: name(cutFront(path[len(dir):], nameBytes)), Folder: strings.HasSuffix(path, "/"), Here: path == l.path}
	if to := l.at(path).address(); len(to) <= maxURL {
		e.URL = to
	}
	return e
}
