package web

import (
	"cmp"
	"context"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	indexquery "github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/lazyregexp"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// findParam is the text in the path finder.
const findParam = "find"

// located is a place whose repo and revision are indexed.
type located struct {
	place

	entry *searchv1.RepoEntry
	// branch and commit that the revision stands for. Head: it is the default branch.
	branch, commit string
	head           bool
}

// browse answers everything below /r/.
func (p *Pages) browse(ctx context.Context, r *http.Request) reply {
	at, err := parsePlace(r.URL.EscapedPath())
	if err != nil {
		return p.failed(r, &problem{Status: http.StatusNotFound, Text: "There is no such page: " + errPlace.Error() + "."})
	}
	answers := p.cfg.Open()
	l, problem := locate(ctx, answers, at)
	if problem != nil {
		return p.failed(r, problem)
	}
	if at.path == "" || strings.HasSuffix(at.path, "/") {
		return p.folder(ctx, r, answers, l)
	}
	return p.file(ctx, r, answers, l)
}

// failed is a page that only says what went wrong.
func (p *Pages) failed(r *http.Request, what *problem) reply {
	return reply{status: what.Status, template: "problem", data: struct {
		frame

		Problem *problem
	}{p.frame(r, "Trawl", ""), what}}
}

// locate finds the repo and the revision.
func locate(ctx context.Context, answers Answers, at place) (located, *problem) {
	l := located{place: at}
	list, err := answers.List(ctx, &searchv1.ListRequest{Query: only(at.repo), SyntaxVersion: syntaxVersion, MaxBytes: answerBytes})
	if err != nil {
		return l, problemOf("", err)
	}
	if i := slices.IndexFunc(list.GetRepos(), func(e *searchv1.RepoEntry) bool { return e.GetName() == at.repo }); i >= 0 {
		l.entry = list.GetRepos()[i]
	} else if list.GetCoverage().GetComplete() {
		if l.entry, err = withoutFiles(ctx, answers, at.repo); err != nil {
			return l, problemOf("", err)
		}
	}
	switch {
	case l.entry == nil && !list.GetCoverage().GetComplete():
		return l, &problem{Status: http.StatusServiceUnavailable, Text: "The repo cannot be reached at the moment. Try again."}
	case len(l.entry.GetBranches()) == 0:
		p := &problem{Status: http.StatusNotFound, Text: "There is no repo " + plain(cut(at.repo, nameBytes)) + ", or you may not see it."}
		if text := answers.Unindexed(ctx, at.repo); text != "" {
			p.Text = plain(cut(text, 1000)) + "."
			return l, p
		}
		names, _ := answers.NearestRepos(ctx, at.repo) // without them it says the same
		for _, name := range names {
			p.Nearest = append(p.Nearest, nearest{plain(cut(name, nameBytes)), place{repo: name}.address()})
		}
		return l, p
	}
	for n, b := range l.entry.GetBranches() {
		isBranch := at.rev == b.GetName() || n == 0 && (at.rev == "" || at.rev == "HEAD")
		if isBranch || isCommit().MatchString(at.rev) && strings.HasPrefix(b.GetCommit(), at.rev) {
			l.branch, l.commit, l.head = b.GetName(), b.GetCommit(), n == 0
			return l, nil
		}
	}
	return l, l.noRevision()
}

// withoutFiles is the entry of a repo that no list has, since its commits have no files; nil if there is no such repo.
func withoutFiles(ctx context.Context, answers Answers, repo string) (*searchv1.RepoEntry, error) {
	resp, err := answers.Search(ctx, &searchv1.SearchRequest{Query: only(repo), Options: &searchv1.SearchOptions{SyntaxVersion: syntaxVersion, CountOnly: true}})
	for _, searched := range resp.GetEmpty().GetSearched() {
		if searched.GetName() == repo {
			return &searchv1.RepoEntry{Name: repo, Branches: searched.GetBranches()}, nil
		}
	}
	return nil, err //nolint:wrapcheck // problemOf reads its status
}

// isCommit holds for a commit or the beginning of one.
var isCommit = lazyregexp.New(`^[0-9a-f]{7,64}$`)

// missing is the problem of an error. That of a file or folder that does not exist has the text, and links to the nearest ones.
func (l located) missing(err error, text string) *problem {
	p := problemOf("", err)
	if p.Status != http.StatusNotFound {
		return p
	}
	p.Text = text
	for _, path := range searchapi.NotFoundOf(err).GetNearest() {
		p.Nearest = append(p.Nearest, nearest{plain(cutFront(path, nameBytes)), l.at(path).address()})
	}
	return p
}

// noFile is the problem of a file that cannot be read. If another branch has the file, it leads there.
func (l located) noFile(ctx context.Context, answers Answers, err error) *problem {
	file := plain(cut(l.path, nameBytes))
	text := "There is no file " + file + " on branch " + plain(cut(l.branch, nameBytes))
	if status.Code(err) == codes.NotFound && l.rev != "" {
		elsewhere, err := answers.GetFile(ctx, &searchv1.GetFileRequest{Repo: l.repo, Path: []byte(l.path), MaxBytes: readBytes})
		if on := elsewhere.GetBranches(); err == nil && len(on) > 0 {
			branch := plain(cut(on[0], nameBytes))
			there := place{l.repo, on[0], l.path}.address()
			return &problem{Status: http.StatusNotFound, Text: text + ", but on branch " + branch + ".", Nearest: []nearest{{file + " on " + branch, there}}}
		}
	}
	return l.missing(err, text+".")
}

// noRevision is the problem of an unknown revision. It names those that are indexed, and links to the nearest branches.
func (l located) noRevision() *problem {
	var names, branches []string
	for _, b := range l.entry.GetBranches() {
		branches = append(branches, b.GetName())
	}
	for _, b := range l.entry.GetBranches()[:min(len(l.entry.GetBranches()), 10)] {
		names = append(names, plain(cut(b.GetName(), nameBytes))+" at "+short(b.GetCommit()))
	}
	if n := len(branches) - len(names); n > 0 {
		names = append(names, "and "+grouped(uint64(n))+" more")
	}
	p := &problem{Status: http.StatusNotFound, Text: "Revision " + plain(cut(l.rev, nameBytes)) + " is not indexed, or no longer. Indexed are: " +
		strings.Join(names, ", ") + "."}
	for _, name := range searchapi.Nearest(l.rev, branches) {
		p.Nearest = append(p.Nearest, nearest{plain(cut(name, nameBytes)), place{l.repo, name, l.path}.address()})
	}
	return p
}

// only is the query for one repo.
func only(repo string) string { return "r:" + quote("^"+indexquery.Literal(repo)+"$") }

// here is the query for the documents of the branch.
func (l located) here() string {
	branch := "HEAD"
	if !l.head {
		branch = l.branch
	}
	return only(l.repo) + " b:" + quote(branch)
}

// inFile is a query, without select, for one file.
func inFile(query, where, path string) string {
	return "(" + query + " ) " + where + " f:" + quote("^"+indexquery.Literal(path)+"$")
}

// head is the top of the pages of a repo.
type head struct {
	frame

	Repo, Branch, Name template.HTML
	Commit             string
	RepoURL, Permalink string
	Host               host
	Crumbs             []crumb
	Branches           []choice
	Plain              string
}

// choice is a branch that one can switch to.
type choice struct {
	Name, URL string
	Chosen    bool
}

// maxChoices bounds the branches to choose from.
const maxChoices = 100

func (p *Pages) head(r *http.Request, l located) head {
	base, query := strings.TrimPrefix(l.path, folder(l.path)), param(r, queryParam)
	h := head{
		frame: p.frame(r, cut(plain(strings.TrimPrefix(base+" · "+l.repo, " · ")), nameBytes), cmp.Or(query, only(l.repo)+" ")),
		Repo:  name(cut(l.repo, nameBytes)), Branch: name(cut(l.branch, nameBytes)), Name: name(cutFront(base, nameBytes)),
		Commit: short(l.commit), RepoURL: place{l.repo, l.rev, ""}.address(), Permalink: place{l.repo, l.commit, l.path}.address(),
		Crumbs: l.crumbs(), Plain: plain(l.path), Host: hostOf(p.cfg.sources(), l.entry.GetUrl(), l.commit, l.path),
	}
	for _, b := range l.entry.GetBranches()[:min(len(l.entry.GetBranches()), maxChoices)] {
		h.Branches = append(h.Branches, choice{plain(cut(b.GetName(), 60)), marked(place{l.repo, b.GetName(), l.path}.address(), query), b.GetName() == l.branch})
	}
	return h
}
