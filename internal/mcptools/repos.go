package mcptools

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/query"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

type reposArgs struct {
	Pattern string `json:"pattern,omitempty" jsonschema:"text in the name, or a glob of whole names with *; default all"`
	Cursor  string `json:"cursor,omitempty" jsonschema:"cursor of an earlier answer to the same arguments"`
	Limit
}

// repos is the answer of list_repos and list_refs.
type repos struct {
	Repos    []repoInfo `json:"repos"`
	Cursor   string     `json:"cursor,omitempty"`
	Coverage *coverage  `json:"coverage"`
	Notes    []string   `json:"notes,omitempty"`
}

type repoInfo struct {
	Name      string       `json:"name"`
	Files     uint64       `json:"files"`
	Languages []string     `json:"languages,omitempty"`
	Branches  []repoBranch `json:"branches,omitempty"`
	// More is how many branches are not shown.
	More int    `json:"more_branches,omitempty"`
	URL  string `json:"url,omitempty"`
}

type repoBranch struct {
	Name   string `json:"name"`
	Commit string `json:"commit"`
}

func (r *repos) answer() *answer {
	var b strings.Builder
	b.WriteString(plural(len(r.Repos), "repo", "repos"))
	if r.Cursor != "" {
		fmt.Fprintf(&b, "; for more, the same arguments with cursor %q", r.Cursor)
	}
	b.WriteByte('\n')
	for _, repo := range r.Repos {
		fmt.Fprintf(&b, "  %s: %s", repo.Name, plural(repo.Files, "file", "files"))
		if len(repo.Languages) > 0 {
			fmt.Fprintf(&b, ", %s", strings.Join(repo.Languages, ", "))
		}
		for i, branch := range repo.Branches {
			separator := ", "
			if i == 0 {
				separator = "; "
			}
			fmt.Fprintf(&b, "%s%s@%s", separator, branch.Name, short(branch.Commit))
		}
		if repo.More > 0 {
			fmt.Fprintf(&b, " and %s", plural(repo.More, "other branch", "other branches"))
		}
		b.WriteByte('\n')
	}
	return &answer{text: b.String() + r.Coverage.text() + noteText(r.Notes), data: r}
}

func (c *call) repos(ctx context.Context, in reposArgs) (*answer, error) {
	text := ""
	switch {
	case strings.ContainsAny(in.Pattern, "*?"):
		text = anyOf("r:", []string{in.Pattern}, query.RepoGlob)
	case in.Pattern != "":
		text = "r:" + query.Quote(`(?i:`+regexp.QuoteMeta(meant(in.Pattern))+`)`)
	}
	from, err := decodeCursor(in.Cursor, markOf("list_repos", in.Pattern))
	if err != nil {
		return nil, err
	}
	list, err := c.api.List(ctx, &searchv1.ListRequest{Query: text, SyntaxVersion: syntaxVersion, PageToken: from.Page, MaxBytes: 1 << 20})
	if err != nil {
		return nil, fmt.Errorf("list repos: %w", err)
	}
	entries := list.GetRepos()
	for len(entries) > 0 && entries[0].GetName() <= from.Last {
		entries = entries[1:]
	}
	if len(entries) == 0 && in.Pattern != "" && in.Cursor == "" {
		if strings.ContainsAny(in.Pattern, "*?") {
			return nil, plainError("no repo that you may see has a name that matches " + shown(in.Pattern, 200) + globNote)
		}
		return nil, plainError(c.unknownRepo(ctx, meant(in.Pattern)))
	}
	return c.fitRepos(list, entries, from), nil
}

// fitRepos shows as many entries as fit.
func (c *call) fitRepos(list *searchv1.ListResponse, entries []*searchv1.RepoEntry, from cursor) *answer {
	var infos []repoInfo
	for _, e := range entries[:min(len(entries), c.budget.bytes()/20)] {
		infos = append(infos, c.describe(e, 1))
	}
	build := func(n int) *answer {
		r := c.reposHead(list)
		r.Repos = append(r.Repos, infos[:n]...)
		switch {
		case n < len(entries) && n > 0:
			r.Cursor = cursor{Mark: from.Mark, Page: from.Page, Last: entries[n-1].GetName()}.encode()
		case n == len(entries) && len(list.GetNextPageToken()) > 0:
			r.Cursor = cursor{Mark: from.Mark, Page: list.GetNextPageToken()}.encode()
		}
		return r.answer()
	}
	return build(most(len(infos), func(n int) bool { return c.budget.holds(build(n)) }))
}

// reposHead is the answer without repos.
func (c *call) reposHead(list *searchv1.ListResponse) *repos {
	r := &repos{Coverage: &coverage{Complete: true}, Repos: []repoInfo{}, Notes: c.budget.notes}
	r.Coverage.add(list.GetCoverage(), c.budget)
	return r
}

func (c *call) describe(e *searchv1.RepoEntry, branches int) repoInfo {
	names := c.budget.names() / 2
	info := repoInfo{Name: shown(e.GetName(), names), Files: e.GetDocuments()}
	languages := slices.SortedFunc(slices.Values(e.GetLanguages()), func(a, b *searchv1.LanguageShare) int { return cmp.Compare(b.GetBytes(), a.GetBytes()) })
	for _, l := range languages[:min(len(languages), 3)] {
		if l.GetLanguage() != "" {
			info.Languages = append(info.Languages, shown(l.GetLanguage(), 40))
		}
	}
	for _, b := range e.GetBranches()[:min(len(e.GetBranches()), branches)] {
		info.Branches = append(info.Branches, repoBranch{shown(b.GetName(), names/2), b.GetCommit()})
	}
	info.More = len(e.GetBranches()) - len(info.Branches)
	return info
}

type refsArgs struct {
	Repo string `json:"repo" jsonschema:"name of one repo"`
	Limit
}

func (c *call) refs(ctx context.Context, in refsArgs) (*answer, error) {
	repo := meant(in.Repo)
	list, err := c.api.List(ctx, repoNamed(repo))
	if err != nil {
		return nil, fmt.Errorf("list branches: %w", err)
	}
	if len(list.GetRepos()) == 0 {
		return nil, plainError(c.unknownRepo(ctx, repo))
	}
	entry := list.GetRepos()[0]
	all := c.describe(entry, len(entry.GetBranches()))
	build := func(n int) *answer {
		r, info := c.reposHead(list), all
		info.Branches, info.More = all.Branches[:n], len(all.Branches)-n
		r.Repos = []repoInfo{info}
		return r.answer()
	}
	return build(most(len(all.Branches), func(n int) bool { return c.budget.holds(build(n)) })), nil
}

// repoNamed is a request for one repo.
func repoNamed(name string) *searchv1.ListRequest {
	return &searchv1.ListRequest{Query: "r:" + query.Quote("^"+regexp.QuoteMeta(name)+"$"), SyntaxVersion: syntaxVersion, MaxBytes: 1 << 20}
}
