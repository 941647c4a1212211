package searchapi

import (
	"net/url"
	"strconv"
	"strings"
)

// Parts of the addresses of pages.
const (
	PagePrefix    = "/r/"
	PageSeparator = "/-/"
	// PageFromParam is the first line that a page of a long file shows.
	PageFromParam = "from"
)

// PageLines bounds the lines of one page of a file.
const PageLines = 2000

// PageOf is the address of the web page of a repo at a revision, "" for its default
// branch, or of a path in it. A file or folder of a repo is at
//
//	/r/REPO@REV/-/PATH
//
// REV is a branch or a commit; "@REV" may be left out for the default branch. The path of a
// folder ends in a slash, and that of the repo's root is empty. Segments are escaped, also
// those that look like punctuation, so that any name has exactly one address.
func PageOf(repo, rev, path string) string {
	a := PagePrefix + escapeSegments(repo)
	if rev != "" {
		a += "@" + escapeSegments(rev)
	}
	if path != "" {
		a += PageSeparator + escapeSegments(path)
	}
	return a
}

// PageOfLine is the address of a line of a file; line 0 means the file.
func PageOfLine(repo, rev, path string, line int) string {
	a := PageOf(repo, rev, path)
	if line == 0 {
		return a
	}
	if line > PageLines {
		a += "?" + PageFromParam + "=" + strconv.Itoa(max(line-100, 1)) // with some lines above it
	}
	return a + "#L" + strconv.Itoa(line)
}

// escapeSegments escapes the segments of a name.
func escapeSegments(name string) string {
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
