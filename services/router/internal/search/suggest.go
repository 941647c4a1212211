package search

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/query"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// aside returns a lookup for a hint about a query that finds nothing. It must be ended.
func (e *execution) aside() lookup {
	explained := e.ticket.explain
	e.ticket.explain = nil // the explanation is of the query that found nothing
	return lookup{service: e.service, ticket: e.ticket, layout: e.layout, end: func() { e.ticket.explain = explained }}
}

// finds reports whether another query finds a file. Sure is false if it found none, and not everything could be searched for it.
func (e *execution) finds(ctx context.Context, text string) (found, sure bool) {
	l := e.aside()
	defer l.end()
	files, complete, err := l.search(ctx, &searchv1.SearchRequest{Query: text}, &searchv1.SearchOptions{
		SyntaxVersion: e.asked.version, MaxFiles: 1, MaxMatchesPerFile: 1, Mode: searchv1.Mode_MODE_TOP_K,
	})
	found = len(files) > 0
	return found, found || complete && err == nil
}

// anyCase adds a hint if a term has a capital, unless the query certainly finds nothing in any case either.
func (h *hinter) anyCase(ctx context.Context, t query.Term) {
	if h.cased || h.asked.text != h.text || strings.Contains(h.text, "case:") || !h.hasCapital(t) {
		return
	}
	h.cased = true
	instead := h.text + " case:no"
	if found, sure := h.finds(ctx, instead); found || !sure {
		h.hints = append(h.hints, &searchv1.Hint{Text: fmt.Sprintf("a capital, as in %s, makes a text case-sensitive; case:no finds it in any case", quoted(t.Value)), Query: instead})
	}
}

// path adds a hint about a term that matches no path.
func (h *hinter) path(ctx context.Context, t query.Term) {
	if found, sure := h.finds(ctx, "type:file case:no "+t.Field+query.Quote(t.Value)); found || !sure {
		h.anyCase(ctx, t)
		return
	}
	text, best := suggested(h.nearestPaths(ctx, t))
	instead := ""
	if len(best) > 0 {
		instead = "file:" + query.Quote("^"+regexp.QuoteMeta(best[0]))
	}
	h.addf(t, instead, "no path that you may see matches %s%s", quoted(t.Value), text)
}

// nearestPaths returns the paths that are near to what a term was meant for: none for an extension alone, nor for a query of some repos, since
// they may be in others.
func (h *hinter) nearestPaths(ctx context.Context, t query.Term) []string {
	likely := strings.NewReplacer(`\`, "", "^", "", "$", "", "(?i)", "", ".*", "", "*", "", "?", "").Replace(t.Value)
	ofRepos := slices.ContainsFunc(query.Terms(h.text, h.version), func(t query.Term) bool { return t.Field == "repo:" || t.Field == "r:" })
	if ofRepos || strings.LastIndexByte(path.Base(likely), '.') == 0 {
		return nil
	}
	l := h.aside()
	defer l.end()
	if files := l.nearestPaths(ctx, "", "", []byte(likely)); len(files) > 0 {
		return files
	}
	return l.nearestPaths(ctx, "", "", []byte(strings.TrimSuffix(likely, "/")+"/"))
}
