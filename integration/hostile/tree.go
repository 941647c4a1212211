package hostile

import (
	"fmt"
	"strings"

	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
)

// TreeBomb puts a commit with 10,000 million paths, made of ten small objects, on the branch main.
// Each name in the tree begins with part.
func TreeBomb(r *gitsourcetest.Repo, part string) {
	entry := "100644 blob " + r.Blob("boom")
	for range 10 {
		var tree strings.Builder
		for i := range 10 {
			fmt.Fprintf(&tree, "%s\t%s%d\n", entry, part, i)
		}
		entry = "040000 tree " + strings.TrimSpace(r.GitIn(tree.String(), "mktree"))
	}
	commit := strings.TrimSpace(r.Git("commit-tree", "-m", "bomb", strings.TrimPrefix(entry, "040000 tree ")))
	r.Git("update-ref", "refs/heads/main", commit)
}
