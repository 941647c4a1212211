package gitsource

import (
	"github.com/trawl-search/trawl/index/docstore"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Branches converts a root's branches, in their order, so that they can be compared
// with those of a Fetcher.
func Branches(records []*catalogv1.Branch) []docstore.Branch {
	branches := make([]docstore.Branch, len(records))
	for i, b := range records {
		branches[i] = docstore.Branch{Name: b.GetName(), Commit: b.GetCommit()}
	}
	return branches
}
