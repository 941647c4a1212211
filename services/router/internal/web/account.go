package web

import (
	"html/template"
	"time"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// account says what an answer found, and what it covers.
type account struct {
	Matches, Files string
	// AtLeast: the counts are lower bounds.
	AtLeast  bool
	Found    bool
	Duration string
	Complete bool
	// Over is how many repos a complete answer covers; empty if unknown, as after a match of a query that rules out repos.
	Over string
	// Nowhere: no repo passes the filters of the query.
	Nowhere bool
	// AsOf is when the search began: everything published before is in the answer.
	AsOf time.Time
	// Missing says what an incomplete answer does not cover. MissingShards is how much, in words.
	MissingShards string
	Missing       []missing
	// Cut says why the page ends early; empty if it does not.
	Cut string
}

// missing is a reason, the shards that it concerns, and their repos.
type missing struct {
	Reason string
	Shards string
	Repos  []template.HTML
	Others int
}

func newAccount(resp *searchv1.SearchResponse, repos int, now time.Time) *account {
	s, c := resp.GetStatistics(), resp.GetCoverage()
	a := &account{
		Matches: plural(s.GetMatches(), "match", "matches"), Files: plural(s.GetFilesMatched(), "file", "files"),
		AtLeast: !s.GetCountsExact(), Found: s.GetFilesMatched() > 0, Complete: c.GetComplete(), Cut: cutReason(resp.GetCut()),
	}
	if d := s.GetDuration().AsDuration(); d > 0 {
		a.Duration = grouped(uint64(max(d.Milliseconds(), 1))) + " ms"
		a.AsOf = now.Add(-d).UTC()
	}
	switch e := resp.GetEmpty(); {
	case !a.Complete:
	case e != nil: // those that its filters leave
		a.Over, a.Nowhere = plural(e.GetRepos(), "repo", "repos"), e.GetRepos() == 0
	case repos > 0:
		a.Over = plural(repos, "repo", "repos")
	}
	if !a.Complete {
		a.MissingShards = searchapi.MissingShards(c)
		a.Missing = missingOf(c.GetUncovered())
	}
	return a
}

// ofSomeRepos reports whether a query may rule out repos whatever is in their files.
func ofSomeRepos(text string) (some bool) {
	q, err := searchapi.Parse(text, syntaxVersion)
	if err != nil {
		return false
	}
	query.Walk(q, func(q query.Q) bool {
		switch q.(type) {
		case *query.Repo, *query.RepoSet, *query.RepoFact, *query.Meta, *query.Branch:
			some = true
		}
		return !some
	})
	return some
}

// missingOf groups what was not covered by its reason.
func missingOf(uncovered []*searchv1.UncoveredShard) (list []missing) {
	for _, g := range searchapi.Gaps(uncovered) {
		repos, others := g.Named()
		m := missing{Reason: searchapi.ReasonText(g.Reason), Shards: plural(uint64(g.Shards), "shard", "shards") + " " + g.Outcome(), Others: others}
		for _, repo := range repos {
			m.Repos = append(m.Repos, name(cut(repo, nameBytes)))
		}
		list = append(list, m)
	}
	return list
}

// cutReason says why a page ends before it has all files that it has room for.
func cutReason(c searchv1.CutReason) string {
	switch c {
	case searchv1.CutReason_CUT_REASON_UNSPECIFIED:
		return ""
	case searchv1.CutReason_CUT_REASON_MAX_BYTES:
		return "The page ends early: its files are large."
	}
	return "The page ends early: the router holds no more for one query."
}

// empty says what was searched where nothing matches.
type empty struct {
	Repos    string
	Searched []searchedRepo
	// Others is how many repos are not named; empty if all are.
	Others string
}

type searchedRepo struct {
	Name template.HTML
	// At are branches with their commits, and how many others there are.
	At []string
}

// hint is what may be wrong, and the address of the search that was probably meant.
type hint struct{ Text, Query, URL string }

// maxSearched bounds the repos that a page names, maxSearchedBranches the branches of each.
const maxSearched, maxSearchedBranches = 5, 3

func newEmpty(e *searchv1.Empty) *empty {
	if e == nil {
		return nil
	}
	shown := &empty{Repos: plural(e.GetRepos(), "repo", "repos")}
	for _, repo := range e.GetSearched()[:min(len(e.GetSearched()), maxSearched)] {
		r := searchedRepo{Name: name(cut(repo.GetName(), nameBytes))}
		for _, b := range repo.GetBranches()[:min(len(repo.GetBranches()), maxSearchedBranches)] {
			r.At = append(r.At, plain(cut(b.GetName(), nameBytes))+"@"+short(b.GetCommit()))
		}
		if n := len(repo.GetBranches()) - len(r.At); n > 0 {
			r.At = append(r.At, "and "+plural(n, "more branch", "more branches"))
		}
		shown.Searched = append(shown.Searched, r)
	}
	if n := e.GetRepos() - uint64(len(shown.Searched)); n > 0 {
		shown.Others = grouped(n)
	}
	return shown
}

// hintsOf are the hints of an answer, or that of a query that found something else than it probably means.
func hintsOf(query string, resp *searchv1.SearchResponse) (shown []hint) {
	hints := resp.GetEmpty().GetHints()
	if misread := searchapi.Misread(query, syntaxVersion); misread != nil && resp.GetEmpty() == nil {
		hints = []*searchv1.Hint{misread}
	}
	for _, h := range hints {
		to := hint{Text: plain(cut(h.GetText(), 1000))}
		if h.GetQuery() != "" && len(h.GetQuery()) <= maxURL {
			to.Query, to.URL = plain(h.GetQuery()), searchURL(h.GetQuery())
		}
		shown = append(shown, to)
	}
	return shown
}
