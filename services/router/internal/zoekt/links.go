package zoekt

import "github.com/trawl-search/trawl/internal/searchapi"

// links lead to the pages of this router at the address by which the program reached it: scheme and host. Empty ones lead nowhere.
type links string

// repoLinks are zoekt's templates of links to a commit of a repo, to a file in it, and to a line in that.
type repoLinks struct{ commit, file, line string }

// of are the links to a repo.
func (l links) of(repo string) repoLinks {
	if l == "" {
		return repoLinks{}
	}
	commit := string(l) + searchapi.PageOf(repo, "", "") + "@{{.Version}}"
	return repoLinks{commit, commit + searchapi.PageSeparator + "{{.Path}}", "#L{{.LineNumber}}"}
}

// size is an upper bound of the links in JSON. An answer to a search has them in two objects, by the repo's name.
func (l repoLinks) size(repo string) int64 {
	if l == (repoLinks{}) {
		return 0
	}
	return 2*textSize(repo) + textSize(l.commit) + textSize(l.file) + 2*textSize(l.line)
}
