package mcptools

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// coverage says what an answer covers. If the answer is complete and something was not
// found, it names what was searched.
type coverage struct {
	Complete bool `json:"complete"`
	// Repos is the number of repos in which nothing was found, with the branches searched.
	Repos   int          `json:"repos,omitempty"`
	AtLeast bool         `json:"repos_at_least,omitempty"`
	Commits []repoCommit `json:"commits,omitempty"`
	// Shards, NotSearched and InPart count shards.
	Shards      uint64      `json:"shards"`
	NotSearched uint64      `json:"not_searched,omitempty"`
	InPart      uint64      `json:"searched_in_part,omitempty"`
	Missing     []uncovered `json:"missing,omitempty"`

	// gaps are the shards of missing.
	gaps []*searchv1.UncoveredShard
}

type repoCommit struct {
	Repo   string `json:"repo"`
	Branch string `json:"branch"`
	Commit string `json:"commit"`
}

type uncovered struct {
	Outcome string   `json:"outcome"` // not searched, or searched in part
	Shards  int      `json:"shards"`
	Repos   []string `json:"repos,omitempty"`
	Others  int      `json:"other_repos,omitempty"`
	Reason  string   `json:"reason"`
}

// text is the other form of c.
func (c *coverage) text() string {
	if c == nil {
		return ""
	}
	if !c.Complete {
		var b strings.Builder
		fmt.Fprintf(&b, "INCOMPLETE: %s, so counts are lower bounds and a missing match proves nothing; try again.\n",
			searchapi.MissingShards(&searchv1.Coverage{Requested: c.Shards, NotReached: c.NotSearched + c.InPart, InPart: c.InPart}))
		for _, m := range c.Missing {
			fmt.Fprintf(&b, "  %s: %s of %s", m.Outcome, plural(uint64(m.Shards), "shard", "shards"), strings.Join(m.Repos, ", "))
			if m.Others > 0 {
				fmt.Fprintf(&b, " and %s", plural(uint64(m.Others), "other repo", "other repos"))
			}
			fmt.Fprintf(&b, ": %s\n", m.Reason)
		}
		return b.String()
	}
	if c.Repos == 0 {
		return "Complete.\n"
	}
	var b strings.Builder
	more := ""
	if c.AtLeast {
		more = "more than "
	}
	fmt.Fprintf(&b, "Complete over %s%s", more, plural(c.Repos, "repo", "repos"))
	for i, r := range c.Commits {
		separator := ", "
		if i == 0 {
			separator = " at these commits: "
		}
		fmt.Fprintf(&b, "%s%s@%s (%s)", separator, r.Repo, short(r.Commit), r.Branch)
	}
	if left := c.Repos - len(c.Commits); left > 0 && len(c.Commits) > 0 {
		b.WriteString(" and others")
	}
	b.WriteString(".\n")
	return b.String()
}

// account makes all of the answer except its results: the coverage, and notes about
// arguments that are probably mistakes. It fails if none of the named repos exists.
func (c *call) account(ctx context.Context, scope Scope, list []*finding) (*result, error) {
	tail := &result{Coverage: &coverage{Complete: true}, Notes: c.budget.notes}
	seen := make(map[string]bool)
	var empty []*finding
	for _, f := range list {
		if f.err != nil {
			continue
		}
		tail.Coverage.add(f.resp.GetCoverage(), c.budget)
		for _, file := range f.resp.GetFiles() {
			seen[strings.ToLower(file.GetRepo())] = true
		}
		if f.resp.GetStatistics().GetFilesMatched() == 0 {
			empty = append(empty, f)
		}
	}
	var group errgroup.Group
	var unknown, outside, unmatched, cased []string
	group.Go(func() (err error) { unknown, err = c.unknownRepos(ctx, scope, seen); return err })
	if len(empty) > 0 {
		group.Go(func() (err error) { outside, err = c.addRepos(ctx, scope, tail.Coverage, empty[0].resp); return err })
		group.Go(func() (err error) { unmatched, err = c.unmatched(ctx, scope); return err })
		group.Go(func() error { cased = c.otherCase(ctx, empty); return nil })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if len(unknown) > 0 && len(unknown) == len(scope.Repos) {
		return nil, plainError(strings.Join(unknown, "\n"))
	}
	if len(unmatched) > 0 {
		cased = nil // the patterns are not to blame
	}
	tail.Notes = slices.Concat(tail.Notes, outside, unknown, unmatched, cased)
	for _, f := range empty {
		tail.Notes = append(tail.Notes, f.hints(len(outside)+len(unmatched) > 0)...)
	}
	tail.trim(c.budget.tail())
	return tail, nil
}

// add adds the coverage of one search.
func (c *coverage) add(one *searchv1.Coverage, b budget) {
	c.Complete = c.Complete && one.GetComplete()
	c.Shards += one.GetRequested()
	c.NotSearched += one.GetFailed() + one.GetNotReached() - one.GetInPart()
	c.InPart += one.GetInPart()
	c.gaps = append(c.gaps, one.GetUncovered()...)
	c.Missing = nil
	for _, g := range searchapi.Gaps(c.gaps) {
		m := uncovered{Outcome: g.Outcome(), Shards: g.Shards, Reason: searchapi.ReasonText(g.Reason)}
		repos, others := g.Named()
		for _, repo := range repos {
			m.Repos = append(m.Repos, shown(repo, b.names()))
		}
		m.Others = others
		c.Missing = append(c.Missing, m)
	}
}

// namedRepos bounds the repos that an answer without matches names: a model pays for each, and of many their number says enough.
const namedRepos = 20

// addRepos adds the repos that were searched, if they are few, with their commits, if the list is of the
// same state of the index as the answer. It returns a note if globs match none.
func (c *call) addRepos(ctx context.Context, scope Scope, cov *coverage, resp *searchv1.SearchResponse) (notes []string, err error) {
	if !resp.GetCoverage().GetComplete() {
		return nil, nil
	}
	list, err := c.api.List(ctx, &searchv1.ListRequest{
		Query: scope.repos(), SyntaxVersion: syntaxVersion, MaxBytes: 1 << 20,
		Consistency: &searchv1.Consistency{Level: &searchv1.Consistency_AtLeast{AtLeast: resp.GetRevisionToken()}},
	})
	if err != nil {
		return nil, fmt.Errorf("list the repos that were searched: %w", err)
	}
	if len(list.GetRepos()) == 0 && len(scope.exactRepos()) < len(scope.Repos) {
		notes = []string{"no repo is in scope" + globNote}
	}
	cov.Repos, cov.AtLeast = len(list.GetRepos()), len(list.GetNextPageToken()) > 0
	if e := resp.GetEmpty(); e != nil && e.GetRepos() < uint64(cov.Repos) { // the query rules out some of its scope
		cov.Repos, cov.AtLeast = int(e.GetRepos()), false
		return notes, nil
	}
	if !bytes.Equal(list.GetRevisionToken(), resp.GetRevisionToken()) {
		return notes, nil // a repo may have been indexed again in between
	}
	if len(list.GetRepos()) > namedRepos {
		return notes, nil
	}
	for _, repo := range list.GetRepos() {
		for _, b := range repo.GetBranches() {
			cov.Commits = append(cov.Commits, repoCommit{shown(repo.GetName(), c.budget.names()), shown(b.GetName(), c.budget.names()), b.GetCommit()})
		}
	}
	return notes, nil
}

// trim leaves out notes and names until r takes at most limit bytes.
func (r *result) trim(limit int) {
	for i, n := range r.Notes {
		r.Notes[i] = cut(n, limit/3)
	}
	all, missing, notes := r.Coverage.Commits, r.Coverage.Missing, r.Notes
	fits := func(commits, missed, noted int) bool {
		r.Coverage.Commits, r.Coverage.Missing, r.Notes = all[:commits], missing[:missed], notes[:noted]
		return tailSize(r) <= limit
	}
	noted := most(len(notes), func(n int) bool { return fits(0, 0, n) })
	missed := most(len(missing), func(n int) bool { return fits(0, n, noted) })
	fits(most(len(all), func(n int) bool { return fits(n, missed, noted) }), missed, noted)
}

// hints suggests what may be wrong with the caller's own text if it finds nothing. OfScope: those that replace no term may be about the scope.
func (f *finding) hints(ofScope bool) (notes []string) {
	for _, h := range f.resp.GetEmpty().GetHints() {
		instead := h.GetQuery()
		switch {
		case f.name != "":
			instead = "" // the caller writes names
		case instead == "":
			if ofScope {
				continue // the scope has notes of its own
			}
		case f.query != f.text && f.pattern == "":
			own, anyCase := strings.CutSuffix(instead, " case:no")
			own, same := strings.CutSuffix(own, strings.TrimPrefix(f.query, "("+f.text))
			if !same || anyCase && (f.paths || f.text == strings.ToLower(f.text)) {
				continue // it is about a term that the caller did not write
			}
			if instead = strings.TrimPrefix(own, "("); anyCase {
				instead += " case:no"
			}
		case f.query != f.text:
			term, same := strings.CutSuffix(instead, strings.TrimPrefix(f.query, f.pattern))
			terms := query.Terms(term, syntaxVersion)
			if !same || len(terms) != 1 {
				continue // it is about a term that the caller did not write
			}
			if instead = terms[0].Value; !f.literalHint {
				instead = "" // it is an expression, and the caller writes plain texts
			}
		}
		note := cut(h.GetText(), 500)
		if instead != "" {
			note += "; try " + shown(instead, 300)
		}
		notes = append(notes, note)
	}
	return notes
}
