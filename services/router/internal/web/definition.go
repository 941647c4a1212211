package web

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	indexquery "github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Parameters of the definitions of a name, from a place in a file.
const (
	nameParam   = "name"
	atParam     = "at"
	lineParam   = "line"
	columnParam = "column"
)

// definition goes to the definition that a name means at a place, or shows those that it may mean, the likeliest first.
func (p *Pages) definition(ctx context.Context, r *http.Request) reply {
	name := param(r, nameParam)
	at, err := parsePlace(param(r, atParam))
	if err != nil || name == "" {
		return p.failed(r, &problem{Status: http.StatusBadRequest, Text: "This address names no place. Choose the name in its file again."})
	}
	answers := p.cfg.Open()
	l, problem := locate(ctx, answers, at)
	if problem != nil {
		return p.failed(r, problem)
	}
	number := func(name string) uint32 {
		n, _ := strconv.ParseUint(param(r, name), 10, 32) // without one the whole file is the place
		return uint32(n)
	}
	resp, err := answers.Definitions(ctx, &searchv1.DefinitionsRequest{
		Name: name, From: &searchv1.Place{Repo: l.repo, Path: []byte(l.path), Branch: l.branch, Line: number(lineParam), Column: number(columnParam)},
		Options: &searchv1.SearchOptions{MaxFiles: pageFiles, ContextLines: contextLines, MaxBytes: answerBytes},
	})
	if err != nil {
		return p.failed(r, problemOf("", err))
	}
	found := &searchv1.SearchResponse{Files: searchapi.FilesOfRepos(resp.GetRepos()), Statistics: resp.GetStatistics(), Coverage: resp.GetCoverage(), Empty: resp.GetEmpty()}
	if resp.GetLikely() {
		first := found.Files[0]
		to := place{repo: first.GetRepo(), path: string(first.GetPath())}
		if b := first.GetBranches(); to.repo == l.repo && slices.Contains(b, l.branch) {
			to.rev = at.rev
		} else if len(b) > 0 {
			to.rev = b[0]
		}
		return reply{redirect: to.line(int(first.GetChunks()[0].GetRanges()[0].GetStart().GetLineNumber()))}
	}
	query := "sym:" + quote("^"+indexquery.Literal(name)+"$") + " case:yes"
	page := results{frame: p.frame(r, "Definitions of "+plain(cut(name, nameBytes))+" · Trawl", query), Asked: true, Empty: newEmpty(found.GetEmpty())}
	repos, _ := answers.Repos(ctx)
	page.Account = newAccount(found, repos, time.Now())
	page.fill(ctx, p, found, false)
	return page.reply()
}
