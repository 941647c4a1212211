package render

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Rest prints what an answer has besides its files: counts by facet and, where nothing matches, what
// was searched and what may be wrong with the query.
func (t *Text) Rest(resp *searchv1.SearchResponse) error {
	var b strings.Builder
	for _, c := range resp.GetFacets() {
		if len(resp.GetFacets()) > 1 {
			paint(&b, t.color, styleNote, []byte("By "+facetName(c)))
			b.WriteByte('\n')
		}
		for _, v := range c.GetValues() {
			paint(&b, t.color, styleLine, fmt.Appendf(nil, "%8d", v.GetFiles()))
			b.WriteString("  ")
			facetValue(&b, t.color, v, " ")
			b.WriteByte('\n')
		}
		leftOut(&b, c, resp.GetSelected())
	}
	nothing(&b, t.color, resp)
	_, err := io.WriteString(t.w, b.String())
	return err
}

// Rest prints the repos or folders that the query selects as REPO:FILES or REPO:FOLDER:FILES, and all else as notes.
func (l *Lines) Rest(resp *searchv1.SearchResponse) error {
	return rest(l.w, l.notes.to, l.style.Color, "\n", resp)
}

// Rest prints the same as Lines.Rest, or nothing if the output is discarded.
func (p *Paths) Rest(resp *searchv1.SearchResponse) error {
	if p.w == io.Discard {
		return nil
	}
	return rest(p.w, p.notes.to, p.color, p.end, resp)
}

func rest(w, notes io.Writer, color bool, end string, resp *searchv1.SearchResponse) error {
	var b, more strings.Builder
	for _, c := range resp.GetFacets() {
		for _, v := range c.GetValues() {
			if len(resp.GetFacets()) > 1 {
				b.WriteString(facetName(c) + ":")
			}
			facetValue(&b, color, v, ":")
			fmt.Fprintf(&b, ":%d%s", v.GetFiles(), end)
		}
		leftOut(&more, c, resp.GetSelected())
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	nothing(&more, false, resp)
	_, err := io.WriteString(notes, more.String())
	return err
}

// facetName is repo, language, directory or branch.
func facetName(c *searchv1.FacetCounts) string {
	return searchapi.EnumWords(c.GetFacet().String(), "FACET_")
}

func facetValue(b *strings.Builder, color bool, v *searchv1.FacetValue, separator string) {
	if v.GetRepo() == "" {
		b.WriteString(cmp.Or(Safe([]byte(v.GetName())), "(unknown)"))
		return
	}
	paint(b, color, styleRepo, []byte(v.GetRepo()))
	if len(v.GetDirectory()) > 0 {
		b.WriteString(separator)
		paint(b, color, stylePath, v.GetDirectory())
	}
}

// leftOut prints how much of a facet is left out. The query sets the number of values of the facet that it selects.
func leftOut(b *strings.Builder, c *searchv1.FacetCounts, selected searchv1.Facet) {
	if n := c.GetValuesLeftOut(); n > 0 {
		fmt.Fprintf(b, "… and %d more", n)
		if c.GetFacet() == selected {
			b.WriteString("; write count: for another number of them")
		}
		b.WriteByte('\n')
	}
	if n := c.GetFilesNotCounted(); n > 0 {
		fmt.Fprintf(b, "%s more could not be counted apart: the numbers are lower bounds\n", Count(n, "file", "files"))
	}
}

// namedRepos bounds the repos that an answer without matches names: a longer list hides the hints below it.
const namedRepos = 5

// nothing says over how many repos, or over which commits of few, nothing was found, and why that may be.
func nothing(b *strings.Builder, color bool, resp *searchv1.SearchResponse) {
	e := resp.GetEmpty()
	if e == nil {
		return
	}
	complete := "complete"
	if !resp.GetCoverage().GetComplete() {
		complete = "incomplete"
	}
	fmt.Fprintf(b, "0 matches, %s over %s", complete, Count(e.GetRepos(), "repo", "repos"))
	separator, named := ": ", e.GetSearched()
	if e.GetRepos() > namedRepos {
		named = nil
	}
	for _, repo := range named {
		b.WriteString(separator)
		paint(b, color, styleRepo, []byte(repo.GetName()))
		for _, branch := range repo.GetBranches() {
			commit := branch.GetCommit()
			b.WriteString(" " + Safe([]byte(branch.GetName())) + "@" + Safe([]byte(commit[:min(len(commit), 12)])))
		}
		separator = ", "
	}
	b.WriteByte('\n')
	for _, h := range e.GetHints() {
		b.WriteString(Hint(h))
	}
}

// Hint is a hint as a line.
func Hint(h *searchv1.Hint) string {
	line := "hint: " + Safe([]byte(h.GetText()))
	if h.GetQuery() != "" {
		line += "; try " + Safe([]byte(h.GetQuery()))
	}
	return line + "\n"
}

type facetJSON struct {
	Type           string `json:"type"`  // facet
	Facet          string `json:"facet"` // repo, language, directory or branch
	Repo           string `json:"repo,omitempty"`
	Name           string `json:"name,omitempty"`
	Directory      string `json:"directory,omitempty"`
	DirectoryBytes []byte `json:"directory_bytes,omitempty"`
	Files          uint64 `json:"files"`
}

type nothingJSON struct {
	Type     string         `json:"type"` // nothing
	Repos    uint64         `json:"repos"`
	Searched []searchedJSON `json:"searched"`
	Hints    []hintJSON     `json:"hints"`
}

type searchedJSON struct {
	Repo     string            `json:"repo"`
	Branches map[string]string `json:"branches"` // with their commits
}

type hintJSON struct {
	Text  string `json:"text"`
	Query string `json:"query,omitempty"`
}

// Rest prints one object for each value of a facet and, where nothing matches, one for what was searched.
func (j *JSON) Rest(resp *searchv1.SearchResponse) error {
	for _, c := range resp.GetFacets() {
		facet := facetName(c)
		for _, v := range c.GetValues() {
			out := facetJSON{Type: "facet", Facet: facet, Repo: v.GetRepo(), Name: v.GetName(), Files: v.GetFiles()}
			out.Directory, out.DirectoryBytes = TextOrBytes(v.GetDirectory())
			if err := j.enc.Encode(out); err != nil {
				return err
			}
		}
	}
	e := resp.GetEmpty()
	if e == nil {
		return nil
	}
	out := nothingJSON{Type: "nothing", Repos: e.GetRepos(), Searched: []searchedJSON{}, Hints: []hintJSON{}}
	for _, repo := range e.GetSearched() {
		branches := map[string]string{}
		for _, b := range repo.GetBranches() {
			branches[b.GetName()] = b.GetCommit()
		}
		out.Searched = append(out.Searched, searchedJSON{repo.GetName(), branches})
	}
	for _, h := range e.GetHints() {
		out.Hints = append(out.Hints, hintJSON{h.GetText(), h.GetQuery()})
	}
	return j.enc.Encode(out)
}
