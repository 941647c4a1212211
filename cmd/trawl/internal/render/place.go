package render

import (
	"strings"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// place prints REPO:PATH in the form of Name, or REPO@BRANCH:PATH with a branch.
func place(b *strings.Builder, color bool, link Link, f *searchv1.FileMatch, branch string) {
	repo, path := []byte(f.GetRepo()), f.GetPath()
	if whole := f.GetRepo() + ":" + string(path); Name([]byte(whole)) != whole {
		repo, path = escaped(repo), escaped(path)
	}
	link.linked(b, f, 0, func(b *strings.Builder) {
		paint(b, color, styleRepo, repo)
		if branch != "" {
			paint(b, color, styleNote, []byte("@"+branch))
		}
		b.WriteByte(':')
		paint(b, color, stylePath, path)
	})
}

// contents are the object ids of the files that were printed first, by REPO:PATH.
type contents map[string]string

// otherBranch returns a branch of a file that was printed before with other content: without it, the lines would look like duplicates. It is empty
// for any other file.
func (c *contents) otherBranch(f *searchv1.FileMatch) string {
	name, blob := f.GetRepo()+":"+string(f.GetPath()), string(f.GetBlob())
	if *c == nil {
		*c = contents{}
	}
	first, printed := (*c)[name]
	if !printed {
		(*c)[name] = blob
	}
	if !printed || first == blob || len(f.GetBranches()) == 0 {
		return ""
	}
	return f.GetBranches()[0]
}
