// Package pageurl has the addresses of the pages for people that a router serves.
//
// A file or folder of a repo is at
//
//	/r/REPO@REV/-/PATH
//
// REV is a branch or a commit, and may be left out with its @ for the default branch. The path
// of a folder ends in a slash, that of the repo's root is empty. Segments are escaped, those
// that would be taken for punctuation too, so that any name has exactly one address.
package pageurl

import (
	"net/url"
	"strconv"
	"strings"
)

// Parts of addresses.
const (
	Prefix    = "/r/"
	Separator = "/-/"
	// FromParam is the first line that a page of a long file shows.
	FromParam = "from"
)

// Lines bounds the lines of one page of a file.
const Lines = 2000

// Of is the address of a repo at a revision, "" for its default branch, or of a path in it.
func Of(repo, rev, path string) string {
	a := Prefix + escape(repo)
	if rev != "" {
		a += "@" + escape(rev)
	}
	if path != "" {
		a += Separator + escape(path)
	}
	return a
}

// OfLine is the address of a line of a file; 0 is that of the file.
func OfLine(repo, rev, path string, line int) string {
	a := Of(repo, rev, path)
	if line == 0 {
		return a
	}
	if line > Lines {
		a += "?" + FromParam + "=" + strconv.Itoa(max(line-100, 1)) // with some lines above it
	}
	return a + "#L" + strconv.Itoa(line)
}

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
