package web

import (
	"cmp"
	"context"
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/searchapi"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// reposBytes bounds the entries of one page of repos.
const reposBytes = 64 << 10

// maxBehind bounds the repos that are listed because they are behind.
const maxBehind = 50

// reposPage is the list of repos.
type reposPage struct {
	frame

	Problem *problem
	// Filter is the text in the names that are listed.
	Filter  string
	Account *account
	Repos   []repo
	Behind  []behind
	Next    string
}

// repo is a repo that is indexed.
type repo struct {
	Name      template.HTML
	URL       string
	Branch    template.HTML
	Commit    string
	Others    int
	Facts     []string
	Published time.Time
	Age       string
}

// behind is a repo whose newest state is not indexed yet.
type behind struct {
	Name   template.HTML
	State  string
	Failed bool
	Reason string
	For    string
}

func (p *Pages) repos(ctx context.Context, r *http.Request) reply {
	filter, token := param(r, queryParam), param(r, pageParam)
	page := reposPage{frame: p.frame(r, "Repos · Trawl", ""), Filter: filter}
	req := &searchv1.ListRequest{SyntaxVersion: syntaxVersion, MaxBytes: reposBytes}
	if filter != "" {
		req.Query = "r:" + quote("(?i:"+regexp.QuoteMeta(filter)+")")
	}
	var err error
	if req.PageToken, err = base64.RawURLEncoding.DecodeString(token); err != nil || len(token) > maxPath {
		page.Problem = &problem{Status: http.StatusBadRequest, Text: "This page of repos has no valid address."}
		return page.Problem.reply("repos", page)
	}
	answers, now := p.cfg.Open(), time.Now()
	list, err := answers.List(ctx, req)
	if err != nil {
		page.Problem = problemOf(req.Query, err)
		return page.Problem.reply("repos", page)
	}
	page.Account = newAccount(&searchv1.SearchResponse{Coverage: list.GetCoverage()}, 0, now)
	for _, e := range list.GetRepos() {
		page.Repos = append(page.Repos, newRepo(e, now))
	}
	if next := list.GetNextPageToken(); len(next) > 0 {
		page.Next = "/repos?" + url.Values{queryParam: {filter}, pageParam: {base64.RawURLEncoding.EncodeToString(next)}}.Encode()
	}
	if filter == "" && token == "" {
		page.Behind = p.behind(ctx, now)
	}
	return page.Problem.reply("repos", page)
}

// newRepo is a repo as it is listed.
func newRepo(e *searchv1.RepoEntry, now time.Time) repo {
	r := repo{Name: name(cut(e.GetName(), nameBytes)), URL: place{repo: e.GetName()}.address(), Facts: facts(e, now)}
	if len(r.URL) > maxURL {
		r.URL = ""
	}
	if branches := e.GetBranches(); len(branches) > 0 {
		r.Branch, r.Commit, r.Others = name(cut(branches[0].GetName(), nameBytes)), short(branches[0].GetCommit()), len(branches)-1
	}
	if at := e.GetPublishedAt(); at != nil {
		r.Published, r.Age = at.AsTime(), age(now.Sub(at.AsTime()))
	}
	return r
}

// facts are facts of a repo in words.
func facts(e *searchv1.RepoEntry, now time.Time) []string {
	list := []string{plural(e.GetDocuments(), "file", "files"), searchapi.Bytes(e.GetContentBytes())}
	languages := slices.SortedFunc(slices.Values(e.GetLanguages()), func(a, b *searchv1.LanguageShare) int { return cmp.Compare(b.GetBytes(), a.GetBytes()) })
	var names []string
	for _, l := range languages[:min(len(languages), 3)] {
		if l.GetLanguage() != "" {
			names = append(names, plain(cut(l.GetLanguage(), 40)))
		}
	}
	if len(names) > 0 {
		list = append(list, strings.Join(names, ", "))
	}
	if n := e.GetSkippedDocuments(); n > 0 {
		list = append(list, grouped(n)+" without searchable content")
	}
	if at := e.GetPublishedAt(); at != nil {
		list = append(list, "indexed "+age(now.Sub(at.AsTime())))
	}
	return list
}

// behind are the repos whose newest state is not indexed, for callers who may know. Without
// them the page is as good.
func (p *Pages) behind(ctx context.Context, now time.Time) (list []behind) {
	caller, err := access.From(ctx)
	if p.cfg.Statuses == nil || err != nil || !caller.May(access.ScopeIngest) {
		return nil
	}
	resp, err := p.cfg.Statuses.ListStaleRepos(ctx, &ingestv1.ListStaleReposRequest{PageSize: maxBehind})
	if err != nil {
		p.cfg.Log.DebugContext(ctx, "list the repos that are behind", "error", err)
		return nil
	}
	for _, s := range resp.GetRepos() {
		b := behind{
			Name: name(cut(s.GetName(), nameBytes)), State: searchapi.State(s.GetState()), Reason: plain(cut(s.GetReason(), 500)),
			Failed: s.GetState() == ingestv1.State_STATE_FAILED,
		}
		if since := s.GetFreshness().GetBehindSince(); since != nil {
			b.For = timeSpan(now.Sub(since.AsTime()))
		}
		list = append(list, b)
	}
	return list
}

// age says how long ago something was.
func age(d time.Duration) string {
	if d < time.Minute {
		return "just now"
	}
	return timeSpan(d) + " ago"
}

// timeSpan is a time span in words.
func timeSpan(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "less than a minute"
	case d < time.Hour:
		return plural(int(d.Minutes()), "minute", "minutes")
	case d < 48*time.Hour:
		return plural(int(d.Hours()), "hour", "hours")
	}
	return plural(int(d.Hours()/24), "day", "days")
}
