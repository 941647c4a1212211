package search

import (
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/query"
)

// languageNode matches documents in the language with a number in the shard.
type languageNode struct {
	docs *docstore.Docs
	id   uint16
}

func (n *languageNode) plan() (plan, error) { return plan{}, nil }

func (n *languageNode) matches(d *document) (bool, error) {
	id, err := n.docs.LanguageID(d.id)
	return id == n.id, err
}

func (n *languageNode) collect(*document, *gathered) error { return nil }
func (n *languageNode) cost() uint64                       { return costColumn }

// itemsPerLook is how many items of a column count as one look at a path.
const itemsPerLook = 64

func (n *languageNode) documents(budget uint64) (runs, bool, error) {
	if uint64(n.docs.Len()/itemsPerLook) > budget {
		return nil, false, nil
	}
	found, err := n.docs.AppendLanguageRuns(nil, n.id)
	return found, err == nil, err
}

// branchNode matches documents on a branch that the query names.
type branchNode struct {
	q *query.Branch
	// wanted has, for each branch of repo, whether it is named.
	wanted []bool
	repo   int
	valid  bool
}

func (n *branchNode) documents(uint64) (runs, bool, error) { return nil, false, nil }

func (n *branchNode) plan() (plan, error)                { return plan{}, nil }
func (n *branchNode) collect(*document, *gathered) error { return nil }
func (n *branchNode) cost() uint64                       { return costColumn }

func (n *branchNode) matches(d *document) (bool, error) {
	if !n.valid || n.repo != d.repo {
		if err := n.load(d); err != nil {
			return false, err
		}
	}
	branches, err := d.loadBranches()
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(branches, func(b uint32) bool { return int(b) < len(n.wanted) && n.wanted[b] }), nil
}

func (n *branchNode) load(d *document) error {
	view, err := d.s.branchesNow(d.repo)
	if err != nil {
		return err
	}
	n.wanted = n.wanted[:0]
	for i, b := range view.now {
		n.wanted = append(n.wanted, n.q.Matches(b.Name, i))
	}
	n.repo, n.valid = d.repo, true
	return nil
}
