package gitsource

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
)

// maxAncestors bounds how many old branches a new one is compared with.
const maxAncestors = 4

// ancestors returns for each branch the old branch that it is compared with: the one of
// the same name, else one with the same tree, which may have been renamed, else the one
// that differs least. Mirrors have no history from which to find a merge base.
func (c *Changes) ancestors(ctx context.Context, old []docstore.Branch, before, after []string) ([]int, error) {
	from := make([]int, len(after))
	for i, b := range c.branches {
		from[i] = slices.IndexFunc(old, func(o docstore.Branch) bool { return o.Name == b.Name })
		if from[i] < 0 {
			from[i] = slices.Index(before, after[i])
		}
		if from[i] < 0 {
			var err error
			if from[i], err = c.nearest(ctx, likely(old, b.Name), before, after[i]); err != nil {
				return nil, err
			}
		}
	}
	return from, nil
}

// likely returns the old branches that a new one probably comes from: the first, and
// those with the longest common prefix of names.
func likely(old []docstore.Branch, name string) []int {
	order, common := make([]int, len(old)), make([]int, len(old))
	for i := range order {
		order[i], common[i] = i, commonPrefix(old[i].Name, name)
	}
	slices.SortStableFunc(order[1:], func(a, b int) int { return cmp.Compare(common[b], common[a]) })
	return order[:min(len(order), maxAncestors)]
}

func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// nearest returns the candidate whose tree differs from a tree at the fewest paths.
func (c *Changes) nearest(ctx context.Context, candidates []int, before []string, tree string) (int, error) {
	best, least := candidates[0], -1
	if len(candidates) == 1 {
		return best, nil
	}
	for _, i := range candidates {
		changes, err := c.diff(ctx, before[i:i+1], []string{tree})
		if err != nil {
			return 0, err
		}
		if n := len(changes[tree]); least < 0 || n < least {
			best, least = i, n
		}
	}
	return best, nil
}

// maxLost bounds the pairs of a deleted and a present branch that are compared.
const maxLost = 32 * maxBranches

// lost adds the changes that deleted branches cause on others. An object that was a
// file on a deleted branch and is named as a submodule's commit on another counted as a
// file until now.
func (c *Changes) lost(ctx context.Context, changes map[string][]change, before, after []string) error {
	var gone, stays []string
	for i, tree := range before {
		if slices.Contains(c.from, i) {
			continue
		}
		if len(gone)+len(after) > maxLost {
			return fmt.Errorf("%w: too many branches were deleted", ErrManyChanges)
		}
		for _, other := range after {
			gone, stays = append(gone, tree), append(stays, other)
		}
	}
	types, err := c.diff(ctx, gone, stays, "--diff-filter=T")
	for tree, list := range types {
		changes[tree] = append(changes[tree], list...)
	}
	return err
}
