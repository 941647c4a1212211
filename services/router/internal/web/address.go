package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/trawl-search/trawl/internal/searchapi"
)

// place is what an address names; see searchapi.PageOf.
type place struct {
	repo, rev, path string
}

// errPlace answers an address that names nothing.
var errPlace = errors.New("an address is /r/REPO@REVISION/-/PATH")

// parsePlace reads an escaped address.
func parsePlace(escaped string) (p place, err error) {
	rest, ok := strings.CutPrefix(escaped, searchapi.PagePrefix)
	if !ok {
		if rest, ok = strings.CutPrefix(escaped, rawPrefix); !ok {
			return p, errPlace
		}
	}
	repo, path, _ := strings.Cut(rest, searchapi.PageSeparator)
	repo, rev, _ := strings.Cut(strings.TrimSuffix(repo, "/"), "@")
	for _, part := range []struct {
		to   *string
		from string
	}{{&p.repo, repo}, {&p.rev, rev}, {&p.path, path}} {
		if *part.to, err = url.PathUnescape(part.from); err != nil {
			return place{}, errPlace
		}
	}
	if p.repo == "" || len(p.repo) > maxName || len(p.rev) > maxName || len(p.path) > maxPath {
		return place{}, errPlace
	}
	return p, nil
}

// Bounds of names in bytes, the same as in the search service.
const (
	maxName = 1024
	maxPath = 65536
)

// address is the address of a place.
func (p place) address() string { return searchapi.PageOf(p.repo, p.rev, p.path) }

// raw is the address of the file as it is.
func (p place) raw() string { return rawPrefix + strings.TrimPrefix(p.address(), searchapi.PagePrefix) }

// line is the address of a line of the file; 0 is that of the file.
func (p place) line(n int) string { return searchapi.PageOfLine(p.repo, p.rev, p.path, n) }

// at is the place at another path.
func (p place) at(path string) place { return place{p.repo, p.rev, path} }

// folder is the folder of a path with its slash; empty for the root.
func folder(path string) string {
	return path[:strings.LastIndexByte(strings.TrimSuffix(path, "/"), '/')+1]
}

// crumb is a folder on the way to a path.
type crumb struct {
	Name, URL string
}

// crumbs are the folders above a path, the outermost first, without the root.
func (p place) crumbs() (all []crumb) {
	for i, c := range strings.TrimSuffix(p.path, "/") {
		if c == '/' {
			dir := p.path[:i+1]
			all = append(all, crumb{strings.TrimPrefix(dir[:i], folder(dir)), p.at(dir).address()})
		}
	}
	if len(all) > maxCrumbs {
		all = all[len(all)-maxCrumbs:]
	}
	return all
}

// maxCrumbs bounds the folders that are shown above a path.
const maxCrumbs = 30

// marked is the address of a file or a line in which the matches of a query are marked. A long query is left out.
func marked(address, query string) string {
	if query == "" || len(query) > markedQuery {
		return address
	}
	page, line, _ := strings.Cut(address, "#")
	sep := "?"
	if strings.Contains(page, "?") {
		sep = "&"
	}
	page += sep + url.Values{queryParam: {query}}.Encode()
	if line != "" {
		page += "#" + line
	}
	if len(page) > maxURL {
		return address
	}
	return page
}

// markedQuery bounds the query in addresses: every line of a page of results has one.
const markedQuery = 200

// searchURL is the address of a search.
func searchURL(query string) string { return "/?" + url.Values{queryParam: {query}}.Encode() }

// zoektSearch leads from the address of a search of zoekt's pages to that of the same query here, and zoektPrint from that of a file.
func zoektSearch(_ context.Context, r *http.Request) reply {
	return reply{redirect: searchURL(param(r, queryParam))}
}

func zoektPrint(_ context.Context, r *http.Request) reply {
	return reply{redirect: place{param(r, "r"), param(r, "b"), param(r, "f")}.address()}
}
