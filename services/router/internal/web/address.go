package web

import (
	"errors"
	"net/url"
	"strconv"
	"strings"
)

// A file or folder of a repo is at
//
//	/r/REPO@REV/-/PATH
//
// REV is a branch or a commit, and may be left out with its @ for the default branch. The path
// of a folder ends in a slash, that of the repo's root is empty. Segments are escaped, those
// that would be taken for punctuation too, so that any name has exactly one address.

// place is what an address names.
type place struct {
	repo, rev, path string
}

const (
	browsePrefix = "/r/"
	separator    = "/-/"
)

// errPlace answers an address that names nothing.
var errPlace = errors.New("an address is /r/REPO@REVISION/-/PATH")

// parsePlace reads an escaped address.
func parsePlace(escaped string) (p place, err error) {
	rest, ok := strings.CutPrefix(escaped, browsePrefix)
	if !ok {
		return p, errPlace
	}
	repo, path, _ := strings.Cut(rest, separator)
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

// Bounds of names in bytes, as those of the search service.
const (
	maxName = 1024
	maxPath = 65536
)

// address is the address of a place.
func (p place) address() string {
	a := browsePrefix + escape(p.repo)
	if p.rev != "" {
		a += "@" + escape(p.rev)
	}
	if p.path != "" {
		a += separator + escape(p.path)
	}
	return a
}

// line is the address of a line of the file; 0 is that of the file.
func (p place) line(n int) string {
	a := p.address()
	if n == 0 {
		return a
	}
	if n > pageLines {
		a += "?" + fromParam + "=" + strconv.Itoa(firstShown(n))
	}
	return a + "#L" + strconv.Itoa(n)
}

// at is the place at another path.
func (p place) at(path string) place { return place{p.repo, p.rev, path} }

// escape escapes the segments of a name.
func escape(name string) string {
	segments := strings.Split(name, "/")
	for i, s := range segments {
		s = strings.ReplaceAll(url.PathEscape(s), "@", "%40")
		switch s {
		case "-":
			s = "%2D"
		case ".", "..":
			s = strings.ReplaceAll(s, ".", "%2E")
		}
		segments[i] = s
	}
	return strings.Join(segments, "/")
}

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

// searchURL is the address of a search.
func searchURL(query string) string { return "/?" + url.Values{queryParam: {query}}.Encode() }
