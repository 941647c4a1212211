package gitsource

import (
	"fmt"
	"slices"
)

// maxBranchSets bounds the sets of branches of a repository, with those on the way to others. Sets of
// branches that follow each other, as those of releases, are half a million where there are 1,024 branches.
const maxBranchSets = 1 << 21

var errManyBranchSets = failure(TooLarge, nil, fmt.Sprintf("its documents are on more than %d different sets of branches", maxBranchSets))

// branchSets numbers the distinct sets of branches that documents have. There are few,
// and documents share them. Set 0 is empty.
type branchSets struct {
	sets  []branchSet
	grown map[branchSet]uint32 // its number
}

// branchSet is an earlier set and a branch after all of its branches.
type branchSet struct{ set, branch uint32 }

func newBranchSets() *branchSets {
	return &branchSets{sets: make([]branchSet, 1), grown: make(map[branchSet]uint32)}
}

// with returns the union of a set and a branch. Branches must be added in ascending
// order.
func (s *branchSets) with(set, branch uint32) (uint32, error) {
	step := branchSet{set, branch}
	next, ok := s.grown[step]
	if !ok {
		if len(s.sets) == maxBranchSets {
			return 0, errManyBranchSets
		}
		next = uint32(len(s.sets))
		s.grown[step] = next
		s.sets = append(s.sets, step)
	}
	return next, nil
}

// members returns the branches of a set, ascending.
func (s *branchSets) members(set uint32) []uint32 {
	var members []uint32
	for ; set != 0; set = s.sets[set].set {
		members = append(members, s.sets[set].branch)
	}
	slices.Reverse(members)
	return members
}
