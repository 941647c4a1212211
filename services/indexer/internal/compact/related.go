package compact

import (
	"cmp"
	"slices"
)

// related returns the repos in an order in which relatives follow each other. Two repos are
// relatives if they have a content of their sketches in common, or a relative.
func related(repos []*repo) []*repo {
	// Each tree of parents is a family; its root stands for it.
	parents := make([]int, len(repos))
	root := func(i int) int {
		for parents[i] != i {
			parents[i] = parents[parents[i]]
			i = parents[i]
		}
		return i
	}
	first := map[uint32]int{} // by content, a repo that has it
	for i, r := range repos {
		parents[i] = i
		for _, id := range r.Record.GetSketch() {
			if j, known := first[id]; known {
				parents[root(i)] = root(j)
			} else {
				first[id] = i
			}
		}
	}
	order := make([]int, len(repos))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(root(a), root(b)), cmp.Compare(likeliest(repos[a]), likeliest(repos[b])), cmp.Compare(a, b))
	})
	sorted := make([]*repo, len(repos))
	for i, at := range order {
		sorted[i] = repos[at]
	}
	return sorted
}

// likeliest returns the content that most relatives share: the first of a sketch.
func likeliest(r *repo) uint32 {
	if ids := r.Record.GetSketch(); len(ids) > 0 {
		return ids[0]
	}
	return 0
}
