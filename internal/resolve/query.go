package resolve

import (
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/query"
)

// inRepo is a query for files in a folder of a repo.
func inRepo(repo, dir string) string {
	return "(r:" + query.Quote("^"+query.Literal(repo)+"$") + " f:" + query.Quote("^"+query.Literal(dir)+"[^/]*$") + ")"
}

// mostElements is the most elements of a folder's path that a query names. The rest is compared afterwards.
const mostElements = 3

// inFolder is a query for files in a folder, given by the last elements of its path. The first of them may be of the name of the repo.
func inFolder(dir []string) string {
	last := dir[max(len(dir)-mostElements, 0):]
	parts := []string{"f:" + query.Quote("(^|/)"+query.Literal(strings.Join(last, "/"))+"/[^/]*$")}
	if !strings.Contains(dir[0], ".") { // names of repos begin with that of their host
		return parts[0]
	}
	for n := range slices.Backward(last) { // the rest is of the repo's name
		below := ""
		if n < len(last)-1 {
			below = query.Literal(strings.Join(last[n+1:], "/")) + "/"
		}
		parts = append(parts, "(r:"+query.Quote("(^|/)"+query.Literal(strings.Join(last[:n+1], "/"))+"$")+" f:"+query.Quote("^"+below+"[^/]*$")+")")
	}
	return "(" + strings.Join(parts, " or ") + ")"
}
