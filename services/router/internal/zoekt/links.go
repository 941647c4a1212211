package zoekt

import (
	"net/http"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// links are zoekt's templates of links, which lead to the pages of this router at the address by which the program reached it: scheme and
// host. Empty ones lead nowhere.
type links string

// linksOf are the links in the answer to a request.
func linksOf(r *http.Request) links {
	if access.Encrypted(r) {
		return links("https://" + r.Host)
	}
	return links("http://" + r.Host)
}

const lineTemplate = "#L{{.LineNumber}}"

// commit is the template of the page of a repo at a commit.
func (l links) commit(repo string) string {
	if l == "" {
		return ""
	}
	return string(l) + searchapi.PageOf(repo, "", "") + "@{{.Version}}"
}

// file is the template of the page of a file.
func (l links) file(repo string) string {
	if l == "" {
		return ""
	}
	return l.commit(repo) + searchapi.PageSeparator + "{{.Path}}"
}

// line is the template of the place of a line in such a page.
func (l links) line() string {
	if l == "" {
		return ""
	}
	return lineTemplate
}

// size is an upper bound of the links of a repo in JSON.
func (l links) size(repo string) int64 {
	if l == "" {
		return 0
	}
	return 2*textSize(repo) + textSize(l.commit(repo)) + textSize(l.file(repo)) + 2*textSize(lineTemplate)
}
